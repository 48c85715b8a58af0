package netem

import (
	"encoding/binary"
	"fmt"
	"math"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// What a namespace can hold. Every qdisc is named by its place alone, so the
// same directions always make the same tree.
const (
	// bandsMax is sch_prio's own bound (TCQ_PRIO_BANDS). The first band is for
	// everything that no direction names.
	bandsMax = 16
	// directionsMax is how many impaired directions can end at one interface.
	directionsMax = bandsMax - 1
	// interfacesMax bounds the interfaces at which directions end.
	interfacesMax = 0x1000
	// rootMajor and the interface's index name a root; innerMajor, the band and
	// the step name a qdisc below it. Majors from 0x8000 are the kernel's.
	rootMajor, innerMajor = 0x1000, 0x2000
	stepsMax              = 4

	// heldMax bounds the packets that one direction holds.
	heldMax = 1 << 18
	// jitterMax is where netem's 32-bit arithmetic for uniform jitter ends, in ns.
	jitterMax = math.MaxInt32

	handleRoot = 0xffffffff
)

// qdisc is one queueing discipline as RTM_NEWQDISC wants it.
type qdisc struct {
	kind           string
	handle, parent uint32
	options        []byte
}

// tree is what stands at one interface: a prio qdisc, and in each of its bands
// the qdiscs of one direction.
type tree struct {
	out     string
	handle  uint32
	classes []class
}

// class is the band of one direction. Its id is what the classifier writes to
// skb->priority, which prio takes for the number of the band.
type class struct {
	impair.Direction
	id    uint32
	steps []step
}

// step is one qdisc of a direction; a packet passes a direction's steps in
// order. A splitter cuts super-packets into the segments they stand for, the
// others are netem's and do their part of the impairment.
type step struct {
	handle   uint32
	splitter bool
	impair.Impairment
}

// plan gives every direction that does anything its band.
func plan(directions []impair.Direction) ([]tree, error) {
	var trees []tree
	index := map[string]int{}
	for _, d := range directions {
		if d.IsZero() {
			continue
		}
		if d.Distribution != impair.Normal && d.Jitter > jitterMax {
			return nil, fmt.Errorf("link %s: netem cannot spread a uniform jitter of %s: 2.147s at most; choose the link back end userspace", d.Name, d.Jitter)
		}
		i, ok := index[d.Match.Out]
		if !ok {
			i = len(trees)
			if i == interfacesMax {
				return nil, fmt.Errorf("link %s: impaired links end at more than %d interfaces; choose the link back end userspace", d.Name, interfacesMax)
			}
			index[d.Match.Out] = i
			trees = append(trees, tree{out: d.Match.Out, handle: uint32(rootMajor+i) << 16})
		}
		t := &trees[i]
		if len(t.classes) == directionsMax {
			return nil, fmt.Errorf("link %s: more than %d impaired directions end at interface %s, which is what netem's prio can hold; choose the link back end userspace", d.Name, directionsMax, t.out)
		}
		band := len(t.classes) + 1
		t.classes = append(t.classes, class{
			Direction: d, id: t.handle | uint32(band+1), steps: steps(d, band),
		})
	}
	return trees, nil
}

// steps takes a direction apart where one netem would not do:
//   - netem decides once per super-packet, so a splitter goes first;
//   - it counts random losses and overflows as one, so where both can happen
//     the loss has a netem of its own;
//   - it never reorders where it has a rate, so that jitter comes after it.
func steps(d impair.Direction, band int) []step {
	var all []step
	add := func(splitter bool, i impair.Impairment) {
		major := innerMajor + band*stepsMax + len(all)
		all = append(all, step{handle: uint32(major) << 16, splitter: splitter, Impairment: i})
	}
	if d.SplitsPackets(d.Unit) {
		add(true, impair.Impairment{})
	}
	rest := d.Impairment
	if rest.Rate > 0 && rest.Loss > 0 {
		add(false, impair.Impairment{Loss: rest.Loss})
		rest.Loss = 0
	}
	if rest.Rate > 0 && rest.Reorder {
		add(false, impair.Impairment{Rate: rest.Rate, Queue: quantity.Size(rest.QueueBytes())})
		rest.Rate, rest.Queue = 0, 0
	}
	add(false, rest)
	return all
}

// qdiscs of the tree, parents before children, for an interface of an IP MTU
// in bytes.
func (t tree) qdiscs(mtu int) []qdisc {
	all := []qdisc{{kind: "prio", handle: t.handle, parent: handleRoot, options: prioOptions()}}
	frame := mtu + impair.EthernetHeader
	for _, c := range t.classes {
		parent := c.id
		for _, s := range c.steps {
			q := qdisc{kind: "netem", handle: s.handle, parent: parent}
			if s.splitter {
				q.kind, q.options = "tbf", splitterOptions(frame)
			} else {
				q.options = netemOptions(s.Impairment, c.Seed, frame)
			}
			all = append(all, q)
			// A tbf has the one class 1; netem, too, calls its child so.
			parent = s.handle | 1
		}
	}
	return all
}

// prioOptions is struct tc_prio_qopt. A zero priority map sends everything to
// the first band but what names a band by its class.
func prioOptions() []byte {
	const prioritiesMax = 16
	return append(binary.NativeEndian.AppendUint32(nil, bandsMax), make([]byte, prioritiesMax)...)
}

// Attributes of tbf and netem, as linux/pkt_sched.h numbers them.
const (
	tbfParms  = 1
	tbfRate64 = 4
	tbfBurst  = 6

	netemDelayDist = 2
	netemRate      = 6
	netemRate64    = 8
	netemLatency64 = 10
	netemJitter64  = 11
	netemPRNGSeed  = 14
)

// splitterOptions make a tbf that limits nothing, but cannot take more than one
// full frame at once: it has the kernel segment what is larger.
func splitterOptions(frame int) []byte {
	const (
		// unlimited, in bytes a second, lets a full frame go in 2 ns.
		unlimited = 1 << 40
		ethernet  = 1 // TC_LINKLAYER_ETHERNET
		limit     = math.MaxInt32
	)
	rate := []byte{0, ethernet, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff} // struct tc_ratespec
	parms := append(rate, make([]byte, len(rate))...)                     // no peak rate
	parms = binary.NativeEndian.AppendUint32(parms, limit)
	parms = append(parms, make([]byte, 8)...) // buffer, mtu: tbfBurst says it exactly
	b := appendAttr(nil, tbfParms, parms)
	b = appendAttr(b, tbfRate64, binary.NativeEndian.AppendUint64(nil, unlimited))
	return appendAttr(b, tbfBurst, binary.NativeEndian.AppendUint32(nil, uint32(frame)))
}

// netemOptions is struct tc_netem_qopt and the attributes after it. Attributes
// that a kernel does not know (the seed, before 6.6) it ignores.
func netemOptions(i impair.Impairment, seed uint64, frame int) []byte {
	var b []byte
	for _, field := range []uint32{
		0, held(i, frame), probability(float64(i.Loss)), 0, 0, 0, // latency, limit, loss, gap, duplicate, jitter
	} {
		b = binary.NativeEndian.AppendUint32(b, field)
	}
	b = appendAttr(b, netemLatency64, binary.NativeEndian.AppendUint64(nil, uint64(i.Delay)))
	if i.Jitter > 0 {
		b = appendAttr(b, netemJitter64, binary.NativeEndian.AppendUint64(nil, uint64(i.Jitter)))
	}
	if i.Jitter > 0 && i.Distribution == impair.Normal {
		b = appendAttr(b, netemDelayDist, normalTable())
	}
	if rate := byteRate(i); rate > 0 {
		short := binary.NativeEndian.AppendUint32(nil, uint32(min(rate, math.MaxUint32)))
		b = appendAttr(b, netemRate, append(short, make([]byte, 12)...)) // no overhead, no cells
		b = appendAttr(b, netemRate64, binary.NativeEndian.AppendUint64(nil, rate))
	}
	return appendAttr(b, netemPRNGSeed, binary.NativeEndian.AppendUint64(nil, seed))
}

// byteRate is the rate in bytes a second. With any rate netem lets no packet
// overtake another, so one at which a frame takes no time keeps jitter in order.
func byteRate(i impair.Impairment) uint64 {
	const timeless = 1 << 62
	switch {
	case i.Rate > 0:
		return max(1, uint64(i.Rate)/8)
	case i.Jitter > 0 && !i.Reorder:
		return timeless
	}
	return 0
}

// probability is a fraction in 2^-32, as netem compares it: it drops where a
// random number of 32 bits is not above it, and never at 0.
func probability(p float64) uint32 {
	if p == 0 {
		return 0
	}
	return uint32(min(max(math.Round(p*(1<<32))-1, 1), math.MaxUint32))
}

// held is netem's limit, in packets: the queue before the rate as full frames,
// and the full frames that are on their way meanwhile.
func held(i impair.Impairment, frame int) uint32 {
	if i.Rate == 0 {
		return heldMax
	}
	const normalReach = 4 // the table of the normal distribution ends there
	longest := (i.Delay + i.Jitter).Std().Seconds()
	if i.Distribution == impair.Normal {
		longest = (i.Delay + normalReach*i.Jitter).Std().Seconds()
	}
	underWay := longest * float64(i.Rate) / 8
	frames := math.Ceil(float64(i.QueueBytes())/float64(frame)) + math.Ceil(underWay/float64(frame))
	return uint32(min(frames, heldMax))
}

// appendAttr appends one route attribute, padded to 4 bytes.
func appendAttr(b []byte, kind uint16, value []byte) []byte {
	const header, alignment = 4, 4
	b = binary.NativeEndian.AppendUint16(b, uint16(header+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%alignment != 0 {
		b = append(b, 0)
	}
	return b
}

// normalTable is netem's table of the normal distribution, value by value the
// one that iproute2 ships: the inverse distribution function at 4096 points, on
// the grid that iproute2 searches, in 1/8192 of the standard deviation, as int16.
func normalTable() []byte {
	const entries, scale, grid = 4096, 8192, 0.00005
	b := make([]byte, 0, 2*entries)
	for i := range entries {
		p := (float64(i) + 0.125) / entries
		x := math.Floor(math.Sqrt2*math.Erfinv(2*p-1)/grid) * grid
		value := max(math.RoundToEven(x*scale), math.MinInt16)
		b = binary.NativeEndian.AppendUint16(b, uint16(int16(value)))
	}
	return b
}
