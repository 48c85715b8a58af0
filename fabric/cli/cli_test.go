package cli_test

import (
	"errors"
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
			// A port that nobody listens at.
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			_, port, err := net.SplitHostPort(l.Addr().String())
			e.Setenv("PORT", port)
			return errors.Join(err, l.Close())
		},
	})
}
