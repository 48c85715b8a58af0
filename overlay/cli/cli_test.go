package cli_test

import (
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
			return nil
		},
	})
}
