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

// program is one that can be built.
type program struct {
	// name of the program, and of its file.
	name string
	// pin is the name of the files in pins.
	pin string
	// module that holds the package.
	module string
	// folder of the main package in the module, empty for its root.
	folder string
}

// programs are all that can be built, by name.
var programs = []program{
	{"hey", "hey", "github.com/rakyll/hey", ""},
	{"k6", "k6", "go.k6.io/k6", ""},
	{"nebula", "nebula", "github.com/slackhq/nebula", "cmd/nebula"},
	{"nebula-cert", "nebula", "github.com/slackhq/nebula", "cmd/nebula-cert"},
	{"wireguard-go", "wireguard-go", "golang.zx2c4.com/wireguard", ""},
}

// Names lists the programs that can be built, in order.
func Names() []string {
	names := make([]string, len(programs))
	for i, p := range programs {
		names[i] = p.name
	}
	return names
}

// Version is the version that a program is pinned to, with the module it comes
// from; false for one that there is not.
func Version(name string) (module, version string, ok bool) {
	p, ok := find(name)
	if !ok {
		return "", "", false
	}
	r := recipe{program: p}
	if err := r.read(pins); err != nil {
		return "", "", false
	}
	return p.module, r.version, true
}

func find(name string) (program, bool) {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if i < 0 {
		return program{}, false
	}
	return programs[i], true
}

// importPath of the main package.
func (p program) importPath() string { return strings.TrimSuffix(p.module+"/"+p.folder, "/") }

// read takes the pin of the program.
func (r *recipe) read(tree fs.FS) (err error) {
	if r.mod, err = fs.ReadFile(tree, "pins/"+r.pin+".mod"); err == nil {
		r.sum, err = fs.ReadFile(tree, "pins/"+r.pin+".sum")
	}
	if err != nil {
		return fmt.Errorf("pin of %s: %w", r.name, err)
	}
	for line := range strings.Lines(string(r.mod)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == r.module && strings.HasPrefix(fields[1], "v") {
			r.version = fields[1]
			return nil
		}
	}
	return fmt.Errorf("pin of %s: pins/%s.mod requires no version of %s", r.name, r.pin, r.module)
}
