package measure

import (
	"math"
	"slices"
	"time"

	"skerry.dev/skerry/lab/sample"
)

// Totals makes a cell of what its load's tool said of each repetition, where the
// tool keeps no requests. A time of the cell is the median of that time over the
// repetitions, but the mean, which each answer weighs alike, and the longest.
// There are no values to resample, so no interval, and no rate to compare.
func Totals(all []sample.Summary) Pooled {
	var p Pooled
	errors := map[string]int{}
	times := make([]Sorted, 3) // median, p90, p99
	var mean float64
	for _, t := range all {
		s := totalOf(t)
		p.Each = append(p.Each, s)
		p.Summary.Requests += s.Requests
		p.Summary.Errors += s.Errors
		p.Summary.N += s.N
		for class, n := range t.Classes {
			errors[class] += int(n)
		}
		if s.N == 0 {
			continue
		}
		for i, ns := range []int64{t.P50Ns, t.P90Ns, t.P99Ns} {
			times[i] = append(times[i], float64(ns))
		}
		mean += float64(t.MeanNs) * float64(s.N)
		p.Summary.Times.Max = max(p.Summary.Times.Max, s.Times.Max)
	}
	p.Summary.ErrorClasses = classes(errors)
	if p.Summary.N > 0 {
		for _, t := range times {
			slices.Sort(t)
		}
		p.Summary.Times.Median, p.Summary.Times.P90 = duration(times[0].Median()), duration(times[1].Median())
		p.Summary.Times.P99, p.Summary.Times.Mean = duration(times[2].Median()), duration(mean/float64(p.Summary.N))
	}
	return p
}

// totalOf is one repetition.
func totalOf(t sample.Summary) Summary {
	s := Summary{Requests: int(t.Requests), Errors: int(t.Errors), N: int(max(t.Requests-t.Errors, 0))}
	errors := map[string]int{}
	for class, n := range t.Classes {
		errors[class] = int(n)
	}
	s.ErrorClasses = classes(errors)
	if s.N > 0 {
		s.Times = Times{
			Median: time.Duration(t.P50Ns), P90: time.Duration(t.P90Ns), P99: time.Duration(t.P99Ns),
			Mean: time.Duration(t.MeanNs), Max: time.Duration(t.MaxNs),
		}
	}
	return s
}

// Within takes for the rate what a closed loop by time has answered in its time: a
// request that was begun in it and answered later counts for the rest of the figures
// alone, since other threads had ended by then. The time is from when the first request
// was due, or of a load that settles from so long after that, when others of its requests
// are under way: those that are answered in its time count for the rate. Other warm-up is
// left out.
func (g *Gathered) Within(requests []sample.Request, settled, lasted time.Duration) {
	var all span
	begin := int64(math.MaxInt64)
	for _, r := range requests {
		all.add(r)
		begin = min(begin, r.ScheduledNs)
	}
	if begin += int64(settled); settled > 0 {
		all.from = begin
	}
	all.to, all.answered = begin+int64(lasted), 0
	for _, r := range requests {
		counts := !r.Warmup || settled > 0 && r.LastByteNs > begin
		if counts && r.Error == "" && r.LastByteNs <= all.to {
			all.answered++
		}
	}
	g.rate = all.rate()
}

// Rate is the answered requests a second.
func (g *Gathered) Rate() float64 { return g.rate }

// Over takes the rate from how long the load took by its tool's own word, where
// the tool does not say when each request began.
func (g *Gathered) Over(took time.Duration) {
	answered := g.requests
	for _, n := range g.errors {
		answered -= n
	}
	if g.rate = 0; took > 0 {
		g.rate = float64(answered) / took.Seconds()
	}
}
