package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"skerry.dev/skerry/internal/complaint"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// Runner is what a stack needs of the lab that it runs in.
type Runner interface {
	Start(host.Command) (Daemon, error)
	Run(context.Context, host.Command) error
	Dial(ctx context.Context, node topology.Ref, address string) (net.Conn, error)
	// Deploy has a daemon run in a pod, and returns when that is ready.
	Deploy(context.Context, Deployment) (Daemon, error)
	// Install has a cluster run a DaemonSet, and returns when it does at every node.
	Install(context.Context, Installation) (Daemon, error)
}

// Daemon is a process that a step started and that is to stay.
type Daemon interface {
	// Done is closed when it has ended; Err then says how.
	Done() <-chan struct{}
	Err() error
	// Stop ends it and tells what it used.
	Stop(grace time.Duration) (host.Use, error)
}

// Podded is a Daemon that runs in pods, of one node or of several.
type Podded interface {
	Daemon
	// Ended are the nodes of those that have ended.
	Ended() []topology.Ref
}

// Running is a stack in a lab: between Start and Connect the plug-ins that give
// nodes their addresses are up, after it all of them.
type Running struct {
	// parts of the stack, bottom first, of which the first up were begun with.
	parts []*part
	up    int
}

// part is a plug-in of a stack in a lab.
type part struct {
	layer
	lab     Runner
	daemons []daemon
}

type daemon struct {
	name string
	node topology.Ref
	Daemon
}

// EndedError says of a daemon that it did not stay.
type EndedError struct {
	Name string
	Node topology.Ref
	// Pod says that it ran in one.
	Pod bool
	// How it ended, and what its log says about that.
	How  error
	Said string
}

// Error names it, and says how it ended.
func (e *EndedError) Error() string {
	text := fmt.Sprintf("%s has ended (%v)", e.Name, e.How)
	if e.Said != "" {
		text += ": " + e.Said
	}
	return text
}

// Unwrap gives how it ended.
func (e *EndedError) Unwrap() error { return e.How }

// Start brings up the plug-ins that give nodes their addresses, bottom first: of
// each the files are written to its working directory, v.Dir or, in a stack of
// several, a folder of its name in that, and the steps are carried out in order.
// Afterwards a workload can listen. When it fails, nothing of it runs on.
func (s *Stack) Start(ctx context.Context, lab Runner, v Values) (*Running, error) {
	if err := cmp.Or(errors.Join(s.Missing()...), s.notBuilt()); err != nil {
		return nil, err
	}
	layers, err := s.layers(v)
	if err != nil {
		return nil, err
	}
	r := &Running{}
	for _, l := range layers {
		r.parts = append(r.parts, &part{layer: l, lab: lab})
	}
	if err := r.begin(ctx, len(r.parts)-1); err != nil {
		return nil, err
	}
	return r, nil
}

// Connect brings up the last: what carries requests to a workload that listens. When it fails, nothing of the stack runs on.
func (r *Running) Connect(ctx context.Context) error { return r.begin(ctx, len(r.parts)) }

// begin brings up the plug-ins below n that are not.
func (r *Running) begin(ctx context.Context, n int) error {
	for r.up < n {
		p := r.parts[r.up]
		r.up++
		if err := p.begin(ctx, r.Ended); err != nil {
			_, stopErr := r.Stop()
			return errors.Join(fmt.Errorf("system %s: %w", p.Name, err), stopErr)
		}
	}
	return nil
}

// Serve tells the plug-ins that are not up yet which pods serve, by their nodes, as
// HOST:PORT: their endpoints, in place of the nodes' own.
func (r *Running) Serve(pods map[topology.Ref]string) {
	for _, p := range r.parts[r.up:] {
		p.values = p.values.mapped(func(place Place) Place {
			place.pod = pods[place.Node]
			return place
		})
	}
}

// Values are what the topmost plug-in sees: its places have the addresses that
// the workload listens at and the client has.
func (r *Running) Values() Values { return r.parts[len(r.parts)-1].values }

// Address that the client calls, of several entries at the first.
func (r *Running) Address() (string, error) {
	top := r.parts[len(r.parts)-1]
	return top.Address(top.values)
}

// Addresses that the client calls, one for each entry.
func (r *Running) Addresses() ([]string, error) {
	top := r.parts[len(r.parts)-1]
	return top.Addresses(top.values)
}

// Contact is how timed packets are sent and heard: Sends is one of sendings, the commands
// are to be followed by the lab's own.
type Contact struct {
	Sends            string
	Talker, Listener host.Command
}

// OneWay is how timed packets are sent, of a stack that carries them.
func (r *Running) OneWay() (Contact, error) {
	top := r.parts[len(r.parts)-1]
	o, err := top.oneWay(top.values)
	around := func(text string) host.Command {
		return host.Command{Args: append(shell(text), "sh"), Env: top.env(), Dir: top.values.Dir}
	}
	return Contact{o.Sends, around(o.Talker), around(o.Listener)}, err
}

// errQuietly is how a daemon ends that gives no reason.
var errQuietly = errors.New("exit status 0")

// Ended tells of a daemon that did not stay; nil while all are there.
func (r *Running) Ended() error {
	if all := r.Deaths(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Deaths are of the daemons that did not stay, in the order in which they were started.
func (r *Running) Deaths() (all []*EndedError) {
	for _, p := range r.parts[:r.up] {
		for _, d := range p.daemons {
			select {
			case <-d.Done():
				all = append(all, d.ends(p.log(d.name))...)
			default:
			}
		}
	}
	return all
}

// ends are those of a daemon that has ended, at each node where it has.
func (d daemon) ends(log string) (all []*EndedError) {
	end := EndedError{Name: d.name, Node: d.node, How: cmp.Or(d.Err(), errQuietly)}
	if _, err := os.Stat(log); err == nil { // that of some is written when they are taken away
		end.Said = complaint.InFile(log, complaint.First)
	}
	pods, ok := d.Daemon.(Podded)
	if !ok {
		return []*EndedError{&end}
	}
	end.Pod = true
	for _, node := range pods.Ended() {
		one := end
		one.Node = node
		all = append(all, &one)
	}
	return all
}

// Stop takes the plug-ins down, top first: each one's stop steps are carried out
// and its daemons ended. It tells what each daemon used. A second Stop does
// nothing.
func (r *Running) Stop() ([]host.Use, error) {
	var uses []host.Use
	var problems error
	for _, p := range slices.Backward(r.parts[:r.up]) {
		used, err := p.stop(context.Background())
		uses, problems = append(uses, used...), errors.Join(problems, err)
	}
	r.up = 0
	return uses, problems
}

// begin writes the files of a plug-in and carries out the steps that bring it up.
func (p *part) begin(ctx context.Context, ended func() error) error {
	files, err := p.Render(p.values)
	if err != nil {
		return err
	}
	if p.acts() {
		if err := os.MkdirAll(p.values.Dir, 0o755); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := writeFile(filepath.Join(p.values.Dir, name), text); err != nil {
			return err
		}
	}
	for _, ph := range p.how.startPhases() {
		for _, s := range ph.steps {
			if err := p.step(ctx, s, ended); err != nil {
				return fmt.Errorf("%s at %w", ph.name, err)
			}
		}
	}
	return nil
}

// acts reports whether there is anything to do in a working directory.
func (p *part) acts() bool {
	return slices.ContainsFunc(p.how.phases(), func(ph phase) bool { return len(ph.steps) > 0 })
}

func (p *part) stop(ctx context.Context) (uses []host.Use, problems error) {
	none := func() error { return nil }
	for _, s := range p.how.Stop {
		if err := p.step(ctx, s, none); err != nil {
			problems = errors.Join(problems, fmt.Errorf("system %s: stop at %w", p.Name, err))
		}
	}
	for _, d := range p.daemons {
		use, err := d.Stop(stopGrace)
		problems = errors.Join(problems, err)
		uses = append(uses, use)
	}
	p.daemons = nil
	return uses, problems
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
