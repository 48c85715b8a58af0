package userspace

import (
	"sync/atomic"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/trace"
)

// direction is one direction of a link: the stages that a packet meets one after
// the other. The data-path thread alone uses it; only its counters are read from
// elsewhere.
type direction struct {
	stages []*stage
	// plain is that there is one stage, and that it is plain: as in most directions.
	plain bool
	// copies says for each stage whether one behind it copies or alters packets,
	// so that their bytes are kept until then.
	copies []bool
	// tolerance is how late a packet may leave before it counts as late, in ns.
	tolerance int64
	// before is the direction that this one goes on from, until its first packet.
	before *direction
	count  counters
}

// newDirection gives each stage its own random numbers.
func newDirection(stages impair.Stages, seed uint64) *direction {
	d := &direction{tolerance: int64(stages.Together().Tolerance())}
	for i, does := range stages {
		d.stages = append(d.stages, newStage(does, seed, uint64(i)))
		d.copies = append(d.copies, stages[i+1:].Copies())
	}
	d.plain = len(d.stages) == 1 && d.stages[0].plain
	return d
}

// replay begins the traces of all stages at a time.
func (d *direction) replay(began int64, open func(name string) (*trace.Trace, error)) error {
	for _, s := range d.stages {
		if err := s.replay(began, open); err != nil {
			return err
		}
	}
	return nil
}

// goOn has what waits for a rate go before what comes, and a burst and a trace go
// on, where the direction before had these in the same stage; of a stage that does what it
// did, nothing that comes overtakes what is under way.
func (d *direction) goOn() {
	if d.before == nil {
		return
	}
	d.before.goOn()
	for i, s := range d.stages[:min(len(d.stages), len(d.before.stages))] {
		was := d.before.stages[i]
		s.busyUntil = was.busyUntil
		s.bad = was.bad && s.Burst.Enter > 0
		if s.Trace == was.Trace {
			s.player = was.player
		}
		if s.Impairment == was.Impairment {
			s.lastDue = was.lastDue
		}
	}
	d.before = nil
}

// last reports that a packet has no stage behind this one.
func (d *direction) last(stage int) bool { return stage+1 >= len(d.stages) }

// counters are written by the data-path thread and read by the control side.
type counters struct {
	packets, bytes, lost, overflowed, late atomic.Uint64
	duplicated, corrupted, reordered       atomic.Uint64
	// came to each further stage.
	came [impair.StagesMax - 1]atomic.Uint64
	// refused are copies that the kernel did not take.
	refused atomic.Uint64
	lateMax atomic.Int64
}

// drop counts a packet that does not pass.
func (c *counters) drop(f fate) {
	if f == lose {
		c.lost.Add(1)
	} else {
		c.overflowed.Add(1)
	}
}

// tell counts what a stage has decided beside the fate.
func (c *counters) tell(o outcome) {
	if o.duplicated {
		c.duplicated.Add(1)
	}
	if o.corrupted {
		c.corrupted.Add(1)
	}
	if o.reordered {
		c.reordered.Add(1)
	}
}

// snapshot of the counters; missed comes from the kernel.
func (d *direction) snapshot(missed uint64) impair.Counters {
	c := &d.count
	seen := impair.Counters{
		Packets: c.packets.Load(), Bytes: c.bytes.Load(),
		Lost: c.lost.Load(), Overflowed: c.overflowed.Load(),
		Late: c.late.Load(), LateMaxNs: c.lateMax.Load(),
		Missed:     missed + c.refused.Load(),
		Duplicated: c.duplicated.Load(), Corrupted: c.corrupted.Load(), Reordered: c.reordered.Load(),
	}
	for i := range c.came {
		seen.Came[i] = c.came[i].Load()
	}
	return seen
}

// gaps are written by the data-path thread, and read and reset by the control
// side.
type gaps struct {
	max   atomic.Int64
	count atomic.Uint64
}

func (g *gaps) record(ns int64) {
	if ns > g.max.Load() {
		g.max.Store(ns)
	}
	if ns > int64(impair.GapBound) {
		g.count.Add(1)
	}
}

func (g *gaps) reset() {
	g.max.Store(0)
	g.count.Store(0)
}

func (g *gaps) snapshot() impair.Gaps {
	return impair.Gaps{MaxNs: g.max.Load(), Count: g.count.Load()}
}

// frameBytes is what an IP packet of a length takes as Ethernet frames. A
// super-packet counts as the segments it stands for: head holds its headers,
// which every segment repeats.
func frameBytes(length int, head []byte) int {
	if length <= impair.DefaultMTU {
		return length + impair.EthernetHeader
	}
	headers := headerBytes(head)
	perSegment := impair.DefaultMTU - headers
	segments := (length - headers + perSegment - 1) / perSegment
	return length + (segments-1)*headers + segments*impair.EthernetHeader
}

// headerBytes is the length of the IP and transport headers of a packet.
func headerBytes(head []byte) int {
	const udpLen, tcp = 8, 6
	network, protocol := networkHeader(head)
	if protocol == tcp && len(head) > network+12 {
		return network + int(head[network+12]>>4)*4
	}
	return network + udpLen
}

// networkHeader is the length of the IP header and the protocol above it.
func networkHeader(head []byte) (length int, protocol byte) {
	const ipv4Min, ipv6Len = 20, 40
	switch {
	case len(head) >= ipv4Min && head[0]>>4 == 4:
		return int(head[0]&0xf) * 4, head[9]
	case len(head) >= ipv6Len && head[0]>>4 == 6:
		return ipv6Len, head[6]
	}
	return ipv4Min, 0
}
