package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var built string

func TestMain(m *testing.M) { os.Exit(Main(m, func(dir string) { built = dir })) }

func TestProgramsStart(t *testing.T) {
	for _, name := range []string{"skerry", "skerry-agent"} {
		if out, err := exec.Command(filepath.Join(built, name), "--help").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
