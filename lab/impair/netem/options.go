package netem

import (
	"encoding/binary"
	"math"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// heldMax bounds the packets that one netem holds.
const heldMax = 1 << 18

// Attributes of netem, as linux/pkt_sched.h numbers them.
const (
	netemDelayDist = 2
	netemReorder   = 3
	netemCorrupt   = 4
	netemLoss      = 5
	netemRate      = 6
	netemRate64    = 8
	netemLatency64 = 10
	netemJitter64  = 11
	netemPRNGSeed  = 14

	netemLossGE = 2 // within netemLoss
)

// netemOptions is struct tc_netem_qopt and the attributes after it. A qdisc that is
// changed keeps the rate, the corruption and the table of the distribution that it
// is told nothing of, so it is always told what there is none of, too. Attributes
// that a kernel does not know (the seed, before 6.6) it ignores.
func netemOptions(i impair.Impairment, seed uint64, frame int) []byte {
	// A gap of 1 has every packet meet the chance to be reordered.
	gap := uint32(0)
	if i.Reorder > 0 {
		gap = 1
	}
	const latency, jitter = 0, 0 // which the attributes of 64 bits say
	b := appendUint32s(nil, latency, held(i, frame), chance(float64(i.Loss)), gap, chance(float64(i.Duplicate)), jitter)
	b = appendAttr(b, netemLatency64, binary.NativeEndian.AppendUint64(nil, uint64(i.Delay)))
	if i.Jitter > 0 {
		b = appendAttr(b, netemJitter64, binary.NativeEndian.AppendUint64(nil, uint64(deviation(i))))
		b = appendAttr(b, netemDelayDist, distribution(i))
	}
	const correlation = 0
	if i.Reorder > 0 {
		b = appendAttr(b, netemReorder, appendUint32s(nil, chance(float64(i.Reorder)), correlation))
	}
	b = appendAttr(b, netemCorrupt, appendUint32s(nil, chance(float64(i.Corrupt)), correlation))
	if i.Burst.Enter > 0 {
		b = appendAttr(b, netemLoss, appendAttr(nil, netemLossGE, bursts(i)))
	}
	const noOverhead, noCell, noCellOverhead = 0, 0, 0
	rate := byteRate(i)
	b = appendAttr(b, netemRate, appendUint32s(nil, uint32(min(rate, math.MaxUint32)), noOverhead, noCell, noCellOverhead))
	b = appendAttr(b, netemRate64, binary.NativeEndian.AppendUint64(nil, rate))
	return appendAttr(b, netemPRNGSeed, binary.NativeEndian.AppendUint64(nil, seed))
}

// bursts is struct tc_netem_gemodel: p, r, h and 1-k. The kernel compares a
// random number of 32 bits with each; in the bad state it drops what is above h.
func bursts(i impair.Impairment) []byte {
	below := func(p float64) uint32 { return uint32(min(math.Round(p*(1<<32)), math.MaxUint32)) }
	kept := math.MaxUint32 - below(float64(i.Burst.Drops()))
	return appendUint32s(nil, below(float64(i.Burst.Enter)), below(float64(i.Burst.Leave)), kept, below(float64(i.Loss)))
}

// byteRate is the rate in bytes a second. With any rate netem lets no packet
// overtake another, so one at which a frame takes no time keeps jitter in order.
func byteRate(i impair.Impairment) uint64 {
	const timeless = 1 << 62
	switch {
	case i.Rate > 0:
		return max(1, uint64(i.Rate)/8)
	case i.Jitter > 0 && !i.Unordered:
		return timeless
	}
	return 0
}

// chance is a probability in 2^-32, as netem compares it: what it stands for
// happens where a random number of 32 bits is not above it, and never at 0.
func chance(p float64) uint32 {
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
	underWay := (i.Delay + i.Reach()).Std().Seconds() * float64(i.Rate) / 8
	frames := math.Ceil(float64(i.QueueBytes())/float64(frame)) + math.Ceil(underWay/float64(frame))
	return uint32(min(frames, heldMax))
}

// tableScale is what the values of netem's tables stand for: 1/8192 of the jitter,
// as int16.
const tableScale = 8192

// deviation is the jitter that netem is told. A recorded distribution that reaches
// further than netem's tables has its values shrunk and its jitter stretched.
func deviation(i impair.Impairment) quantity.Duration {
	if i.Table == nil {
		return i.Jitter
	}
	return quantity.Duration(math.Round(float64(i.Jitter) * stretch(i.Table)))
}

// stretch is by how much the values of a table are too large for 16 bits, or 1.
func stretch(t *impair.Table) float64 {
	steps := t.Steps()
	least, most := float64(steps[0])*tableScale, float64(steps[len(steps)-1])*tableScale
	return max(1, least/math.MinInt16, most/math.MaxInt16)
}

// distribution is netem's table of the jitter. Without one the kernel draws evenly,
// but what was told of a table it does not forget.
func distribution(i impair.Impairment) []byte {
	if i.Table != nil {
		return recorded(i.Table)
	}
	return table(i.Distribution)
}

// recorded is netem's table of a recorded distribution.
func recorded(t *impair.Table) []byte {
	var b []byte
	shrunk := tableScale / stretch(t)
	for _, x := range t.Steps() {
		b = binary.NativeEndian.AppendUint16(b, uint16(int16(math.RoundToEven(float64(x)*shrunk))))
	}
	return b
}

// table is netem's table of a distribution: its quantiles at 4096 points. Points
// and rounding are those of iproute2, so that the table of the normal distribution
// is, value by value, the one that it ships.
func table(d impair.Distribution) []byte {
	const entries, grid = 4096, 0.00005
	b := make([]byte, 0, 2*entries)
	for i := range entries {
		p := (float64(i) + 0.125) / entries
		x := math.Floor(d.Quantile(p)/grid) * grid
		value := min(max(math.RoundToEven(x*tableScale), math.MinInt16), math.MaxInt16)
		b = binary.NativeEndian.AppendUint16(b, uint16(int16(value)))
	}
	return b
}
