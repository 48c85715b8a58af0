package host

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// FaultKind says what goes wrong.
type FaultKind string

// Faults that a lab can have.
const (
	// Cut has links lose everything.
	Cut FaultKind = "cut"
	// Degrade has links do something in place of what was set.
	Degrade FaultKind = "degrade"
	// Freeze stops processes where they are (SIGSTOP). The node's kernel goes on:
	// it answers pings, takes connections and acknowledges what is sent.
	Freeze FaultKind = "freeze"
	// Kill of a node takes it off both networks and then ends its processes, so
	// that nobody is told; its namespaces stay. Kill of a process ends it alone,
	// and its connections are closed by the kernel as after any crash.
	Kill FaultKind = "kill"
	// StopPlane ends the control plane of a cluster, which is processes of its first
	// node; what had started them starts them anew to undo it.
	StopPlane FaultKind = "stop-plane"
)

// Fault is something that goes wrong on purpose: with links, or with a node or a
// process in it.
type Fault struct {
	// ID is its number in the lab, from 1 and never used again.
	ID   int       `json:"id"`
	Kind FaultKind `json:"kind"`
	// Links are the directions that a cut or a degradation covers, with what they
	// do while it lasts. A direction between clusters covers those between nodes
	// of the two.
	Links []Link `json:"links,omitempty"`
	// Node that is frozen or killed; with a Process, that one alone. Of a control
	// plane it is the first of its cluster.
	Node topology.Ref `json:"node,omitempty"`
	// Process is its name or that of a program in it, as Running tells them.
	Process string `json:"process,omitempty"`
	// Plane are the names of the processes that are the node's control plane.
	Plane []string `json:"plane,omitempty"`
	// Began is when, by the machine's clock.
	Began time.Time `json:"began"`
}

// Errors of faults that a caller tells apart.
var (
	ErrNoFault   = errors.New("no such fault is in force")
	ErrInForce   = errors.New("the fault is in force already")
	ErrNoProcess = errors.New("no such process runs")
)

// CutLink is a fault that has directions lose everything.
func CutLink(directions ...Link) Fault {
	f := Fault{Kind: Cut}
	for _, d := range directions {
		// All are lost, so none need be split.
		f.Links = append(f.Links, Link{From: d.From, To: d.To, Unit: impair.UnitSuperpacket, Does: impair.Impairment{Loss: 1}})
	}
	return f
}

// Target is what the fault befalls: "c1 > c2", "c1/head", "c1/head:web", or of a
// control plane "c1".
func (f Fault) Target() string {
	switch {
	case f.Kind == StopPlane:
		cluster, _ := f.Node.Split()
		return cluster
	case f.Process != "":
		return string(f.Node) + ":" + f.Process
	case f.Node != "":
		return string(f.Node)
	}
	text := ""
	for i, l := range f.Links {
		if i > 0 {
			text += ", "
		}
		text += string(l.From) + " > " + string(l.To)
	}
	return text
}

// same says that both befall the same in the same way.
func (f Fault) same(o Fault) bool {
	return f.Kind == o.Kind && f.Target() == o.Target()
}

// Inject has a fault begin, which lasts until Undo, whatever process asks for
// it. It is recorded before it begins: where this process is killed in between,
// Undo still mends it, and so where the emulator was too late to answer. A process
// that was killed leaves nothing to undo: that is not recorded, and the ID is 0.
func (l *Lab) Inject(ctx context.Context, f Fault) (Fault, error) {
	if err := l.checkFault(f); err != nil {
		return f, err
	}
	if f.Kind == Kill && f.Process != "" {
		return f, l.signal(f, unix.SIGKILL)
	}
	err := l.change(ctx, func() error {
		if slices.ContainsFunc(l.Faults, f.same) {
			return fmt.Errorf("%s %s: %w", f.Kind, f.Target(), ErrInForce)
		}
		l.Made++
		f.ID, f.Began = l.Made, time.Now()
		before := l.Faults
		l.Faults = append(slices.Clone(before), f)
		if err := l.save(); err != nil {
			return err
		}
		// From here on an order is not left half done: each ends by itself in time.
		ctx := context.WithoutCancel(ctx)
		err := l.begin(ctx, f)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errLate):
			return fmt.Errorf("fault %d may be in force: %w", f.ID, err)
		}
		l.Faults = before
		if !errors.Is(err, ErrSilent) {
			err = errors.Join(err, l.mend(ctx, f))
		}
		return errors.Join(err, l.save())
	})
	return f, err
}

// checkFault refuses what befalls nothing that there is, before anything is done.
func (l *Lab) checkFault(f Fault) error {
	switch f.Kind {
	case Cut, Degrade:
		for _, d := range f.Links {
			if _, err := match(&l.Topology, d.From, d.To); err != nil {
				return err
			}
		}
		return nil
	case Freeze, Kill, StopPlane:
		_, err := l.Topology.Node(f.Node)
		return err
	}
	return fmt.Errorf("no fault %q", f.Kind)
}

func (l *Lab) begin(ctx context.Context, f Fault) error {
	switch f.Kind {
	case Freeze:
		return l.signal(f, unix.SIGSTOP)
	case Kill:
		if err := l.plugIn(f.Node, false); err != nil {
			return err
		}
		err := l.signal(f, unix.SIGKILL)
		if errors.Is(err, ErrNoProcess) {
			return nil // a node in which nothing runs can be switched off, too
		}
		return err
	case StopPlane:
		return l.signal(f, unix.SIGKILL)
	}
	_, err := l.changeLinks(ctx, l.Links, l.Seed)
	return err
}

// Undo ends a fault: links do what was set again, processes go on from where they
// were, a node is on its networks again, with none of its processes.
func (l *Lab) Undo(ctx context.Context, id int) error {
	return l.UndoWith(ctx, id, func(context.Context, Fault) error { return nil })
}

// UndoWith is Undo for faults that have more to mend than the lab itself knows of:
// they are in force until that is done, and can be undone again where it fails.
func (l *Lab) UndoWith(ctx context.Context, id int, more func(context.Context, Fault) error) error {
	return l.change(ctx, func() error {
		i := slices.IndexFunc(l.Faults, func(f Fault) bool { return f.ID == id })
		if i < 0 {
			return fmt.Errorf("fault %d of lab %s: %w", id, l.Name, ErrNoFault)
		}
		f := l.Faults[i]
		l.Faults = slices.Delete(slices.Clone(l.Faults), i, i+1)
		ctx := context.WithoutCancel(ctx)
		if err := l.mend(ctx, f); err != nil {
			return err
		}
		if err := more(ctx, f); err != nil {
			return err
		}
		return l.save()
	})
}

// mend puts right what a fault did, which is in l.Faults no more.
func (l *Lab) mend(ctx context.Context, f Fault) error {
	switch f.Kind {
	case Freeze:
		return l.thaw(f)
	case Kill:
		return l.plugIn(f.Node, true)
	case StopPlane:
		return nil // its programs are no business of the lab's
	}
	_, err := l.changeLinks(ctx, l.Links, l.Seed)
	return err
}

// LinksInForce are the links as they were set, but for those that a fault covers.
func (l *Lab) LinksInForce() []Link { return effective(l.Links, l.Faults) }

// effective has each fault take the place of the links that it covers, a later one
// that of an earlier one. Links stay in their order, on which their seeds depend;
// directions that nobody had set follow.
func effective(links []Link, faults []Fault) []Link {
	links = slices.Clone(links)
	for _, f := range faults {
		for _, d := range f.Links {
			found := false
			for i, l := range links {
				if d.covers(l) {
					found = found || d.Name() == l.Name()
					links[i] = d
					links[i].From, links[i].To = l.From, l.To
				}
			}
			if !found {
				links = append(links, d)
			}
		}
	}
	return links
}

// FaultOf is the ID of the fault that covers a direction, 0 where none does.
func (l *Lab) FaultOf(direction Link) int {
	for _, f := range slices.Backward(l.Faults) {
		if slices.ContainsFunc(f.Links, func(d Link) bool { return d.covers(direction) }) {
			return f.ID
		}
	}
	return 0
}

// covers says that a direction is another one, or that of its clusters.
func (l Link) covers(o Link) bool {
	if l.Name() == o.Name() {
		return true
	}
	from, _ := o.From.Split()
	to, _ := o.To.Split()
	return l.From == topology.Ref(from) && l.To == topology.Ref(to)
}

// EditLinks puts into force what edit makes of the links that are set.
func (l *Lab) EditLinks(ctx context.Context, edit func([]Link) []Link) error {
	return l.change(ctx, func() error {
		return l.setLinks(ctx, edit(slices.Clone(l.Links)), l.Seed)
	})
}

// silent says of an order's error that no answer came: the emulator has ended, or
// hangs, and may do it yet (errLate). That the caller ended is no such error.
func silent(err error) error {
	broken, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok || errors.Is(err, context.Canceled):
		return err
	case broken.Timeout():
		return errLate
	}
	return fmt.Errorf("%w: %w", ErrSilent, broken.Err)
}

// carrierWait bounds how long a node's interfaces may take to come up: the kernel
// tells of a carrier once a second.
const (
	carrierWait  = 5 * time.Second
	carrierPause = 5 * time.Millisecond
)

// plugIn takes a node's two interfaces up or down, at the end that is in the WAN:
// what is set within the node stays. Those that it takes up carry packets when it
// returns, and whoever the node looked for in vain, or who looked for it, is found at
// once.
func (l *Lab) plugIn(node topology.Ref, up bool) error {
	where, err := locate(&l.Topology, node)
	if err != nil {
		return err
	}
	wan, err := openHandle(l.WAN)
	if err != nil {
		return err
	}
	defer wan.Close()
	inside, err := openHandle(l.Nodes[node])
	if err != nil {
		return err
	}
	defer inside.Close()
	data := portName(where.cluster, where.node)
	wires := []struct{ bridge, port, inside string }{
		{bridgeName(where.cluster), data, DataInterface}, {mgmtBridge, data + mgmtSuffix, MgmtInterface},
	}
	change := wan.LinkSetDown
	if up {
		change = wan.LinkSetUp
	}
	for _, w := range wires {
		port, err := wan.LinkByName(w.port)
		if err != nil {
			return fmt.Errorf("find interface %s: %w", w.port, err)
		}
		if err := change(port); err != nil {
			return fmt.Errorf("change interface %s: %w", w.port, err)
		}
	}
	if !up {
		return nil
	}
	for _, w := range wires {
		// A bridge is down as well as long as all its ports are.
		if err := errors.Join(awaitCarrier(wan, w.port), awaitCarrier(inside, w.inside), awaitCarrier(wan, w.bridge)); err != nil {
			return err
		}
	}
	n, err := l.Topology.Node(node)
	if err != nil {
		return err
	}
	return errors.Join(forgetNeighbours(inside), l.announce(n), hasten(data)) // a thread ends with its port
}

func awaitCarrier(h *netlink.Handle, name string) error {
	for range carrierWait / carrierPause {
		link, err := h.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find interface %s: %w", name, err)
		}
		if link.Attrs().OperState == netlink.OperUp {
			return nil
		}
		time.Sleep(carrierPause)
	}
	return fmt.Errorf("interface %s does not come up within %s", name, carrierWait)
}
