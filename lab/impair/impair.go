// Package impair says what a link does to packets: the model only. Its two
// back ends put the model into force: impair/userspace (NFQUEUE, any kernel)
// and impair/netem (sch_netem, where the kernel has it). Start at Impairment.
package impair

import (
	"fmt"
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
	// what sch_netem does and what the papers measured. An impairment that copies
	// or alters packets segments them all the same.
	UnitSuperpacket Unit = "superpacket"
)

// Distribution shapes jitter around the delay: one of those below, or the file of
// a recorded one, which has a dot or a slash in its name.
type Distribution string

// Jitter distributions.
const (
	// Uniform spreads the delay evenly over delay ± jitter. The default.
	Uniform Distribution = "uniform"
	// Normal has the jitter as its standard deviation, cut at a delay of 0.
	Normal Distribution = "normal"
	// Pareto has the jitter as its standard deviation and a long tail: a Pareto
	// distribution of shape 3 moved to a mean of 0, cut at TableReach.
	Pareto Distribution = "pareto"
)

// TableReach is where the tables of distributions end, in standard deviations:
// netem's own bound (16-bit entries of 1/8192).
const TableReach = 4

// Impairment is what one direction of a link does. The zero value does nothing
// and costs nothing. A packet meets loss first, then duplication, corruption and
// reordering, then the queue before the rate, and at last the delay.
type Impairment struct {
	// Delay is added to every packet, one way.
	Delay quantity.Duration `yaml:"delay,omitempty" json:"delay,omitempty"`
	// Jitter varies the delay: half-width (uniform) or standard deviation (all
	// others).
	Jitter quantity.Duration `yaml:"jitter,omitempty" json:"jitter,omitempty"`
	// Distribution of the jitter: uniform (default), normal, pareto, or a file of
	// delays that were measured. Without a jitter these are added as they are.
	Distribution Distribution `yaml:"distribution,omitempty" json:"distribution,omitempty"`
	// Table is what the file of the distribution says, once it was read.
	Table *Table `yaml:"-" json:"-"`
	// Unordered lets jitter change the order of packets; by default order is kept.
	Unordered bool `yaml:"unordered,omitempty" json:"unordered,omitempty"`
	// Reorder is the probability that a packet skips the delay and so overtakes
	// those that wait in it, each independently.
	Reorder quantity.Fraction `yaml:"reorder,omitempty" json:"reorder,omitempty"`
	// Loss is the probability that a packet is dropped, each independently; with
	// a Burst, outside of its bad state.
	Loss quantity.Fraction `yaml:"loss,omitempty" json:"loss,omitempty"`
	// Burst has losses come in bursts.
	Burst Burst `yaml:"burst,omitempty" json:"burst,omitzero"`
	// Duplicate is the probability that a packet arrives twice, each independently.
	Duplicate quantity.Fraction `yaml:"duplicate,omitempty" json:"duplicate,omitempty"`
	// Corrupt is the probability that one bit of a packet is flipped behind its IP
	// header, each independently.
	Corrupt quantity.Fraction `yaml:"corrupt,omitempty" json:"corrupt,omitempty"`
	// Rate limits the direction, counted on Ethernet frames; 0 is unlimited.
	Rate quantity.Rate `yaml:"rate,omitempty" json:"rate,omitempty"`
	// Queue bounds the bytes that wait for the rate (tail drop). By default one
	// bandwidth-delay product of the round trip, at least 100 full frames; with a
	// trace half a second of its mean rate.
	Queue quantity.Size `yaml:"queue,omitempty" json:"queue,omitempty"`
	// Trace is replayed in place of a rate, over and over: lte, 5g or a file, of
	// mahimahi or with rates and delays. Its delay is added to that of the link.
	Trace string `yaml:"trace,omitempty" json:"trace,omitempty"`
}

// Burst is the bad state of a Gilbert-Elliott channel: a Markov chain with a step
// at every packet. The zero value never enters it.
type Burst struct {
	// Enter is the probability that a packet in the good state begins the bad one
	// (p of the model).
	Enter quantity.Fraction `yaml:"enter" json:"enter"`
	// Leave is the probability that a packet in the bad state ends it (r); a burst
	// is 1/Leave packets long at the mean.
	Leave quantity.Fraction `yaml:"leave" json:"leave"`
	// Loss is the probability that a packet in the bad state is dropped (1-h); by
	// default all are.
	Loss quantity.Fraction `yaml:"loss,omitempty" json:"loss,omitempty"`
}

// DefaultMTU is the IP MTU of a link where the topology names none.
const DefaultMTU = 1500

// EthernetHeader is what the rate counts on top of the IP packet, in bytes, as
// sch_netem does.
const EthernetHeader = 14

const queueFramesMin = 100

// IsZero reports that the link does nothing to a packet.
func (i Impairment) IsZero() bool {
	return i.Delay == 0 && i.Jitter == 0 && i.Rate == 0 && i.Trace == "" &&
		!i.Distribution.IsFile() && !i.Lossy() && !i.copies()
}

// Lossy reports that packets are lost at random.
func (i Impairment) Lossy() bool { return i.Loss > 0 || i.Burst.Enter > 0 }

// copies reports that packets are copied or altered.
func (i Impairment) copies() bool { return i.Duplicate > 0 || i.Corrupt > 0 }

// MeanLoss is the share of packets that are lost in the long run.
func (i Impairment) MeanLoss() float64 {
	bad := i.Burst.Share()
	return (1-bad)*float64(i.Loss) + bad*float64(i.Burst.Drops())
}

// Share of packets that find the bad state, in the long run.
func (b Burst) Share() float64 {
	if b.Enter == 0 {
		return 0
	}
	return float64(b.Enter / (b.Enter + b.Leave))
}

// Drops is the probability that a packet in the bad state is lost: Loss, or all
// where that is 0.
func (b Burst) Drops() quantity.Fraction {
	if b.Loss == 0 {
		return 1
	}
	return b.Loss
}

// String describes the burst as enter/leave, and the loss where it is not all:
// "0.1%/20%/90%".
func (b Burst) String() string {
	text := b.Enter.String() + "/" + b.Leave.String()
	if b.Drops() < 1 {
		text += "/" + b.Loss.String()
	}
	return text
}

// Tolerance is how far the delay may be from what was asked for: 2 %, and at
// least 100 us.
func (i Impairment) Tolerance() quantity.Duration {
	const share, least = 50, 100_000
	return max(i.Delay/share, least)
}

// String describes the impairment on one line: "5ms ±1ms 0.08% reorder 2% 1gbit".
func (i Impairment) String() string {
	var parts []string
	add := func(does bool, word string, value fmt.Stringer) {
		if does {
			parts = append(parts, word+value.String())
		}
	}
	add(i.Delay > 0, "", i.Delay)
	add(i.Jitter > 0, "±", i.Jitter)
	add(i.Loss > 0, "", i.Loss)
	add(i.Burst.Enter > 0, "burst ", i.Burst)
	add(i.Duplicate > 0, "duplicate ", i.Duplicate)
	add(i.Corrupt > 0, "corrupt ", i.Corrupt)
	add(i.Reorder > 0, "reorder ", i.Reorder)
	add(i.Rate > 0, "", i.Rate)
	if i.Trace != "" {
		parts = append(parts, "trace "+i.Trace)
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

// Reach is the most that jitter adds to the delay.
func (i Impairment) Reach() quantity.Duration {
	return quantity.Duration(float64(i.Jitter) * i.Quantile(1))
}

// SplitsPackets reports whether super-packets must be segmented before the link.
// A pure delay treats one exactly as its segments. What copies or alters packets
// does it to packets of the wire, whatever the unit.
func (i Impairment) SplitsPackets(u Unit) bool {
	decides := i.Jitter != 0 || i.Rate != 0 || i.Trace != "" || i.Reorder != 0 || i.Lossy()
	return i.copies() || u != UnitSuperpacket && decides
}
