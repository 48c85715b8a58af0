package impair

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/quantity"
)

// StagesMax bounds the stages of a direction.
const StagesMax = 8

// Stages are what a packet meets one after the other, as if they were links in a
// row.
type Stages []Impairment

// Chain is a first stage and those after it.
func Chain(first Impairment, then []Impairment) Stages {
	return append(Stages{first}, then...)
}

// IsZero reports that no stage does anything.
func (s Stages) IsZero() bool { return !slices.ContainsFunc(s, acts) }

func acts(i Impairment) bool { return !i.IsZero() }

// SplitsPackets reports whether super-packets must be segmented for any stage.
func (s Stages) SplitsPackets(u Unit) bool {
	return slices.ContainsFunc(s, func(i Impairment) bool { return i.SplitsPackets(u) })
}

// Replays reports that a stage replays a trace.
func (s Stages) Replays() bool {
	return slices.ContainsFunc(s, func(i Impairment) bool { return i.Trace != "" })
}

// Copies reports that a stage copies or alters packets, so that their bytes are
// needed.
func (s Stages) Copies() bool { return slices.ContainsFunc(s, Impairment.copies) }

// String describes the stages on one line: "5ms 0.1%, then 2ms 10mbit". Of
// several, those that do nothing are left out.
func (s Stages) String() string {
	var parts []string
	for _, i := range s {
		if acts(i) {
			parts = append(parts, i.String())
		}
	}
	if len(parts) == 0 {
		return Impairment{}.String()
	}
	return strings.Join(parts, ", then ")
}

// Check says what is wrong with the stages, as an *Error whose field is that of
// the first stage, or stands behind "then[i].".
func (s Stages) Check() error {
	for i, stage := range s {
		err := stage.Check()
		if wrong, ok := errors.AsType[*Error](err); ok && i > 0 {
			wrong.Field = fmt.Sprintf("then[%d].%s", i-1, wrong.Field)
		}
		if err != nil {
			return err
		}
	}
	together := s.Together()
	switch {
	case len(s) > StagesMax:
		return wrong("then", fmt.Sprintf("write at most %d stages behind the first", StagesMax-1), "%d stages are too many", len(s))
	case together.Delay > DelayMax:
		return wrong("then", fmt.Sprintf("write at most %s in all stages", DelayMax), "the delays add up to %s, which is too long", together.Delay)
	case together.Reorder > reorderMax:
		return wrong("then", fmt.Sprintf("write at most %s in all stages", reorderMax),
			"with reorder %s, as the stages add up to, the delay could not be proven", together.Reorder)
	}
	return nil
}

// Together is what the stages do as one, for sums and bounds: delays and jitters
// add up, chances combine to that of meeting any of them, losses in bursts at
// their mean, and the least rate counts, with its queue. Of one stage it is that
// stage.
func (s Stages) Together() Impairment {
	if len(s) == 1 {
		return s[0]
	}
	var all Impairment
	either := func(a *quantity.Fraction, b quantity.Fraction) { *a += b * (1 - *a) }
	for _, i := range s {
		all.Delay += i.Delay
		all.Jitter += i.Jitter
		if all.Distribution == "" {
			all.Distribution, all.Table = i.Distribution, i.Table
		}
		all.Unordered = all.Unordered || i.Unordered
		either(&all.Loss, quantity.Fraction(i.MeanLoss()))
		either(&all.Duplicate, i.Duplicate)
		either(&all.Corrupt, i.Corrupt)
		either(&all.Reorder, i.Reorder)
		if i.Rate > 0 && (all.Rate == 0 || i.Rate < all.Rate) {
			all.Rate, all.Queue = i.Rate, quantity.Size(i.QueueBytes())
		}
	}
	return all
}

// Reach is the most that the jitter of all stages adds to the delay.
func (s Stages) Reach() quantity.Duration {
	var all quantity.Duration
	for _, i := range s {
		all += i.Reach()
	}
	return all
}
