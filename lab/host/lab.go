// Package host is the hosts substrate: it makes a topology real on this
// machine. A node is a network, mount and UTS namespace; the clusters' switches
// and the WAN between them are one further namespace in which the links are
// emulated. Namespaces live by a holder process each, every process of a lab
// lives in a control group below "skerry/LAB", and the lab's state in
// /run/skerry: ending the group's processes removes the lab. Nothing is made in
// the machine's own network namespace. Start at Up; Clean is for what a killed
// lab left.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/internal/complaint"
	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/topology"
)

// root holds the state of every lab; groupRoot its control groups.
const (
	root      = "/run/skerry"
	groupRoot = "skerry"
	// idlePrefix begins the name of the group of what runs in time that nobody else wants,
	// which ends with the lab's.
	idlePrefix = "skerry-idle-"
	stateFile  = "lab.json"
	hostsFile  = "hosts"
	socket     = "links.sock"
	// Names of control groups below the lab's; the others are of processes.
	holdersGroup, linksGroup = "holders", "links"
	// agentError is before what skerry-agent, as any of its roles, ends by.
	agentError = "skerry-agent: error: "
	// emulatorStart bounds how long the emulator may take to answer.
	emulatorStart = 5 * time.Second
)

// Errors that a caller tells apart.
var (
	ErrExists   = errors.New("a lab of that name is up")
	ErrNoLab    = errors.New("no lab of that name is up")
	ErrNotRoot  = errors.New("not root")
	ErrState    = errors.New("its state cannot be read")
	ErrName     = errors.New("a lab's name is up to 63 lower-case letters, digits and hyphens")
	ErrEnds     = errors.New("no link joins these ends")
	ErrLinks    = errors.New("cannot emulate links")
	ErrNoDir    = errors.New("the working directory is not in the node")
	ErrSilent   = errors.New("the link emulator does not answer")
	errNotAlive = errors.New("parts of the lab have ended")
	// errLate is of an order that may yet be carried out.
	errLate = fmt.Errorf("%w in time", ErrSilent)
)

// labName is a folder, a control group and a word of a command line.
var labName = regexp.MustCompile("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")

// Options of a lab.
type Options struct {
	// Name of the lab: several stand side by side.
	Name string
	// Agent is the path of the skerry-agent binary.
	Agent string
	// Backend of the links: auto, netem or userspace.
	Backend string
	// Bound ties the lab to this process: when it ends, Clean removes the lab.
	Bound bool
	// Apart gives the emulator of the links a core that nothing else of the lab runs on.
	Apart bool
}

// Lab is a topology that is up.
type Lab struct {
	state
	group cgroup.Group
	links *emulator.Client
	lock  *os.File
}

// state is what the state file keeps.
type state struct {
	Name     string                  `json:"name"`
	Topology topology.Topology       `json:"topology"`
	Bound    bool                    `json:"bound"`
	Nodes    map[topology.Ref]holder `json:"nodes"`
	WAN      holder                  `json:"wan"`
	Links    []Link                  `json:"links"`
	Seed     uint64                  `json:"seed"`
	// EmulatorCore is what the emulator has for itself, 0 for none: it is never the first.
	EmulatorCore int `json:"emulator_core,omitempty"`
	// Faults in force, the oldest first, and how many there have been.
	Faults []Fault `json:"faults,omitempty"`
	Made   int     `json:"faults_made,omitempty"`
}

// Link is one direction between two clusters or two nodes.
type Link struct {
	From topology.Ref      `json:"from"`
	To   topology.Ref      `json:"to"`
	Unit impair.Unit       `json:"unit,omitempty"`
	Does impair.Impairment `json:"does"`
	// Then are further stages, which a packet meets after Does.
	Then []impair.Impairment `json:"then,omitempty"`
}

// Stages of the direction, in the order in which a packet meets them.
func (l Link) Stages() impair.Stages { return impair.Chain(l.Does, l.Then) }

// Name of the direction: FROM>TO.
func (l Link) Name() string { return string(l.From + ">" + l.To) }

// Up makes a lab. When it fails it leaves nothing behind.
func Up(ctx context.Context, t topology.Topology, o Options) (*Lab, error) {
	l, err := create(t, o)
	if err != nil {
		return nil, err
	}
	if err := l.build(ctx, o); err != nil {
		return nil, errors.Join(err, l.Down())
	}
	if !o.Bound {
		err = l.unlock()
	}
	return l, err
}

// Release has a lab that is bound to this process outlast it. Links and faults that
// another process has set until then stay; after an error it is bound as before.
func (l *Lab) Release(ctx context.Context) error {
	err := l.change(ctx, func() error {
		l.Bound = false
		return l.save()
	})
	if err != nil {
		return err
	}
	return l.unlock()
}

// create claims the name and makes what Clean needs to find the lab by.
func create(t topology.Topology, o Options) (*Lab, error) {
	if !labName.MatchString(o.Name) {
		return nil, fmt.Errorf("lab %q: %w", o.Name, ErrName)
	}
	tree, err := findGroups()
	if err != nil {
		return nil, err
	}
	lock, err := awaitLab(o.Name)
	if err != nil {
		return nil, err
	}
	l := &Lab{lock: lock, group: tree.Group(groupRoot).Child(o.Name)}
	l.state = state{Name: o.Name, Topology: t, Bound: o.Bound, Nodes: map[topology.Ref]holder{}}
	if err := os.Mkdir(l.Dir(), 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("lab %s: %w", o.Name, ErrExists)
		}
		return nil, errors.Join(err, l.unlock())
	}
	l.links = emulator.Dial(l.path(socket))
	return l, nil
}

// findGroups begins whatever touches a lab: it needs root and control groups.
func findGroups() (cgroup.Tree, error) {
	if err := RequireRoot(); err != nil {
		return cgroup.Tree{}, err
	}
	return cgroup.FindHere()
}

func (l *Lab) build(ctx context.Context, o Options) (err error) {
	if o.Apart {
		if l.EmulatorCore, err = coreApart(); err != nil {
			return err
		}
	}
	if err := l.save(); err != nil {
		return err
	}
	if err := l.writeHosts(); err != nil {
		return err
	}
	if err := l.makeNodes(ctx, o.Agent); err != nil {
		return err
	}
	if err := l.save(); err != nil {
		return err
	}
	return l.startEmulator(ctx, o)
}

func (l *Lab) writeHosts() error {
	text := "127.0.0.1 localhost\n"
	for _, n := range l.Topology.Nodes() {
		text += fmt.Sprintf("%s %s\n", n.Data.Addr(), n.Host())
	}
	return os.WriteFile(l.path(hostsFile), []byte(text), 0o644)
}

// makeNodes makes the WAN first, then the nodes in parallel.
func (l *Lab) makeNodes(ctx context.Context, agent string) error {
	group := l.group.Child(holdersGroup)
	if err := group.Make(); err != nil {
		return err
	}
	wan, err := hold(agent, "wan", l.path(hostsFile), group)
	if err != nil {
		return err
	}
	l.WAN = wan
	if err := inNode(wan, func() error { return setSysctls(sysctls(&l.Topology, wanSysctls, wanSysctls6)) }); err != nil {
		return err
	}
	handle, err := openHandle(wan)
	if err != nil {
		return err
	}
	defer handle.Close()
	net := network{wan: handle, topology: &l.Topology}
	if err := net.makeSwitches(); err != nil {
		return err
	}
	nodes := l.Topology.Nodes()
	holders := make([]holder, len(nodes))
	making, _ := errgroup.WithContext(ctx)
	for i, n := range nodes {
		making.Go(func() error {
			h, err := l.makeNode(agent, n, group)
			holders[i] = h
			return err
		})
	}
	if err := making.Wait(); err != nil {
		return err
	}
	for i, n := range nodes {
		l.Nodes[n.Ref()] = holders[i]
		where, err := locate(&l.Topology, n.Ref())
		if err != nil {
			return err
		}
		if err := net.attach(holders[i], n, where.cluster, where.node); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) makeNode(agent string, n topology.Node, group cgroup.Group) (holder, error) {
	h, err := hold(agent, n.Host(), l.path(hostsFile), group)
	if err != nil {
		return holder{}, err
	}
	err = inNode(h, func() error { return setSysctls(sysctls(&l.Topology, nodeSysctls, nil)) })
	if err != nil {
		return holder{}, fmt.Errorf("make node %s: %w", n, err)
	}
	return h, nil
}

func (l *Lab) startEmulator(ctx context.Context, o Options) error {
	log, err := os.Create(l.LinksLog())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process, err := l.start(l.WAN, Command{
		Name: linksGroup, Args: []string{o.Agent, "links", "--socket", l.path(socket), "--backend", o.Backend},
		Stdout: log, Stderr: log,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, emulatorStart)
	defer cancel()
	for {
		if _, err = l.links.Status(ctx); err == nil {
			return nil
		}
		select {
		case <-process.Done():
			why := complaint.InFile(l.LinksLog(), complaint.First)
			return fmt.Errorf("%w: %s", ErrLinks, strings.TrimPrefix(why, agentError))
		case <-ctx.Done():
			return fmt.Errorf("%w: no answer within %s: %w", ErrLinks, emulatorStart, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Open finds a lab that is up.
func Open(name string) (*Lab, error) {
	if !labName.MatchString(name) {
		return nil, fmt.Errorf("lab %q: %w", name, ErrName)
	}
	tree, err := findGroups()
	if err != nil {
		return nil, err
	}
	kept, err := readState(name)
	if err != nil {
		return nil, err
	}
	l := &Lab{state: kept, group: tree.Group(groupRoot).Child(name)}
	l.links = emulator.Dial(l.path(socket))
	return l, nil
}

func readState(name string) (state, error) {
	text, err := os.ReadFile(filepath.Join(root, name, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, fmt.Errorf("lab %s: %w", name, ErrNoLab)
	}
	s := state{Name: name}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return state{}, fmt.Errorf("lab %s: %w: %w", name, ErrState, err)
	}
	return s, nil
}

// Names of the labs that are up, or that were killed on their way.
func Names() ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Down removes the lab: its processes, and with them its namespaces,
// interfaces, rules and mounts, then its control groups and its state.
func (l *Lab) Down() error {
	if l.lock == nil {
		lock, err := awaitLab(l.Name)
		if err != nil {
			return err
		}
		l.lock = lock
	}
	idle := l.idle()
	return errors.Join(l.group.Kill(), l.group.Remove(), idle.Kill(), idle.Remove(), os.RemoveAll(l.Dir()), l.unlock())
}

// Dir is where the lab keeps its state, and systems their files.
func (l *Lab) Dir() string { return filepath.Join(root, l.Name) }

// LinksLog is the path of what the link emulator has said.
func (l *Lab) LinksLog() string { return l.path("links.log") }

func (l *Lab) path(name string) string { return filepath.Join(l.Dir(), name) }

func (l *Lab) save() error {
	if err := whole.JSON(l.path(stateFile), 0o644, l.state); err != nil {
		return fmt.Errorf("write state of lab %s: %w", l.Name, err)
	}
	return nil
}

// SetLinks puts exactly these directions into force, but for those that a fault
// covers; all others do nothing. Loss and jitter follow the seed and the faults that
// there have been, each direction its own.
func (l *Lab) SetLinks(ctx context.Context, links []Link, seed uint64) error {
	return l.change(ctx, func() error { return l.setLinks(ctx, links, seed) })
}

func (l *Lab) setLinks(ctx context.Context, links []Link, seed uint64) error {
	directions, err := l.directions(links, seed)
	if err != nil {
		return err
	}
	if err := l.links.Set(ctx, directions); err != nil {
		return silent(err)
	}
	l.Links, l.Seed = links, seed
	return l.save()
}

// ChangeLinks is SetLinks for links that go on: they count on, and what is under
// way arrives as it would have. It tells the counters of what was in force until
// then, by the names of the directions.
func (l *Lab) ChangeLinks(ctx context.Context, links []Link, seed uint64) (ended map[string]impair.Counters, err error) {
	err = l.change(ctx, func() error {
		ended, err = l.changeLinks(ctx, links, seed)
		return err
	})
	return ended, err
}

func (l *Lab) changeLinks(ctx context.Context, links []Link, seed uint64) (ended map[string]impair.Counters, err error) {
	directions, err := l.directions(links, seed)
	if err != nil {
		return nil, err
	}
	if ended, err = l.links.Change(ctx, directions); err != nil {
		return nil, silent(err)
	}
	l.Links, l.Seed = links, seed
	return ended, l.save()
}

// directions are what links and faults come to.
func (l *Lab) directions(links []Link, seed uint64) ([]impair.Direction, error) {
	var directions []impair.Direction
	seed += l.turns()
	for i, link := range effective(links, l.Faults) {
		m, err := match(&l.Topology, link.From, link.To)
		if err != nil {
			return nil, err
		}
		if err := link.Stages().Check(); err != nil {
			return nil, fmt.Errorf("link %s: %w", link.Name(), err)
		}
		directions = append(directions, impair.Direction{
			Name: link.Name(), Match: m, Unit: link.Unit, Seed: seed + uint64(i), Impairment: link.Does, Then: link.Then,
		})
	}
	return directions, nil
}

// turns are no two times the same as faults begin and end, and 0 before the first:
// else each would have every link begin its losses and jitter anew, and rare losses
// would never come. They are above the numbers of the directions.
func (l *Lab) turns() uint64 {
	const madeBits, inForceBits = 32, 20
	return uint64(l.Made)<<madeBits + uint64(len(l.Faults))<<inForceBits
}

// LinkStatus asks the emulator for its back end and counters.
func (l *Lab) LinkStatus(ctx context.Context) (emulator.Status, error) {
	status, err := l.links.Status(ctx)
	return status, silent(err)
}

// Check says whether every part of the lab lives.
func (l *Lab) Check(ctx context.Context) error {
	for ref, h := range l.Nodes {
		if !h.alive() {
			return fmt.Errorf("lab %s: node %s: %w", l.Name, ref, errNotAlive)
		}
	}
	if !l.WAN.alive() {
		return fmt.Errorf("lab %s: the WAN: %w", l.Name, errNotAlive)
	}
	switch _, err := l.LinkStatus(ctx); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED): // nobody is at the socket
		return fmt.Errorf("lab %s: %w: %w", l.Name, errNotAlive, err)
	case err != nil:
		return fmt.Errorf("lab %s: %w", l.Name, err)
	}
	return nil
}
