// Package system is the plug-in form of systems under test: what a folder of
// systems/ may say, and how its steps are rendered and carried out. It knows no
// system by name. Start at Load, then Plugin.Render, then Stack.Start.
package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/experiment"
)

// ErrUnknown says that no plug-in has the name.
var ErrUnknown = errors.New("no such system")

const manifest = "system.yaml"

// Plugin is one system under test.
type Plugin struct {
	// Name of the system and of its folder.
	Name string `yaml:"name"`
	// Kind of the system: a stack holds at most one of a kind.
	Kind string `yaml:"kind"`
	// Summary says in a line what it is.
	Summary string `yaml:"summary"`
	// Carries lists the protocols of a load that get through; http/1.1 alone where
	// it is left out.
	Carries []string `yaml:"carries,omitempty"`
	// Needs lists programs that must be on the machine.
	Needs []Need `yaml:"needs,omitempty"`
	// Hosts says how it runs on the hosts substrate.
	Hosts Substrate `yaml:"hosts"`

	files fs.FS
}

// Need is a program and the Debian package that carries it.
type Need struct {
	Program string `yaml:"program"`
	Package string `yaml:"package"`
}

// Substrate says how a system runs on one substrate. Every string in it, and
// every file, is a text/template over Values.
type Substrate struct {
	// Route names the roles that a request visits, in order.
	Route []Role `yaml:"route"`
	// Files of the folder that are rendered into the working directory.
	Files []string `yaml:"files,omitempty"`
	// BusyLoops counts processes that spin on a core each.
	BusyLoops int `yaml:"busyLoops,omitempty"`
	// Steps, in the order in which they are carried out.
	Prepare []Step `yaml:"prepare,omitempty"`
	Start   []Step `yaml:"start,omitempty"`
	Export  []Step `yaml:"export,omitempty"`
	Import  []Step `yaml:"import,omitempty"`
	Ready   []Step `yaml:"ready,omitempty"`
	Stop    []Step `yaml:"stop,omitempty"`
	// Address that the client calls, as HOST:PORT.
	Address string `yaml:"address"`
}

// Step is one command, or one TCP probe that is repeated until it answers.
type Step struct {
	// At is the role whose node runs the step; lab is the machine itself.
	At Role `yaml:"at"`
	// Run is a command for sh, in the working directory.
	Run string `yaml:"run,omitempty"`
	// Daemon names a process that goes on; its control group and log bear the name.
	Daemon string `yaml:"daemon,omitempty"`
	// Capture names a value that holds the command's output for later steps.
	Capture string `yaml:"capture,omitempty"`
	// TCP is an address that must accept a connection.
	TCP string `yaml:"tcp,omitempty"`
}

// Role is a place in the topology as a system sees it.
type Role string

// Roles.
const (
	// Client runs the load, Service the workload.
	Client  Role = "client"
	Service Role = "service"
	// Importer and Exporter are the gateway nodes of their clusters.
	Importer Role = "importer"
	Exporter Role = "exporter"
	// Machine is the machine itself, outside of every node.
	Machine Role = "lab"
)

var roles = []Role{Client, Service, Importer, Exporter, Machine}

// phase is a named list of steps.
type phase struct {
	name  string
	steps []Step
}

// startPhases are the phases that bring a system up, in order.
func (s Substrate) startPhases() []phase {
	return []phase{
		{"prepare", s.Prepare}, {"start", s.Start}, {"export", s.Export},
		{"import", s.Import}, {"ready", s.Ready},
	}
}

// Load reads the plug-in of a name from a tree with one folder per system.
func Load(tree fs.FS, name string) (*Plugin, error) {
	file := path.Join(name, manifest)
	data, err := fs.ReadFile(tree, file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read system %s: %w", name, err)
	}
	p := new(Plugin)
	if p.files, err = fs.Sub(tree, name); err != nil {
		return nil, fmt.Errorf("read system %s: %w", name, err)
	}
	document, err := strict.Decode(file, data, p)
	if err != nil {
		return nil, err
	}
	return p, p.check(document, name)
}

func (p *Plugin) check(document *strict.Document, folder string) error {
	if p.Name != folder {
		return document.Errorf("name", "name it as its folder", "system %q lies in folder %q", p.Name, folder)
	}
	for i, protocol := range p.Carries {
		if known := experiment.Protocols(); !slices.Contains(known, protocol) {
			return document.Errorf(fmt.Sprintf("carries[%d]", i), "protocols are "+strings.Join(known, ", "), "unknown protocol %q", protocol)
		}
	}
	for i, role := range p.Hosts.Route {
		if !slices.Contains(roles, role) {
			return document.Errorf(fmt.Sprintf("hosts.route[%d]", i), roleHint(), "unknown role %q", role)
		}
	}
	phases := append(p.Hosts.startPhases(), phase{"stop", p.Hosts.Stop})
	daemons := map[string]bool{}
	for _, ph := range phases {
		for i, step := range ph.steps {
			at := fmt.Sprintf("hosts.%s[%d]", ph.name, i)
			if !slices.Contains(roles, step.At) {
				return document.Errorf(at, roleHint(), "unknown role %q", step.At)
			}
			if (step.Run == "") == (step.TCP == "") {
				return document.Errorf(at, "write one of the two", "a step has either run or tcp")
			}
			if step.Daemon != "" && daemons[step.Daemon] {
				return document.Errorf(at, "each has a log of its name", "two daemons are named %q", step.Daemon)
			}
			daemons[step.Daemon] = true
		}
	}
	return nil
}

func roleHint() string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return "roles are " + strings.Join(names, ", ")
}

// Names lists the systems of a tree.
func Names(tree fs.FS) ([]string, error) {
	files, err := fs.Glob(tree, "*/"+manifest)
	if err != nil {
		return nil, fmt.Errorf("list systems: %w", err)
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = path.Dir(f)
	}
	return names, nil
}

// CarryError says that a system does not let a protocol through.
type CarryError struct {
	System, Protocol string
	// Carries is what it does.
	Carries []string
}

// Error names both and what the system carries.
func (e *CarryError) Error() string {
	return fmt.Sprintf("system %s carries %s, not %s", e.System, strings.Join(e.Carries, ", "), e.Protocol)
}

// Check says what of a load the system does not carry: the error joins a
// *CarryError for each protocol.
func (p *Plugin) Check(l experiment.Load) error {
	carries, asked := p.Carries, []string(l.Protocol)
	if len(carries) == 0 {
		carries = []string{experiment.ProtocolHTTP1}
	}
	if len(asked) == 0 {
		asked = []string{experiment.ProtocolHTTP1}
	}
	var wrong []error
	for _, protocol := range asked {
		if !slices.Contains(carries, protocol) {
			wrong = append(wrong, &CarryError{System: p.Name, Protocol: protocol, Carries: carries})
		}
	}
	return errors.Join(wrong...)
}

// MissingError says which program a system needs and where it comes from.
type MissingError struct {
	System string
	Need   Need
}

// Error names the program.
func (e *MissingError) Error() string {
	return fmt.Sprintf("system %s needs the program %s, which is not installed", e.System, e.Need.Program)
}

// Missing lists what the system needs and this machine lacks.
func (p *Plugin) Missing() []error {
	var missing []error
	for _, n := range p.Needs {
		if _, err := exec.LookPath(n.Program); err != nil {
			missing = append(missing, &MissingError{System: p.Name, Need: n})
		}
	}
	return missing
}

// Need is what the system takes of the machine's cores.
func (p *Plugin) Need() experiment.Need {
	need := experiment.Need{BusyLoops: p.Hosts.BusyLoops}
	for _, ph := range p.Hosts.startPhases() {
		for _, step := range ph.steps {
			if step.Daemon != "" {
				need.Processes++
			}
		}
	}
	return need
}
