package netem

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"

	"skerry.dev/skerry/lab/impair"
)

// statistics are what the kernel keeps of one qdisc: packets and bytes (as
// Ethernet frames) that left it, packets that it or a qdisc below it dropped,
// packets that wait in it, packets that it put before the others.
type statistics struct {
	packets, bytes, drops, held, requeues uint64
}

// told reads the statistics among a qdisc's attributes. Those of the first kind
// (TCA_STATS), which the netlink library prefers, have no requeues.
func told(attrs []syscall.NetlinkRouteAttr) (statistics, error) {
	var s statistics
	for _, attr := range attrs {
		if attr.Attr.Type&nl.NLA_TYPE_MASK != nl.TCA_STATS2 {
			continue
		}
		inner, err := nl.ParseRouteAttr(attr.Value)
		if err != nil {
			return s, err
		}
		for _, a := range inner {
			word := func(i int) uint64 { return uint64(binary.NativeEndian.Uint32(a.Value[i:])) }
			switch {
			case a.Attr.Type == nl.TCA_STATS_BASIC && len(a.Value) >= 12: // struct gnet_stats_basic
				s.bytes, s.packets = binary.NativeEndian.Uint64(a.Value), word(8)
			case a.Attr.Type == nl.TCA_STATS_QUEUE && len(a.Value) >= 16: // struct gnet_stats_queue
				s.held, s.drops, s.requeues = word(0), word(8), word(12)
			}
		}
	}
	return s, nil
}

// countAll has the counters of all directions by what each place's qdiscs have found, added
// to those of the past.
func countAll(places []placed, found []map[uint32]statistics, past map[string]impair.Counters) (map[string]impair.Counters, error) {
	all := map[string]impair.Counters{}
	for i, p := range places {
		for _, c := range p.classes {
			counters, err := c.counters(found[i])
			if err != nil {
				return nil, err
			}
			all[c.Name] = past[c.Name].Plus(counters)
		}
	}
	return all, nil
}

// rebase is the past with which places say of the same statistics what was said before:
// what one drops is lost where it has a loss by now, and has overflowed where it has none.
func rebase(before map[string]impair.Counters, places []placed, found []map[uint32]statistics) (map[string]impair.Counters, error) {
	now, err := countAll(places, found, nil)
	if err != nil {
		return nil, err
	}
	past := map[string]impair.Counters{}
	for name, b := range before {
		n := now[name]
		past[name] = impair.Counters{ // below 0 they wrap, and back when they are added to
			Packets: b.Packets - n.Packets, Bytes: b.Bytes - n.Bytes, Lost: b.Lost - n.Lost,
			Overflowed: b.Overflowed - n.Overflowed, Missed: b.Missed - n.Missed, Reordered: b.Reordered - n.Reordered,
		}
	}
	return past, nil
}

// counters reads a direction's counters off its qdiscs, found by their handles.
// Drops of a qdisc include those below it, so a difference of two tells what one
// dropped itself: the splitter what no netem has seen, a netem what was lost at
// random, if it has a loss, and what overflowed if it has none.
func (c class) counters(found map[uint32]statistics) (impair.Counters, error) {
	all := make([]statistics, 0, len(c.steps)+1)
	for _, s := range c.steps {
		one, ok := found[s.handle]
		if !ok {
			return impair.Counters{}, fmt.Errorf("link %s: its qdisc %x: has been removed by somebody else", c.Name, s.handle>>16)
		}
		all = append(all, one)
	}
	last := all[len(all)-1]
	counters := impair.Counters{Bytes: last.bytes - min(last.bytes, last.packets*impair.EthernetHeader)}
	all = append(all, statistics{})
	var held uint64
	for i, s := range c.steps {
		own := all[i].drops - min(all[i].drops, all[i+1].drops)
		switch {
		case s.splitter:
			counters.Missed += own
		case s.Lossy():
			counters.Lost += own
		default:
			counters.Overflowed += own
		}
		// Kernels disagree on whether a netem counts what its child holds.
		held = max(held, all[i].held)
		counters.Reordered += all[i].requeues
	}
	counters.Packets = last.packets + held + counters.Lost + counters.Overflowed
	return counters, nil
}
