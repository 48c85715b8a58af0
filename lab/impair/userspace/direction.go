package userspace

import (
	"math/rand/v2"
	"sync/atomic"

	"skerry.dev/skerry/lab/impair"
)

// fate is what a direction decided for a packet.
type fate uint8

const (
	pass fate = iota
	lose
	overflow
)

// direction decides due times and losses for one direction of a link. It is
// pure but for its own state, and used by the data-path thread alone; only its
// counters are read from elsewhere.
type direction struct {
	impair.Impairment
	queueBytes float64
	nsPerByte  float64
	random     *rand.Rand
	// tolerance is how late a packet may leave before it counts as late, in ns.
	tolerance int64
	// busyUntil is when the last frame will have left the rate limiter,
	// lastDue when the last packet is due; ns on the engine's clock.
	busyUntil, lastDue int64
	count              counters
}

// counters are written by the data-path thread and read by the control side.
type counters struct {
	packets, bytes, lost, overflowed, late atomic.Uint64
	lateMax                                atomic.Int64
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

func newDirection(i impair.Impairment, seed uint64) *direction {
	d := &direction{Impairment: i, queueBytes: float64(i.QueueBytes()), tolerance: int64(i.Tolerance())}
	d.random = rand.New(rand.NewPCG(seed, 0x736b65727279))
	if i.Rate > 0 {
		d.nsPerByte = 8e9 / float64(i.Rate)
	}
	return d
}

// admit decides the fate of a packet that arrived at a time (ns) and takes
// frame bytes on the wire, and when it is due: serialisation, then propagation.
func (d *direction) admit(arrival int64, frame int) (due int64, f fate) {
	if d.Loss > 0 && d.random.Float64() < float64(d.Loss) {
		return 0, lose
	}
	due = arrival
	if d.nsPerByte > 0 {
		backlog := max(0, float64(d.busyUntil-arrival)) / d.nsPerByte
		if backlog > 0 && backlog+float64(frame) > d.queueBytes {
			return 0, overflow
		}
		d.busyUntil = max(d.busyUntil, arrival) + int64(float64(frame)*d.nsPerByte)
		due = d.busyUntil
	}
	due += max(0, int64(d.Delay)+d.jitter())
	if !d.Reorder {
		due = max(due, d.lastDue)
		d.lastDue = due
	}
	return due, pass
}

func (d *direction) jitter() int64 {
	switch {
	case d.Jitter == 0:
		return 0
	case d.Distribution == impair.Normal:
		return int64(d.random.NormFloat64() * float64(d.Jitter))
	default:
		return int64((2*d.random.Float64() - 1) * float64(d.Jitter))
	}
}

// snapshot of the counters; missed comes from the kernel.
func (d *direction) snapshot(missed uint64) impair.Counters {
	return impair.Counters{
		Packets: d.count.packets.Load(), Bytes: d.count.bytes.Load(),
		Lost: d.count.lost.Load(), Overflowed: d.count.overflowed.Load(),
		Late: d.count.late.Load(), LateMaxNs: d.count.lateMax.Load(),
		Missed: missed,
	}
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
	const ipv4Min, ipv6Len, udpLen, tcp = 20, 40, 8, 6
	var network int
	var protocol byte
	switch {
	case len(head) >= ipv4Min && head[0]>>4 == 4:
		network, protocol = int(head[0]&0xf)*4, head[9]
	case len(head) >= ipv6Len && head[0]>>4 == 6:
		network, protocol = ipv6Len, head[6]
	default:
		return ipv4Min + udpLen
	}
	if protocol == tcp && len(head) > network+12 {
		return network + int(head[network+12]>>4)*4
	}
	return network + udpLen
}
