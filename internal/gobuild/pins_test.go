package gobuild

import (
	"slices"
	"strings"
	"testing"
)

// Where the modules are on this machine already, the go command agrees that
// nothing is missing in the pins. It fetches none.
func TestPinsResolve(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			r, err := Builder{Dir: t.TempDir()}.recipe(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.findGo(t.Context()); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := r.lay(dir); err != nil {
				t.Fatal(err)
			}
			cmd := r.command(t.Context(), "list", "-deps", "-f", "{{.ImportPath}}", r.importPath())
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "disabled by GOPROXY=off") {
				t.Skipf("the modules of %s are not on this machine", name)
			}
			if err != nil || !slices.Contains(strings.Fields(string(out)), r.importPath()) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
