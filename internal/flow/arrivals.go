package flow

import (
	"slices"
	"time"
)

// Arrivals are the packets of a flow in the order in which they came.
type Arrivals []Arrival

// Delays of the packets that are not damaged, in ascending order.
func (all Arrivals) Delays() []time.Duration {
	delays := make([]time.Duration, 0, len(all))
	for _, a := range all {
		if a.Sequence != Damaged {
			delays = append(delays, a.Delay)
		}
	}
	slices.Sort(delays)
	return delays
}

// Quantile of the delays: the q-th of them, without a mean of two.
func (all Arrivals) Quantile(q float64) time.Duration {
	delays := all.Delays()
	return delays[int(q*float64(len(delays)-1))]
}

// Overtaken counts the packets that arrived after one that was sent later.
func (all Arrivals) Overtaken() int {
	last, n := -1, 0
	for _, a := range all {
		if a.Sequence != Damaged && a.Sequence < last {
			n++
		}
		last = max(last, a.Sequence)
	}
	return n
}

// Overtaking counts the packets that arrived before one that was sent earlier.
func (all Arrivals) Overtaking() int {
	first, n := -1, 0
	for _, a := range slices.Backward(all) {
		switch {
		case a.Sequence == Damaged:
		case first >= 0 && a.Sequence > first:
			n++
		default:
			first = a.Sequence
		}
	}
	return n
}

// Copies counts the packets of which one with the same number had arrived before.
func (all Arrivals) Copies() int {
	seen, n := map[int]bool{}, 0
	for _, a := range all {
		if seen[a.Sequence] && a.Sequence != Damaged {
			n++
		}
		seen[a.Sequence] = true
	}
	return n
}

// Gaps are the runs of packets in a row, of count that were sent, that did not
// arrive or arrived damaged: the length of each, in their order.
func (all Arrivals) Gaps(count int) []int {
	arrived := make([]bool, count)
	for _, a := range all {
		if a.Sequence != Damaged {
			arrived[a.Sequence] = true
		}
	}
	var gaps []int
	run := 0
	for _, came := range append(arrived, true) {
		if !came {
			run++
			continue
		}
		if run > 0 {
			gaps = append(gaps, run)
		}
		run = 0
	}
	return gaps
}
