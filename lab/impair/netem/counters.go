package netem

import (
	"fmt"

	"skerry.dev/skerry/lab/impair"
)

// statistics are what the kernel keeps of one qdisc: packets and bytes (as
// Ethernet frames) that left it, packets that it or a qdisc below it dropped,
// packets that wait in it.
type statistics struct {
	packets, bytes, drops, held uint64
}

// counters reads a direction's counters off its qdiscs. Drops of a qdisc
// include those below it, so a difference of two tells where packets went:
// what the splitter dropped itself, no netem has seen; what the first netem
// dropped itself was lost at random, if it has a loss at all.
func (c class) counters(found map[uint32]statistics) (impair.Counters, error) {
	var splitter statistics
	var netems []statistics
	held := uint64(0)
	for _, s := range c.steps {
		one, ok := found[s.handle]
		if !ok {
			return impair.Counters{}, fmt.Errorf("link %s: its qdisc %x: has been removed by somebody else", c.Name, s.handle>>16)
		}
		// Kernels disagree on whether a netem counts what its child holds.
		held = max(held, one.held)
		if s.splitter {
			splitter = one
			continue
		}
		netems = append(netems, one)
	}
	first, below := netems[0], uint64(0)
	if len(netems) > 1 {
		below = netems[1].drops
	}
	last := netems[len(netems)-1]
	counters := impair.Counters{
		Packets:    last.packets + held + first.drops,
		Bytes:      last.bytes - min(last.bytes, last.packets*impair.EthernetHeader),
		Overflowed: first.drops,
		Missed:     splitter.drops - min(splitter.drops, first.drops),
	}
	if c.Loss > 0 {
		counters.Overflowed = below
		counters.Lost = first.drops - min(first.drops, below)
	}
	return counters, nil
}
