package measure

import (
	"cmp"
	"math"
	"slices"
	"time"

	"skerry.dev/skerry/lab/sample"
)

// Bounds of what is kept for drawing.
const (
	// connectionsMax is how many connections are told apart.
	connectionsMax = 8
	// pointsMax bounds the points of a timeline.
	pointsMax = 400
)

// together marks the timeline of all connections.
const together = -1

// Timeline is response times over time: of one connection, or of all together
// where there are too many to tell apart.
type Timeline struct {
	// Thread from 0 and Connection from 1; both -1 for all together.
	Thread, Connection int
	// Points in order of time.
	Points []Point
}

// Point is one request, or of many requests those that lie in one bin of time.
type Point struct {
	// At is when the first of them was due, from when the first request of all
	// was, failed or not.
	At time.Duration
	// Low, Median and High are response times; equal for one request.
	Low, Median, High time.Duration
	N                 int
}

// Timelines are the response times of one repetition as it went on, warm-up
// included: of each connection where there are at most 8, else of all together.
// A timeline has at most 400 points, each a request or, of more requests, an
// equal span of time. Failed requests have no point.
func Timelines(requests []sample.Request) []Timeline {
	type connection struct{ thread, number int32 }
	apart := map[connection][]moment{}
	start, crowded := int64(math.MaxInt64), false
	for _, r := range requests {
		if !undated(r) {
			start = min(start, r.ScheduledNs)
		}
		if r.Error == "" && !crowded {
			apart[connection{r.Thread, r.Connection}] = nil
			crowded = len(apart) > connectionsMax
		}
	}
	if crowded {
		clear(apart)
	}
	for _, r := range requests {
		c := connection{r.Thread, r.Connection}
		if crowded {
			c = connection{together, together}
		}
		if r.Error == "" {
			apart[c] = append(apart[c], moment{r.ScheduledNs - start, r.ResponseNs()})
		}
	}
	var all []Timeline
	for c, moments := range apart {
		all = append(all, Timeline{Thread: int(c.thread), Connection: int(c.number), Points: points(moments)})
	}
	slices.SortFunc(all, func(a, b Timeline) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Connection, b.Connection))
	})
	return all
}

// moment is an answered request: when it was due and how long it took, in ns.
type moment struct{ at, took int64 }

// points of moments in any order, which it sorts.
func points(moments []moment) []Point {
	slices.SortFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	first, bin := moments[0].at, int64(1)
	if len(moments) > pointsMax {
		bin = (moments[len(moments)-1].at-first)/pointsMax + 1
	}
	var all []Point
	for len(moments) > 0 {
		number := (moments[0].at - first) / bin
		n := 1
		for n < len(moments) && (moments[n].at-first)/bin == number {
			n++
		}
		times := make(Sorted, n)
		for i, m := range moments[:n] {
			times[i] = float64(m.took)
		}
		slices.Sort(times)
		all = append(all, Point{
			At:  time.Duration(moments[0].at),
			Low: duration(times.Min()), Median: duration(times.Median()), High: duration(times.Max()), N: n,
		})
		moments = moments[n:]
	}
	return all
}
