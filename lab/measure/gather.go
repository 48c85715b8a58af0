package measure

import (
	"maps"
	"slices"

	"skerry.dev/skerry/lab/sample"
)

// Gathered is what is kept of the requests of one repetition: a response time
// of 8 bytes for each that was answered, in place of a row of 72. It is
// read-only.
type Gathered struct {
	// requests that are not warm-up, and how those of them failed that did.
	requests int
	errors   map[string]int
	rate     float64
	// kept says that a connection answered more than one request, open that request 1 of
	// one counts among the others: see OpenLoop.
	kept, open bool
	// Response times in ns: of request 1 of a connection, with warm-up apart,
	// and of all others that are not warm-up.
	first, firstWarm, others Sorted
	// jitter is of timed packets: see ByPacket.
	jitter Sorted
}

// Gather takes the requests of one repetition, in any order.
func Gather(requests []sample.Request) *Gathered {
	g := &Gathered{errors: map[string]int{}, rate: rate(requests)}
	g.kept = slices.ContainsFunc(requests, func(r sample.Request) bool { return r.Error == "" && r.Index > 1 })
	if g.kept {
		g.others = make(Sorted, 0, len(requests))
	} else {
		g.first = make(Sorted, 0, len(requests))
	}
	for _, r := range requests {
		if !r.Warmup {
			g.requests++
			if r.Error != "" {
				g.errors[r.Error]++
			}
		}
		switch ns := float64(r.ResponseNs()); {
		case r.Error != "":
		case r.Index > 1 && !r.Warmup:
			g.others = append(g.others, ns)
		case r.Index > 1:
		case r.Warmup:
			g.firstWarm = append(g.firstWarm, ns)
		default:
			g.first = append(g.first, ns)
		}
	}
	for _, times := range []Sorted{g.first, g.firstWarm, g.others} {
		slices.Sort(times)
	}
	return g
}

// Summary is the figures of this repetition alone.
func (g *Gathered) Summary() Summary { return Pool([]*Gathered{g}).Summary }

// Pooled is a cell: its repetitions together and each of them.
type Pooled struct {
	Summary Summary
	// Each repetition by itself, and the answered requests a second in it.
	Each  []Summary
	Rates []float64
	// Values are the response times that count, First those of request 1. They mostly
	// share what was gathered.
	Values, First *Repetitions
	// Jitter of timed packets, in ns; empty of all else.
	Jitter *Repetitions
}

// Pool makes a cell of its repetitions. Which requests count is decided over
// all of them, as Summarise says.
func Pool(all []*Gathered) Pooled {
	var p Pooled
	kept := slices.ContainsFunc(all, func(g *Gathered) bool { return g.kept })
	requests, errors := 0, map[string]int{}
	var values, first, jitter []Sorted
	for _, g := range all {
		times, opening := g.split(kept)
		values, first, jitter = append(values, times), append(first, opening), append(jitter, g.jitter)
		p.Each = append(p.Each, summaryOf(g.requests, g.errors, times, opening))
		p.Rates = append(p.Rates, g.rate)
		requests += g.requests
		for class, n := range g.errors {
			errors[class] += n
		}
	}
	p.Values, p.Jitter = repeat(values), repeat(jitter)
	p.First = p.Values
	if kept {
		p.First = repeat(first)
	}
	p.Summary = summaryOf(requests, errors, p.Values.Pooled(), p.First.Pooled())
	return p
}

// split is the response times that count and those of request 1.
func (g *Gathered) split(kept bool) (times, first Sorted) {
	switch {
	case !kept:
		return g.first, g.first
	case g.open:
		return Sort(slices.Concat(g.others, g.first)), g.first
	case len(g.firstWarm) == 0:
		return g.others, g.first
	}
	return g.others, Sort(slices.Concat(g.first, g.firstWarm))
}

func summaryOf(requests int, errors map[string]int, times, first Sorted) Summary {
	s := Summary{Requests: requests, ErrorClasses: classes(errors), N: len(times), FirstN: len(first)}
	for _, n := range errors {
		s.Errors += n
	}
	if s.N > 0 {
		s.Times = figures(times)
	}
	if s.FirstN > 0 {
		s.First = duration(first.Median())
	}
	return s
}

// span is what some requests of one repetition took together: from when the
// first that is not warm-up was due to the last byte of the last answer, or to
// when the last was due, should that one have failed.
type span struct {
	answered int
	from, to int64
}

// add takes a request. One that failed takes time and answers nothing.
func (s *span) add(r sample.Request) {
	if r.Warmup || undated(r) {
		return
	}
	if s.from == 0 || r.ScheduledNs < s.from {
		s.from = r.ScheduledNs
	}
	s.to = max(s.to, r.ScheduledNs)
	if r.Error == "" {
		s.answered++
		s.to = max(s.to, r.LastByteNs)
	}
}

// undated says that it is not known when a request was due: of timed packets of a flow that
// is wholly lost.
func undated(r sample.Request) bool { return r.Error != "" && r.ScheduledNs == 0 }

// rate is the answered requests a second, 0 without an answer.
func (s *span) rate() float64 {
	if s.answered == 0 || s.to <= s.from {
		return 0
	}
	return float64(s.answered) * 1e9 / float64(s.to-s.from)
}

// rate is the answered requests a second of all threads together, request 1 of a
// connection among them.
func rate(requests []sample.Request) float64 {
	var all span
	for _, r := range requests {
		all.add(r)
	}
	return all.rate()
}

// ByThread takes for the rate the sum of each thread's own, which is that of a
// closed loop while all threads are at work: the time in which some have ended,
// or not begun, counts against none. Of an open loop it would say nothing.
func (g *Gathered) ByThread(requests []sample.Request) {
	threads := map[int32]*span{}
	for _, r := range requests {
		if threads[r.Thread] == nil {
			threads[r.Thread] = &span{}
		}
		threads[r.Thread].add(r)
	}
	g.rate = 0
	for _, id := range slices.Sorted(maps.Keys(threads)) { // sums in one order are the same to the digit
		g.rate += threads[id].rate()
	}
}

// OpenLoop counts request 1 of a connection among the others, too. Of an open loop, which
// has no warm-up, a thread dials when a request finds all others at work, as in a stall:
// those requests must not be missing where the stall is charged to who waits.
func (g *Gathered) OpenLoop() { g.open = true }

// ByPacket takes for timed packets how much later one arrived than a cycle after the one
// before it in its flow, which arrived as well: that is by how much more it was delayed
// (RFC 3393). Rows of a flow are in the order in which they were due.
func (g *Gathered) ByPacket(packets []sample.Request) {
	last := map[int32]sample.Request{}
	for _, p := range packets {
		before, known := last[p.Thread]
		if known && p.Error == "" && before.Error == "" && p.Index == before.Index+1 {
			g.jitter = append(g.jitter, float64(p.ResponseNs()-before.ResponseNs()))
		}
		last[p.Thread] = p
	}
	slices.Sort(g.jitter)
}
