package gobuild

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// pins holds NAME.mod and NAME.sum for each module.
//
//go:embed pins/*.mod pins/*.sum
var pins embed.FS

// Catalogue is programs and what they are pinned to.
type Catalogue struct {
	// Files has pins/PIN.mod and pins/PIN.sum for each pin, and the sources of the
	// programs that have their own.
	Files    fs.FS
	Programs []Program
}

// Program is one that can be built.
type Program struct {
	// Name of the program, and of its file.
	Name string
	// Pin is the name of the files in pins.
	Pin string
	// Module that holds the package, and whose version is the program's.
	Module string
	// Folder of the package in the module, empty for its root.
	Folder string
	// Source is the file of a main package of our own, in place of the module's.
	Source string
	// Test has the program made of the package's tests, as go test -c does.
	Test bool
	// Tags of the build, joined by commas.
	Tags string
	// Stamps are variables that get the version, as IMPORTPATH.NAME.
	Stamps []string
	// Cgo has this machine's C libraries linked into it.
	Cgo bool
}

// Tools are what systems and loads start.
func Tools() Catalogue {
	return Catalogue{pins, []Program{
		{Name: "hey", Pin: "hey", Module: "github.com/rakyll/hey"},
		{Name: "k6", Pin: "k6", Module: "go.k6.io/k6"},
		{Name: "nebula", Pin: "nebula", Module: "github.com/slackhq/nebula", Folder: "cmd/nebula"},
		{Name: "nebula-cert", Pin: "nebula", Module: "github.com/slackhq/nebula", Folder: "cmd/nebula-cert"},
		{Name: "wireguard-go", Pin: "wireguard-go", Module: "golang.zx2c4.com/wireguard"},
	}}
}

// Names lists the tools that can be built, in order.
func Names() []string { return Tools().Names() }

// Version is the version that a tool is pinned to, with the module it comes from;
// false for one that there is not.
func Version(name string) (module, version string, ok bool) { return Tools().Version(name) }

// Names lists the programs, in order.
func (c Catalogue) Names() []string {
	names := make([]string, len(c.Programs))
	for i, p := range c.Programs {
		names[i] = p.Name
	}
	return names
}

// Version is the version that a program is pinned to, with the module it comes
// from; false for one that there is not.
func (c Catalogue) Version(name string) (module, version string, ok bool) {
	r, err := c.recipe(name)
	if err != nil {
		return "", "", false
	}
	return r.Module, r.version, true
}

// recipe reads what a program is made of.
func (c Catalogue) recipe(name string) (recipe, error) {
	i := slices.IndexFunc(c.Programs, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return recipe{}, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	r := recipe{Program: c.Programs[i]}
	return r, r.read(c.Files)
}

// importPath of the package, from the folder of its build.
func (p Program) importPath() string {
	if p.Source != "" {
		return "."
	}
	return strings.TrimSuffix(p.Module+"/"+p.Folder, "/")
}

// read takes the pin of the program, and its source where it has its own.
func (r *recipe) read(tree fs.FS) (err error) {
	if r.mod, err = fs.ReadFile(tree, "pins/"+r.Pin+".mod"); err == nil {
		r.sum, err = fs.ReadFile(tree, "pins/"+r.Pin+".sum")
	}
	if err == nil && r.Source != "" {
		r.source, err = fs.ReadFile(tree, r.Source)
	}
	if err != nil {
		return fmt.Errorf("pin of %s: %w", r.Name, err)
	}
	for line := range strings.Lines(string(r.mod)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == r.Module && strings.HasPrefix(fields[1], "v") {
			r.version = fields[1]
			return nil
		}
	}
	return fmt.Errorf("pin of %s: pins/%s.mod requires no version of %s", r.Name, r.Pin, r.Module)
}
