package cli_test

import (
	"net"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"skerry.dev/skerry/internal/programs"
)

// bin is the folder of the programs that TestMain builds.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(m, func(dir string) { bin = dir }))
}

// TestScripts runs the built programs as a user does.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			// Ports that nobody listens at.
			for _, name := range []string{"PORT", "PEERS", "FRONT", "ADMIN1", "ADMIN2"} {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return err
				}
				defer l.Close() // after the last, so that each is another
				_, port, err := net.SplitHostPort(l.Addr().String())
				if err != nil {
					return err
				}
				e.Setenv(name, port)
			}
			return nil
		},
	})
}
