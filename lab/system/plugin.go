// Package system is the plug-in form of systems under test: what a folder of
// systems/ may say, how several of them make a stack, and how their steps are
// rendered and carried out. It knows no system by name.
// Start at Load, then Stack.Start and Running.Connect; Plugin is one folder.
package system

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/load/oneway"
)

// ErrUnknown says that no plug-in has the name.
var ErrUnknown = errors.New("no such system")

const manifest = "system.yaml"

// Plugin is one system under test.
type Plugin struct {
	// Name of the system and of its folder.
	Name string `yaml:"name"`
	// Kind of the system: a stack holds at most one of a kind, in their order.
	Kind string `yaml:"kind"`
	// Summary says in a line what it is.
	Summary string `yaml:"summary"`
	// Carries lists the protocols of a load that get through; http/1.1 alone where
	// it is left out.
	Carries []string `yaml:"carries,omitempty"`
	// Variants are what the name of a system may say behind a colon, such as cost in
	// skerry-proxy:cost, one of which it then has to: templates see it as {{.Variant}}.
	Variants []string `yaml:"variants,omitempty"`
	// Needs lists programs that must be on the machine, or can be built.
	Needs []Need `yaml:"needs,omitempty"`
	// Qdiscs are queueing disciplines that the kernel must have.
	Qdiscs []string `yaml:"qdiscs,omitempty"`
	// Hosts says how it runs on the hosts substrate, Kubernetes how it does on that;
	// each where it does.
	Hosts      *Substrate `yaml:"hosts,omitempty"`
	Kubernetes *Substrate `yaml:"kubernetes,omitempty"`

	// variant is the one of them that it is.
	variant string
	// how is the one of the two that counts.
	how Substrate
	// tree has its folder and those of the others.
	tree fs.FS
	// built are the paths of the needs that are built here, by program.
	built map[string]string
}

// kinds of systems, from the bottom of a stack to its top.
var kinds = []string{"platform", "underlay", "interconnect", KindBalancer, "overlay"}

// KindBalancer is that of systems which choose who of a service takes a request.
const KindBalancer = "balancer"

// Substrate says how a system runs on one substrate. Every string in it, and
// every file, is a text/template over Values. It has either an Address or an
// Inner one.
type Substrate struct {
	// Route names the roles that a request visits, in order.
	Route []Role `yaml:"route,omitempty"`
	// Files of the folder that are rendered into the working directory; as ../SYSTEM/FILE
	// one of another system's folder.
	Files []string `yaml:"files,omitempty"`
	// NodeFiles are rendered for each node, into a folder of its host name there.
	NodeFiles []string `yaml:"nodeFiles,omitempty"`
	// BusyLoops counts processes that spin on a core each.
	BusyLoops int `yaml:"busyLoops,omitempty"`
	Steps     `yaml:",inline"`
	// Address that the client calls, as HOST:PORT; of a topology with entries, at each.
	Address string `yaml:"address,omitempty"`
	// Inner is the address that a node has by this system: what stands above it,
	// and the workload, take it for the node's own.
	Inner string `yaml:"inner,omitempty"`
	// Endpoints says that it calls the workload by Place.Endpoint: on kubernetes the
	// pod itself, past kube-proxy.
	Endpoints bool `yaml:"endpoints,omitempty"`
	// Proxy is the role at whose NodePort it calls the workload on kubernetes: the
	// kube-proxy there leads to the pods. By default it is the service.
	Proxy Role `yaml:"proxy,omitempty"`
	// Service is what it wants of the workload's Service, on kubernetes.
	Service *WorkloadService `yaml:"service,omitempty"`
	// OneWay is how it carries timed packets, where it does.
	OneWay *OneWay `yaml:"oneway,omitempty"`
}

// Steps are those of a system, in the order in which they are carried out.
type Steps struct {
	Prepare []Step `yaml:"prepare,omitempty"`
	Start   []Step `yaml:"start,omitempty"`
	Export  []Step `yaml:"export,omitempty"`
	Import  []Step `yaml:"import,omitempty"`
	Ready   []Step `yaml:"ready,omitempty"`
	Stop    []Step `yaml:"stop,omitempty"`
}

// OneWay is how timed packets are sent through a system: Sends is one of sendings.
// Talker and Listener are commands for sh around the lab's own, "$@": by default they
// run just that.
type OneWay struct {
	Sends    string `yaml:"sends"`
	Talker   string `yaml:"talker,omitempty"`
	Listener string `yaml:"listener,omitempty"`
}

// sendings are the ways in which a talker has a packet leave at its time: it tells the
// time with the packet, or sends after a sleep, or after a spin.
var sendings = []string{oneway.Txtime, oneway.Sleep, oneway.Spin}

// asIs runs the lab's own command.
const asIs = `exec "$@"`

// WorkloadService is what a system wants of the workload's Service.
type WorkloadService struct {
	// Labels and Annotations are templates.
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
	// Metrics has metrics-server tell what its pods use.
	Metrics bool `yaml:"metrics,omitempty"`
	// Anywhere has a request served at any node, whichever it came to.
	Anywhere bool `yaml:"anywhere,omitempty"`
}

// Step is one command, or one probe that is repeated until it is answered.
type Step struct {
	// At is the role whose node runs the step; lab is the machine itself, each is
	// every node, one after the other.
	At Role `yaml:"at"`
	// Run is a command for sh, in the working directory.
	Run string `yaml:"run,omitempty"`
	// Daemon names a process that goes on; its control group and log bear the name,
	// at each node with the host name behind it.
	Daemon string `yaml:"daemon,omitempty"`
	// Pod has the daemon run in one, on kubernetes.
	Pod *Pod `yaml:"pod,omitempty"`
	// Install is a file of the system: a manifest of Kubernetes with a DaemonSet, which is
	// the daemon.
	Install string `yaml:"install,omitempty"`
	// Capture names a value that holds the command's output for later steps.
	Capture string `yaml:"capture,omitempty"`
	// TCP is an address that must accept a connection.
	TCP string `yaml:"tcp,omitempty"`
	// Reach is a node's address, without a port, from which an answer must come,
	// if only that nobody listens there.
	Reach string `yaml:"reach,omitempty"`
}

// text is the step's template.
func (s Step) text() string { return s.Run + s.TCP + s.Reach + s.Install }

// Role is a place in the topology as a system sees it.
type Role string

// Roles.
const (
	// Client runs the load, Service the workload.
	Client  Role = "client"
	Service Role = "service"
	// Entry is where a request enters the service's cluster: of several entries the
	// first. Steps do not run there by that name.
	Entry Role = "entry"
	// Importer and Exporter are the gateway nodes of their clusters.
	Importer Role = "importer"
	Exporter Role = "exporter"
	// Machine is the machine itself, outside of every node.
	Machine Role = "lab"
	// Each is every node, one after the other.
	Each Role = "each"
)

// placeRoles are those that are one node, and wayRoles those that a way may name.
var (
	placeRoles = []Role{Client, Service, Importer, Exporter}
	wayRoles   = []Role{Client, Entry, Service, Importer, Exporter}
)

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

// phases are all of them.
func (s Substrate) phases() []phase { return append(s.startPhases(), phase{"stop", s.Stop}) }

// daemons are the names of the processes that its steps leave going on.
func (p *Plugin) daemons() (names []string) {
	for _, ph := range p.how.phases() {
		for _, step := range ph.steps {
			if step.Daemon != "" {
				names = append(names, step.Daemon)
			}
		}
	}
	return names
}

// LoadPlugin reads the plug-in of a name from a tree with one folder per system.
func LoadPlugin(tree fs.FS, name string) (*Plugin, error) {
	file := path.Join(name, manifest)
	data, err := fs.ReadFile(tree, file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read system %s: %w", name, err)
	}
	p := &Plugin{built: map[string]string{}, tree: tree}
	document, err := strict.Decode(file, data, p)
	if err != nil {
		return nil, err
	}
	if err := p.check(document, name); err != nil {
		return nil, err
	}
	p.how = *cmp.Or(p.Hosts, p.Kubernetes)
	return p, nil
}

// read gives a file of its folder, or of another system's by ../SYSTEM/FILE.
func (p *Plugin) read(name string) ([]byte, error) {
	return fs.ReadFile(p.tree, path.Join(p.Name, name))
}

// rendered is the name of a file in the working directory.
func rendered(name string) string {
	if other, ok := strings.CutPrefix(name, "../"); ok {
		_, name, _ = strings.Cut(other, "/")
	}
	return name
}

// on is how it runs on a substrate; nil where it does not.
func (p *Plugin) on(substrate string) *Substrate {
	if substrate == experiment.SubstrateKubernetes {
		return p.Kubernetes
	}
	return p.Hosts
}

// Names lists the systems of a tree, each a plug-in.
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
