package gobuild

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// required lists the modules of a pin as MODULE VERSION, and its programs by
// their packages.
func required(mod string) (modules, tools []string) {
	block := ""
	for line := range strings.Lines(mod) {
		line, _, _ = strings.Cut(line, "//")
		switch fields := strings.Fields(line); {
		case len(fields) == 0:
		case fields[len(fields)-1] == "(":
			block = fields[0]
		case fields[0] == ")":
			block = ""
		case block == "require":
			modules = append(modules, strings.Join(fields, " "))
		case fields[0] == "require":
			modules = append(modules, strings.Join(fields[1:], " "))
		case block == "tool":
			tools = append(tools, fields[0])
		case fields[0] == "tool":
			tools = append(tools, fields[1])
		}
	}
	return modules, tools
}

// Every program has a pin that names it as a tool, so that go mod tidy keeps it,
// and every module that a pin requires has its two sums.
func TestPins(t *testing.T) {
	if names := Names(); !slices.IsSorted(names) || len(slices.Compact(names)) != len(programs) {
		t.Errorf("programs %v are not in order", names)
	}
	used := map[string]bool{}
	for _, p := range programs {
		r := recipe{program: p}
		if err := r.read(pins); err != nil {
			t.Error(err)
			continue
		}
		used[p.pin] = true
		modules, tools := required(string(r.mod))
		if !slices.Contains(tools, p.importPath()) {
			t.Errorf("pins/%s.mod has the tools %v, not %s", p.pin, tools, p.importPath())
		}
		if len(modules) == 0 || !slices.Contains(modules, p.module+" "+r.version) {
			t.Errorf("pins/%s.mod requires %v", p.pin, modules)
		}
		sums := strings.Split(string(r.sum), "\n")
		for _, m := range modules {
			for _, want := range []string{m + " h1:", m + "/go.mod h1:"} {
				if !slices.ContainsFunc(sums, func(line string) bool { return strings.HasPrefix(line, want) }) {
					t.Errorf("pins/%s.sum lacks %s", p.pin, want)
				}
			}
		}
		if module, version, ok := Version(p.name); !ok || module != p.module || version != r.version {
			t.Errorf("%s is %s %s", p.name, module, version)
		}
	}
	files, err := fs.Glob(pins, "pins/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if pin := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)); !used[pin] {
			t.Errorf("%s pins no program", name)
		}
	}
}

// Where the modules are on this machine already, the go command agrees that
// nothing is missing in the pins. It fetches none.
func TestPinsResolve(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			r := recipe{program: p}
			if err := r.read(pins); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := r.lay(dir); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", p.importPath())
			cmd.Dir, cmd.Env = dir, environment()
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "disabled by GOPROXY=off") {
				t.Skipf("the modules of %s are not on this machine", p.name)
			}
			if err != nil || !slices.Contains(strings.Fields(string(out)), p.importPath()) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
