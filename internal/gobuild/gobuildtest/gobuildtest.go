// Package gobuildtest checks catalogues of pinned programs. It is for tests alone.
// Start at Check.
package gobuildtest

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"skerry.dev/skerry/internal/gobuild"
)

// Check wants every program to have a pin that keeps it, by a tool line or by a
// source of its own, every module that a pin requires to have its two sums, and
// every pin to be of a program.
func Check(t *testing.T, c gobuild.Catalogue) {
	t.Helper()
	names := c.Names()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(c.Programs) {
		t.Errorf("two of the programs %v have one name", c.Names())
	}
	used := map[string]bool{}
	for _, p := range c.Programs {
		used[p.Pin] = true
		checkPin(t, c, p)
	}
	files, err := fs.Glob(c.Files, "pins/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if pin := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)); !used[pin] {
			t.Errorf("%s pins no program", name)
		}
	}
}

func checkPin(t *testing.T, c gobuild.Catalogue, p gobuild.Program) {
	t.Helper()
	mod, err := fs.ReadFile(c.Files, "pins/"+p.Pin+".mod")
	if err != nil {
		t.Error(err)
		return
	}
	sum, err := fs.ReadFile(c.Files, "pins/"+p.Pin+".sum")
	if err != nil {
		t.Error(err)
		return
	}
	pin, err := modfile.Parse("pins/"+p.Pin+".mod", mod, nil)
	if err != nil {
		t.Error(err)
		return
	}
	wanted := strings.TrimSuffix(p.Module+"/"+p.Folder, "/")
	kept := p.Source != "" || slices.ContainsFunc(pin.Tool, func(tool *modfile.Tool) bool { return tool.Path == wanted })
	if !kept {
		t.Errorf("pins/%s.mod has no tool %s", p.Pin, wanted)
	}
	replaced := map[string]string{}
	for _, r := range pin.Replace {
		replaced[r.Old.Path] = r.New.Path + " " + r.New.Version
	}
	sums := strings.Split(string(sum), "\n")
	for _, r := range pin.Require {
		module := r.Mod.Path + " " + r.Mod.Version
		if other := replaced[r.Mod.Path]; other != "" {
			module = other
		}
		// Of a module that no program needs there is the sum of its go.mod alone.
		if !slices.ContainsFunc(sums, func(line string) bool { return strings.HasPrefix(line, module+"/go.mod h1:") }) {
			t.Errorf("pins/%s.sum lacks %s", p.Pin, module)
		}
	}
	module, version, ok := c.Version(p.Name)
	if !ok || module != p.Module || !slices.ContainsFunc(pin.Require, func(r *modfile.Require) bool {
		return r.Mod.Path == module && r.Mod.Version == version
	}) {
		t.Errorf("%s is %s %s, which its pin does not require", p.Name, module, version)
	}
}
