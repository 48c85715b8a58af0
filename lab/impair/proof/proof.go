// Package proof decides whether the links of one repetition did what they were
// asked to do: delay by probes before and after it, loss, duplication, corruption
// and reordering by the link's own counters, rate by short bursts. It is pure:
// lab/run gathers what was seen.
// It does not say whose fault a drift is; the host's figures stand beside it.
// Start at Judge; Delays and Bursts say what a probe sends, Measure what it saw.
package proof

import (
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// Proof is the evidence on one repetition and what follows from it.
type Proof struct {
	// Directions that were impaired, in the order of the scenario.
	Directions []Direction `json:"directions,omitempty"`
	// Host is what the machine did meanwhile.
	Host Host `json:"host"`
	// TookNs is the time that proving has added to the repetition.
	TookNs int64 `json:"took_ns,omitempty"`
	// Reasons for which the repetition is rejected, each with the direction and
	// the figures that tell; empty for a repetition that counts.
	Reasons []string `json:"reasons,omitempty"`
}

// Direction is one direction of a link: what was asked of it and what was seen.
type Direction struct {
	// Name is FROM>TO.
	Name string `json:"name"`
	// FromNs is when this was asked of it, from the beginning of the load: a direction
	// that an event has changed appears once for each time between events.
	FromNs int64             `json:"from_ns,omitempty"`
	Unit   impair.Unit       `json:"unit"`
	Asked  impair.Impairment `json:"asked"`
	// Then are the stages after Asked.
	Then []impair.Impairment `json:"then,omitempty"`
	// Before and After the load.
	Before Probe `json:"before"`
	After  Probe `json:"after"`
	// Seen is what the link counted while the load ran.
	Seen impair.Counters `json:"seen"`
	// Reset says that the counters began anew while the load ran.
	Reset bool `json:"reset,omitempty"`
	// LossUnknown says that Seen counts packets and losses in different units,
	// so that the one does not bound the other (netem with super-packets).
	LossUnknown bool `json:"loss_unknown,omitempty"`
	// CopiesUnknown says that the back end counts neither what it duplicates nor
	// what it corrupts, nor what comes to further stages (netem).
	CopiesUnknown bool `json:"copies_unknown,omitempty"`
}

// Label is the name, and from when on this was asked: "c1>c2", "c1>c2 from 30s".
func (d Direction) Label() string {
	if d.FromNs == 0 {
		return d.Name
	}
	return d.Name + " from " + quantity.Duration(d.FromNs).String()
}

// Acts reports that something was asked of the direction.
func (d Direction) Acts() bool { return !d.stages().IsZero() }

// Probe is what timed packets saw of a direction. Figures that were not
// measured are 0.
type Probe struct {
	// Sent and Received packets that timed the delay.
	Sent     int `json:"sent"`
	Received int `json:"received"`
	// DelayNs is the one-way delay, less that of the plain path: by the lower
	// quartile of the packets, since a busy host makes packets late, not early. With
	// reordering that is above the share of packets that skip the delay.
	DelayNs int64 `json:"delay_ns"`
	// DelaySpreadNs is the standard error of DelayNs that the jitter asked for
	// gives it.
	DelaySpreadNs int64 `json:"delay_spread_ns,omitempty"`
	// Rate of the bursts, their median, in bit/s of Ethernet frames, where a rate
	// was asked for.
	Rate float64 `json:"rate,omitempty"`
	// RateExpected is what these bursts had shown of the rate asked for. It lies
	// below that where this machine did not send fast enough.
	RateExpected float64 `json:"rate_expected,omitempty"`
	// RateSpread is the standard error that jitter gives to the time of a byte, as
	// a share of it.
	RateSpread float64 `json:"rate_spread,omitempty"`
}

// Host is what else may have moved a figure while the repetition ran.
type Host struct {
	// StealNs is CPU time that the hypervisor gave to others, all cores together.
	StealNs int64 `json:"steal_ns"`
	// GapMaxNs is the longest that the emulator was kept from its packets, and
	// Gaps how often that was longer than impair.GapBound. Both are 0 where the
	// back end cannot tell (netem).
	GapMaxNs int64  `json:"gap_max_ns"`
	Gaps     uint64 `json:"gaps"`
}

// Rejected reports whether the repetition cannot count.
func (p Proof) Rejected() bool { return len(p.Reasons) > 0 }
