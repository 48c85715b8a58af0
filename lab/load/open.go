package load

// A request of an open loop: due → queued → taken by a free thread → as in
// thread.go. One goroutine with an OS thread of its own sleeps from arrival to
// arrival and queues each; it never waits for a thread of the loop. So a
// request that waits for a free connection waits on the system's account, and a
// slow system does not slow the arrivals down.
//
// The generator's own lateness is in the rows: SentNs less the later of
// ScheduledNs and the LastByteNs that came before it on the same thread, where
// Index is above 1 (a first request dials in between). It is charged to the
// response time, which errs to the long side.

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/sample"
)

const (
	// napMax bounds a sleep, so that a load which is stopped ends soon.
	napMax = int64(20 * time.Millisecond)
	// arrivalStream keeps the arrivals apart from other uses of the seed.
	arrivalStream = 0x6172726976616c // "arrival"
)

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

// openLoop runs the plan's arrivals and returns the rows of those that were
// done or missed: all of them unless ctx ends.
func openLoop(ctx context.Context, p *plan, o *opening) []sample.Request {
	rows := make([]sample.Request, len(p.arrivals))
	// Room for every arrival: to queue one never blocks.
	queue := make(chan int, len(rows))
	start := clock.Mono()
	var all sync.WaitGroup
	all.Go(func() { arrive(ctx, start, p.arrivals, queue) })
	for i := range p.threads() {
		all.Go(func() { newThread(p, i, o).serve(ctx, start, queue, rows) })
	}
	all.Wait()
	n := 0
	for _, r := range rows {
		if r.ScheduledNs != 0 {
			rows[n] = r
			n++
		}
	}
	return rows[:n]
}

// arrive queues the index of each arrival when it is due, and closes the queue.
func arrive(ctx context.Context, start int64, arrivals []int64, queue chan<- int) {
	defer close(queue)
	// The runtime's timers wake up to a millisecond late; the kernel's, without
	// their slack, some tens of microseconds. The slack belongs to the OS thread,
	// which ends with this goroutine because it is never unlocked.
	runtime.LockOSThread()
	// Refused, it stays at 50 µs.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	for i, after := range arrivals {
		if !sleepUntil(ctx, start+after) {
			return
		}
		queue <- i
	}
}

// sleepUntil sleeps until a time of CLOCK_MONOTONIC, and reports whether ctx is
// still alive.
func sleepUntil(ctx context.Context, at int64) bool {
	for now := clock.Mono(); now < at && ctx.Err() == nil; now = clock.Mono() {
		nap := unix.NsecToTimespec(min(at, now+napMax))
		// A signal ends the nap early: the loop looks at the clock again.
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &nap, nil)
	}
	return ctx.Err() == nil
}

// serve does queued requests until there are no more. One that has waited for
// longer than a request may take is missed: nobody waits for it any more. So a
// load ends within its duration and two timeouts.
func (t *thread) serve(ctx context.Context, start int64, queue <-chan int, rows []sample.Request) {
	defer t.link.close()
	for i := range queue {
		due := start + t.plan.arrivals[i]
		row := sample.Request{Thread: t.number, ScheduledNs: due, Error: classMissed}
		if clock.Mono()-due <= int64(t.plan.timeout()) {
			row = t.request(ctx, due)
		}
		// The end of ctx closes the connection; what that breaks is no finding.
		if ctx.Err() != nil && row.Error != "" {
			return
		}
		rows[i] = row
		t.opening.note(row.Error)
	}
}
