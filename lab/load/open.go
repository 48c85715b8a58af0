package load

// A request of an open loop: due → taken by a free thread, or queued for the
// first that gets free → as in thread.go. One coroutine sleeps from arrival to
// arrival and never waits for a thread: so a request that waits for a free
// connection waits on the system's account, and a slow system does not slow the
// arrivals down.
//
// The generator's own lateness is in the rows: SentNs less the later of
// ScheduledNs and the LastByteNs that came before it on the same thread, where
// Index is above 1 (a first request dials in between). It is charged to the
// response time, which errs to the long side.

import (
	"math"
	"math/rand/v2"

	"skerry.dev/skerry/lab/sample"
)

// arrivalStream keeps the arrivals apart from other uses of the seed.
const arrivalStream = 0x6172726976616c // "arrival"

// arrivals draws when each request of an open loop is due, in ns from its
// start, in order and below its duration. Equal specs have equal arrivals.
func arrivals(s Spec) []int64 {
	end, gap := float64(s.Duration), 1e9/float64(s.Rate)
	list := make([]int64, 0, int(end/gap)+1)
	if s.Arrivals != Poisson {
		// A product each time, where a sum would add up its rounding.
		for i := 0; math.Round(float64(i)*gap) < end; i++ {
			list = append(list, int64(math.Round(float64(i)*gap)))
		}
		return list
	}
	random := rand.New(rand.NewPCG(s.Seed, arrivalStream))
	for at := random.ExpFloat64() * gap; at < end; at += random.ExpFloat64() * gap {
		list = append(list, int64(at))
	}
	return list
}

// crowd is the threads of an open loop and the requests that wait for one.
type crowd struct {
	start int64
	rows  *book
	// idle threads. The last one to get idle is the first to be taken, as in the
	// pools of clients: there are as many connections as requests were under way.
	idle []*thread
	// due counts the requests that are due, taken those that a thread has taken,
	// in order.
	due, taken int
	// over means that no more will be due.
	over bool
}

// openLoop starts the threads and what hands them their requests.
func openLoop(l *loop, p *plan, first *opening, rows *book) {
	c := &crowd{start: l.watch.now(), rows: rows}
	for range p.threads() {
		l.start(func(r *routine) { newThread(r, p, first).serve(c) })
	}
	l.start(func(r *routine) { c.arrive(r, p.arrivals) })
}

// arrive hands each request to an idle thread when it is due.
func (c *crowd) arrive(r *routine, arrivals []int64) {
	for _, after := range arrivals {
		if !r.sleepUntil(c.start + after) {
			return
		}
		c.due++
		if last := len(c.idle) - 1; last >= 0 {
			t := c.idle[last]
			c.idle = c.idle[:last]
			r.loop.wake(t.routine, woken)
		}
	}
	c.over = true
	for _, t := range c.idle {
		r.loop.wake(t.routine, woken)
	}
}

// next is the index of the request that has waited longest; it waits for one.
func (c *crowd) next(t *thread) (i int, ok bool) {
	for c.taken == c.due {
		if c.over {
			return 0, false
		}
		c.idle = append(c.idle, t)
		if t.routine.wait(never) == stopped {
			return 0, false
		}
	}
	c.taken++
	return c.taken - 1, true
}

// serve does requests until there are no more. One that has waited for longer
// than a request may take is missed: nobody waits for it any more. So a load
// ends within its duration and two timeouts.
func (t *thread) serve(c *crowd) {
	defer t.link.close()
	for {
		i, ok := c.next(t)
		if !ok {
			return
		}
		due := c.start + t.plan.arrivals[i]
		row, times := sample.Request{Thread: t.routine.number, ScheduledNs: due, Error: classMissed}, stamps{}
		if t.routine.loop.watch.now()-due <= int64(t.plan.timeout()) {
			row, times = t.request(due)
		}
		// The end of the loop ends the request; what that breaks is no finding.
		if row.Error != "" && t.routine.loop.ended {
			return
		}
		c.rows.enter(i, row, times)
		t.note(row.Error)
	}
}
