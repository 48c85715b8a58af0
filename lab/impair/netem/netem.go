// Package netem emulates links with the kernel's own sch_netem, by netlink. It
// sees no packet. It works in the network namespace of the calling thread;
// start at Start, and at steps for what a direction becomes.
//
// A packet: nftables rule (writes the class to skb->priority) → prio at the
// interface where the direction ends → the direction's band: tbf (segments
// super-packets) → netem, one to three for each stage. What no direction names
// takes the first band, a plain pfifo that goes before all others.
//
// Where netem differs from lab/impair/userspace:
//   - The queue is bounded in packets, not bytes: its bytes as full frames, and
//     the full frames under way in the delay. Smaller packets fill it earlier; a
//     super-packet, where the unit is one, takes a single place.
//   - Jitter falls on a packet before its serialisation, not after it, where the
//     direction has a rate and keeps order. It is at most 2.147 s; where a
//     recorded distribution reaches further than 4 deviations, a quarter of its
//     reach is.
//   - Corruption flips a bit anywhere in the first, linear part of the frame: a
//     UDP datagram whole, of TCP the headers alone, the Ethernet header always.
//     Of a frame of 54 bytes one flip in nine hits the sender's hardware address
//     and harms nothing; where it hits the IP header the packet is lost.
//   - A duplicated packet's copy has a delay and a jitter of its own, and enters
//     the tree at its root. So netem duplicates only where it is the only netem of
//     an interface, and has no loss; Set refuses the rest.
//   - A packet that is reordered skips what follows its netem, so Set refuses a
//     stage behind one that reorders.
//   - A link in bursts begins in the good state.
//   - Set drops the packets that are under way.
//   - Between nodes of one cluster every frame is of the link, those of ARP and of
//     neighbour discovery, too.
//   - The seed has an effect from Linux 6.6 on, and none on which bit is flipped.
//   - Counters.Packets counts super-packets that passed as their segments, while
//     a loss of one counts once: with impair.UnitSuperpacket the ratio of the two
//     is not the loss. Copies count as packets. Counters.Bytes has no lost packets
//     in it. Nothing is ever Late, Duplicated or Corrupted, and gaps are not
//     known: the kernel does not say.
package netem

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/thread"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/classify"
	"skerry.dev/skerry/lab/impair/recording"
)

// UnsupportedError says which qdisc this kernel lacks.
type UnsupportedError struct {
	// Qdisc is its kind: netem, or prio or tbf, which it is used with.
	Qdisc string
	// Err is what the kernel answered.
	Err error
}

// Error names the kernel's module and what to use instead.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("netem links need a %s qdisc, which this kernel does not make (module sch_%s, Linux 4.15 or newer; the link back end userspace does without): %v", e.Qdisc, e.Qdisc, e.Err)
}

// Unwrap yields the kernel's answer.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// Probe makes every kind of qdisc that a direction can need, in a network
// namespace of its own. Where the kernel lacks one it is an *UnsupportedError.
func Probe() error {
	return thread.InFreshNet(probeHere)
}

func probeHere() error {
	everything := impair.Direction{Name: "probe", Match: impair.Match{Out: "lo"}}
	everything.Delay, everything.Jitter, everything.Distribution, everything.Rate = 1e6, 1e6, impair.Pareto, 1e6
	everything.Loss, everything.Corrupt, everything.Reorder = 0.5, 0.5, 0.25
	everything.Burst = impair.Burst{Enter: 0.5, Leave: 0.5}
	o, err := prepare([]impair.Direction{everything}, recording.Kept{})
	if err != nil {
		return err
	}
	return o.places[0].make()
}

// Backend holds the qdiscs of one namespace.
type Backend struct {
	rules *classify.Table

	// mu guards what is in force.
	mu     sync.Mutex
	places []placed
	ruled  []classify.Rule
	// files that the directions follow.
	files recording.Kept
	// past are the counters of what was in force before a Change, by name.
	past map[string]impair.Counters
}

// placed is a tree that stands at an interface.
type placed struct {
	tree
	link netlink.Link
}

// Start makes the classifier's chains; it impairs nothing yet.
func Start() (*Backend, error) {
	if err := Probe(); err != nil {
		return nil, err
	}
	rules, err := classify.Open()
	if err != nil {
		return nil, err
	}
	return &Backend{rules: rules}, nil
}

// Set puts exactly these directions into force; their counters start anew, and
// files are read again. Packets under way are dropped, and until Set returns packets
// may pass unimpaired. An order that is refused changes nothing; after an error of
// the kernel no direction is in force.
func (b *Backend) Set(directions []impair.Direction) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, err := prepare(directions, recording.Kept{})
	if err != nil {
		return err
	}
	return b.setLocked(o)
}

// readyOrder is an order of which nothing is in force yet.
type readyOrder struct {
	places []placed
	rules  []classify.Rule
	files  recording.Kept
}

// prepare refuses what cannot be made.
func prepare(directions []impair.Direction, known recording.Kept) (readyOrder, error) {
	o := readyOrder{files: known.Next()}
	directions, err := fill(directions, o.files)
	if err != nil {
		return o, err
	}
	trees, err := plan(directions)
	if err != nil {
		return o, err
	}
	for _, t := range trees {
		link, err := netlink.LinkByName(t.out)
		if err != nil {
			return o, fmt.Errorf("find interface %s: %w", t.out, err)
		}
		o.places = append(o.places, placed{t, link})
	}
	o.rules = rules(trees, directions)
	return o, nil
}

func (b *Backend) setLocked(o readyOrder) error {
	if err := b.clearLocked(); err != nil {
		return err
	}
	if err := b.placeLocked(o); err != nil {
		return errors.Join(err, b.clearLocked())
	}
	return nil
}

func (b *Backend) placeLocked(o readyOrder) error {
	for _, p := range o.places {
		if err := p.make(); err != nil {
			return err
		}
		b.places = append(b.places, p)
	}
	b.ruled, b.files = o.rules, o.files
	return b.rules.Set(b.ruled)
}

// make makes the tree, whole or not at all.
func (p placed) make() error {
	// An emulator that died may have left a tree; one of the same name would be
	// changed in place.
	if err := remove(p.link, p.tree); err != nil {
		return err
	}
	for _, q := range p.qdiscs(p.link.Attrs().MTU) {
		err := request(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, p.link, q)
		switch {
		case err == nil:
			continue
		case errors.Is(err, unix.ENOENT):
			err = &UnsupportedError{Qdisc: q.kind, Err: err}
		default:
			err = fmt.Errorf("make %s qdisc at interface %s: %w", q.kind, p.out, err)
		}
		return errors.Join(err, remove(p.link, p.tree))
	}
	return nil
}

// remove takes a tree away by its root, if it stands there.
func remove(link netlink.Link, t tree) error {
	root := qdisc{kind: "prio", handle: t.handle, parent: handleRoot}
	err := request(unix.RTM_DELQDISC, 0, link, root)
	switch {
	case errors.Is(err, unix.ENODEV), // the interface has gone, its qdiscs too
		errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINVAL): // no root, or one of another name
		return nil
	case err != nil:
		return fmt.Errorf("remove qdiscs of interface %s: %w", t.out, err)
	}
	return nil
}

func request(command, flags int, link netlink.Link, q qdisc) error {
	r := nl.NewNetlinkRequest(command, flags|unix.NLM_F_ACK)
	r.AddData(&nl.TcMsg{
		Family: nl.FAMILY_ALL, Ifindex: int32(link.Attrs().Index), Handle: q.handle, Parent: q.parent,
	})
	r.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(q.kind)))
	r.AddData(nl.NewRtAttr(nl.TCA_OPTIONS, q.options))
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// clearLocked removes the rules and then the qdiscs.
func (b *Backend) clearLocked() error {
	err := b.rules.Set(nil)
	for _, p := range b.places {
		err = errors.Join(err, remove(p.link, p.tree))
	}
	b.places, b.ruled, b.files, b.past = nil, nil, recording.Kept{}, nil
	return err
}

// Counters of the directions in force, by name; the package doc says what they
// cannot tell.
func (b *Backend) Counters() (map[string]impair.Counters, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.countersLocked()
}

func (b *Backend) countersLocked() (map[string]impair.Counters, error) {
	found, err := b.readLocked()
	if err != nil {
		return nil, err
	}
	return countAll(b.places, found, b.past)
}

// readLocked reads the statistics of each place.
func (b *Backend) readLocked() ([]map[uint32]statistics, error) {
	all := make([]map[uint32]statistics, len(b.places))
	for i, p := range b.places {
		found, err := read(p.link)
		if err != nil {
			return nil, fmt.Errorf("read qdiscs of interface %s: %w", p.out, err)
		}
		all[i] = found
	}
	return all, nil
}

// read the statistics of an interface's qdiscs, by handle.
func read(link netlink.Link) (map[uint32]statistics, error) {
	r := nl.NewNetlinkRequest(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
	r.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(link.Attrs().Index)})
	answers, err := r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
	if err != nil {
		return nil, err
	}
	found := make(map[uint32]statistics, len(answers))
	for _, answer := range answers {
		// The kernel tells of all interfaces.
		head := nl.DeserializeTcMsg(answer)
		if int(head.Ifindex) != link.Attrs().Index {
			continue
		}
		attrs, err := nl.ParseRouteAttr(answer[head.Len():])
		if err != nil {
			return nil, err
		}
		if found[head.Handle], err = told(attrs); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Close removes all rules and qdiscs; packets that wait are dropped.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.clearLocked(), b.rules.Close())
}
