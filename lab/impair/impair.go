// Package impair says what a link does to packets: the model only. Its two
// back ends put the model into force: impair/userspace (NFQUEUE, any kernel)
// and impair/netem (sch_netem, where the kernel has it). Start at Impairment.
package impair

import (
	"fmt"
	"net/netip"
	"strings"

	"skerry.dev/skerry/internal/quantity"
)

// Unit says what one loss, jitter or rate decision falls on.
type Unit string

// Units of emulation.
const (
	// UnitPacket decides per packet as it would be on the wire: super-packets
	// (GSO) are segmented before the link sees them. The default.
	UnitPacket Unit = "packet"
	// UnitSuperpacket decides per GSO super-packet of up to 64 KB, which is
	// what sch_netem does and what the papers measured.
	UnitSuperpacket Unit = "superpacket"
)

// Distribution shapes jitter around the delay.
type Distribution string

// Jitter distributions.
const (
	// Uniform spreads the delay evenly over delay ± jitter. The default.
	Uniform Distribution = "uniform"
	// Normal has the jitter as its standard deviation, cut at a delay of 0.
	Normal Distribution = "normal"
)

// Impairment is what one direction of a link does. The zero value does nothing
// and costs nothing.
type Impairment struct {
	// Delay is added to every packet, one way.
	Delay quantity.Duration `yaml:"delay,omitempty" json:"delay,omitempty"`
	// Jitter varies the delay: half-width (uniform) or standard deviation (normal).
	Jitter quantity.Duration `yaml:"jitter,omitempty" json:"jitter,omitempty"`
	// Distribution of the jitter: uniform (default) or normal.
	Distribution Distribution `yaml:"distribution,omitempty" json:"distribution,omitempty" jsonschema:"enum=uniform,enum=normal"`
	// Reorder lets jitter change the order of packets; by default order is kept.
	Reorder bool `yaml:"reorder,omitempty" json:"reorder,omitempty"`
	// Loss is the probability that a packet is dropped, each independently.
	Loss quantity.Fraction `yaml:"loss,omitempty" json:"loss,omitempty"`
	// Rate limits the direction, counted on Ethernet frames; 0 is unlimited.
	Rate quantity.Rate `yaml:"rate,omitempty" json:"rate,omitempty"`
	// Queue bounds the bytes that wait for the rate (tail drop). By default one
	// bandwidth-delay product of the round trip, at least 100 full frames.
	Queue quantity.Size `yaml:"queue,omitempty" json:"queue,omitempty"`
}

// DefaultMTU is the IP MTU of a link where the topology names none.
const DefaultMTU = 1500

// EthernetHeader is what the rate counts on top of the IP packet, in bytes, as
// sch_netem does.
const EthernetHeader = 14

const queueFramesMin = 100

// IsZero reports that the link does nothing: no delay, loss or rate.
func (i Impairment) IsZero() bool {
	return i.Delay == 0 && i.Jitter == 0 && i.Loss == 0 && i.Rate == 0
}

// Tolerance is how far the delay may be from what was asked for: 2 %, and at
// least 100 us.
func (i Impairment) Tolerance() quantity.Duration {
	const share, least = 50, 100_000
	return max(i.Delay/share, least)
}

// String describes the impairment on one line: "5ms ±1ms 0.08% 1gbit".
func (i Impairment) String() string {
	var parts []string
	if i.Delay > 0 {
		parts = append(parts, i.Delay.String())
	}
	if i.Jitter > 0 {
		parts = append(parts, "±"+i.Jitter.String())
	}
	if i.Loss > 0 {
		parts = append(parts, i.Loss.String())
	}
	if i.Rate > 0 {
		parts = append(parts, i.Rate.String())
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

// QueueBytes is the bound of the queue before the rate: the one asked for, or
// one bandwidth-delay product of the round trip and at least 100 full frames.
func (i Impairment) QueueBytes() int64 {
	if i.Queue > 0 {
		return int64(i.Queue)
	}
	bdp := int64(2 * i.Delay.Std().Seconds() * float64(i.Rate) / 8)
	return max(bdp, queueFramesMin*(DefaultMTU+EthernetHeader))
}

// SplitsPackets reports whether the unit matters: a pure delay treats a
// super-packet exactly as its segments, so it need not be split.
func (i Impairment) SplitsPackets(u Unit) bool {
	return u != UnitSuperpacket && (i.Jitter != 0 || i.Loss != 0 || i.Rate != 0)
}

// Error says which field of an impairment is wrong, and what to write instead.
type Error struct {
	// Field by its key in a file, for example "jitter".
	Field         string
	Message, Hint string
}

// Error prints the message and the hint on one line.
func (e *Error) Error() string { return e.Message + "; " + e.Hint }

// Check says what is wrong with the impairment, as an *Error.
func (i Impairment) Check() error {
	wrong := func(field, hint, format string, args ...any) error {
		return &Error{Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	switch {
	case i.Delay < 0:
		return wrong("delay", "write 0 or more", "delay %s is negative", i.Delay)
	case i.Delay > delayMax:
		return wrong("delay", fmt.Sprintf("write at most %s", delayMax), "delay %s is too long", i.Delay)
	case i.Jitter < 0:
		return wrong("jitter", "write 0 or more", "jitter %s is negative", i.Jitter)
	case i.Jitter > delayMax:
		return wrong("jitter", fmt.Sprintf("write at most %s", delayMax), "jitter %s is too long", i.Jitter)
	case i.Jitter > 0 && i.Delay == 0:
		return wrong("jitter", "set delay as well", "jitter %s has no delay to vary", i.Jitter)
	case i.Distribution != "" && i.Distribution != Uniform && i.Distribution != Normal:
		return wrong("distribution", "write uniform or normal", "distribution %q is not known", i.Distribution)
	case i.Distribution != "" && i.Jitter == 0:
		return wrong("distribution", "set jitter as well", "distribution %s has no jitter to shape", i.Distribution)
	case i.Distribution != Normal && i.Jitter > i.Delay:
		return wrong("jitter", "a packet cannot arrive before it was sent: write at most the delay",
			"jitter %s is larger than delay %s", i.Jitter, i.Delay)
	case i.Reorder && i.Jitter == 0:
		return wrong("reorder", "set jitter as well", "reorder has no jitter to come from")
	case !(i.Loss >= 0 && i.Loss <= 1): // NaN too
		return wrong("loss", "write 0% to 100%", "loss %s is no probability", i.Loss)
	case i.Rate < 0:
		return wrong("rate", "write 0 or more", "rate %s is negative", i.Rate)
	case i.Queue < 0:
		return wrong("queue", "write 0 or more", "queue %s is negative", i.Queue)
	case i.Queue > 0 && i.Rate == 0:
		return wrong("queue", "set rate as well", "queue %s has no rate to wait for", i.Queue)
	}
	return nil
}

// delayMax bounds how long a packet may be held, and with it the memory.
const delayMax = quantity.Duration(60e9)

// Counters is what one direction has done since it was set, in packets (or
// super-packets) and bytes.
type Counters struct {
	// Packets that entered the link, and their bytes as IP packets.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// Lost at random, as asked for.
	Lost uint64 `json:"lost"`
	// Overflowed the bounded queue before the rate.
	Overflowed uint64 `json:"overflowed"`
	// Late packets left more than Tolerance after their due time.
	Late uint64 `json:"late"`
	// LateMaxNs is the worst lateness, in nanoseconds.
	LateMaxNs int64 `json:"late_max_ns"`
	// Missed were dropped before the emulator could read them.
	Missed uint64 `json:"missed"`
}

// Direction is one direction of a link, as the WAN's namespace sees it.
type Direction struct {
	// Name of the direction, unique in a lab: FROM>TO.
	Name  string `json:"name"`
	Match Match  `json:"match"`
	Unit  Unit   `json:"unit"`
	// Seed of the loss and jitter of this direction.
	Seed uint64 `json:"seed"`
	Impairment
}

// Match selects the packets of a direction in the WAN's namespace.
type Match struct {
	// In and Out name the interfaces that a packet crosses: the bridges of two
	// clusters, or, where Bridged is set, two ports of one cluster's bridge.
	In      string `json:"in"`
	Out     string `json:"out"`
	Bridged bool   `json:"bridged,omitempty"`
	// Source and Destination narrow a routed direction to two nodes.
	Source      netip.Addr `json:"source,omitzero"`
	Destination netip.Addr `json:"destination,omitzero"`
}

// Minus is what was counted since an earlier time, with the worst lateness of
// all time. Where a count has gone backwards the link was set anew in between:
// forward is false, and the counts are those since then.
func (c Counters) Minus(earlier Counters) (since Counters, forward bool) {
	if c.Packets < earlier.Packets || c.Bytes < earlier.Bytes || c.Lost < earlier.Lost ||
		c.Overflowed < earlier.Overflowed || c.Late < earlier.Late || c.Missed < earlier.Missed {
		return c, false
	}
	return Counters{
		Packets: c.Packets - earlier.Packets, Bytes: c.Bytes - earlier.Bytes,
		Lost: c.Lost - earlier.Lost, Overflowed: c.Overflowed - earlier.Overflowed,
		Late: c.Late - earlier.Late, LateMaxNs: c.LateMaxNs,
		Missed: c.Missed - earlier.Missed,
	}, true
}

// Gaps is when an emulator was kept from its packets since links were set.
type Gaps struct {
	// MaxNs is the longest of all, in nanoseconds.
	MaxNs int64 `json:"max_ns"`
	// Count of those longer than GapBound.
	Count uint64 `json:"count"`
}

// GapBound is how long an emulator may be kept from its packets before that
// counts: several times what it needs for all that one look finds.
const GapBound = quantity.Duration(1e6)

// Plus adds the counts of two times; the worst lateness is the worse one.
func (c Counters) Plus(o Counters) Counters {
	return Counters{
		Packets: c.Packets + o.Packets, Bytes: c.Bytes + o.Bytes,
		Lost: c.Lost + o.Lost, Overflowed: c.Overflowed + o.Overflowed,
		Late: c.Late + o.Late, LateMaxNs: max(c.LateMaxNs, o.LateMaxNs),
		Missed: c.Missed + o.Missed,
	}
}
