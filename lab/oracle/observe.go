package oracle

import (
	"fmt"
	"math"
	"slices"

	"skerry.dev/skerry/lab/sample"
)

// Observed is what was seen of a cell that the prediction speaks of. The zero
// value means that nothing was answered.
type Observed struct {
	// Rate of answered requests per second, from when the first was due to the
	// last byte of the last.
	Rate float64
	// InFlight is the mean number of requests under way, counted at every moment
	// at which one is due or answered; Little the same by Little's law: Rate times
	// the mean response time.
	InFlight, Little float64
}

// Observe looks at the requests of one repetition, in any order. Warm-up counts
// as all else: it keeps the system as busy. A request that failed counts for
// nothing, since nobody knows when it ended.
func Observe(requests []sample.Request) Observed {
	begins, ends := make([]int64, 0, len(requests)), make([]int64, 0, len(requests))
	var total float64 // ns
	for _, r := range requests {
		if r.Error != "" || r.LastByteNs == 0 {
			continue
		}
		begins, ends = append(begins, r.ScheduledNs), append(ends, r.LastByteNs)
		total += float64(r.ResponseNs())
	}
	if len(begins) == 0 {
		return Observed{}
	}
	slices.Sort(begins)
	slices.Sort(ends)
	span := float64(ends[len(ends)-1] - begins[0])
	if span <= 0 {
		return Observed{}
	}
	rate := float64(len(begins)) / span
	return Observed{
		Rate:     rate * 1e9,
		InFlight: underWay(begins, ends) / span,
		Little:   rate * total / float64(len(begins)),
	}
}

// underWay is the integral of the number of requests under way over time, in ns.
// Both lists are sorted.
func underWay(begins, ends []int64) float64 {
	var area float64
	var b, e int
	for last := begins[0]; e < len(ends); {
		next := ends[e]
		if b < len(begins) {
			next = min(next, begins[b])
		}
		area += float64(b-e) * float64(next-last)
		last = next
		if b < len(begins) && begins[b] == next {
			b++
		} else {
			e++
		}
	}
	return area
}

// Mean of what was observed in several repetitions; those in which nothing was
// answered do not count.
func Mean(all []Observed) Observed {
	var mean Observed
	n := 0.0
	for _, o := range all {
		if o == (Observed{}) {
			continue
		}
		n++
		mean.Rate += o.Rate
		mean.InFlight += o.InFlight
		mean.Little += o.Little
	}
	if n == 0 {
		return Observed{}
	}
	return Observed{Rate: mean.Rate / n, InFlight: mean.InFlight / n, Little: mean.Little / n}
}

// rounding is how far figures may be apart that were added up in other orders,
// as a share.
const rounding = 1e-6

// Contradiction says why the figures cannot all be true, or nothing. Threads of
// a closed loop have a request each under way at most; 0 is for an open loop, in
// which any number may wait.
func (o Observed) Contradiction(threads int) string {
	apart := math.Abs(o.InFlight - o.Little)
	switch most := float64(threads) * (1 + rounding); {
	case apart > rounding*max(o.InFlight, o.Little):
		return fmt.Sprintf("Little's law does not hold: %.4g requests were under way, rate times mean response time is %.4g", o.InFlight, o.Little)
	case threads > 0 && o.Little > most:
		return fmt.Sprintf("Little's law does not hold: rate times mean response time is %.4g requests under way, of %d threads", o.Little, threads)
	}
	return ""
}
