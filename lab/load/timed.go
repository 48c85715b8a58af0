package load

// A closed loop by time: each thread begins requests until the time is over, and
// finishes the one that it has begun. How many that makes nobody knows beforehand, so
// each thread has its rows in pages, which it gets as it needs them: to copy all rows
// to a larger place would hold up requests.

import (
	"fmt"
	"slices"
	"time"

	"skerry.dev/skerry/lab/sample"
)

// pageRows is how many requests a page has room for.
const pageRows = 1024

// shift is the threads of a closed loop by time, from its beginning to its end.
type shift struct {
	plan    *plan
	opening *opening
	// begun is when it began, settled from when on requests count, end when nothing begins
	// any more, CLOCK_MONOTONIC ns.
	begun, settled, end int64
	// room is how many requests more may be kept.
	room int
	// pages of each thread.
	pages [][]*book
}

// timedLoop starts the threads, evenly over the ramp.
func timedLoop(l *loop, p *plan, first *opening) *shift {
	now := l.watch.now()
	settled := now + int64(p.Settle)
	s := &shift{
		plan: p, opening: first, begun: now, settled: settled, end: settled + int64(p.Duration),
		room: p.most, pages: make([][]*book, p.threads()),
	}
	for i := range p.threads() {
		l.start(func(r *routine) {
			if r.sleep(p.startsAfter(i)) {
				newThread(r, p, first).timed(s)
			}
		})
	}
	return s
}

// timed requests until the time is over, or the loop ends.
func (t *thread) timed(s *shift) {
	defer t.link.close()
	now, pause := t.routine.loop.watch.now, time.Duration(0)
	for i := 0; now()+int64(pause) < s.end && t.routine.sleep(pause); i++ {
		t.turn(t.plan.aim(t.routine.number, time.Duration(now()-s.begun)))
		row, times, goesOn := t.inTurn(i)
		if !goesOn {
			return
		}
		row.Warmup = row.Warmup || row.ScheduledNs < s.settled
		s.enter(i, row, times)
		t.note(row.Error)
		pause = t.pause(row)
	}
}

// enter writes request i of a thread, or ends the load where no more may be kept.
func (s *shift) enter(i int, row sample.Request, times stamps) {
	if s.room == 0 {
		s.opening.stop(fmt.Errorf("more than %d requests before %s were over: no file of samples holds them", s.plan.most, s.plan.Settle+s.plan.Duration))
		return
	}
	s.room--
	own := &s.pages[row.Thread]
	if i%pageRows == 0 {
		*own = append(*own, newBook(s.plan, pageRows))
	}
	(*own)[i/pageRows].enter(i%pageRows, row, times)
}

// close joins the pages, thread by thread.
func (s *shift) close() Result {
	pages := slices.Concat(s.pages...)
	whole := newBook(s.plan, len(pages)*pageRows)
	for i, page := range pages {
		part := whole.part(i*pageRows, pageRows)
		copy(part.requests, page.requests)
		copy(part.there, page.there)
		copy(part.back, page.back)
	}
	return whole.close()
}
