// Package load drives a workload over HTTP/1.1 in a closed or an open loop and
// records every request: it is the lab's stop-watch. A thread of either is one
// goroutine that owns one connection and does everything itself, with no other
// client library between the clock and the socket.
//
// It does not pipeline, retry, follow redirects, speak TLS or HTTP/2, or draw
// conclusions; a failed request is a row that says why. Start at Run, then
// thread.go and open.go; oneway/ is the load for timed packets.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/lab/sample"
)

// ErrNoAnswer is returned when the first requests of a load all fail.
var ErrNoAnswer = errors.New("no answer")

// failuresMax is how many requests may fail, all threads together, before the
// first is answered. A load of fewer requests may fail them all but one.
const failuresMax = 20

// Run drives the load to its end and returns a row per request: by thread and
// within a thread in order, of an open loop in the order in which they were due. A request that fails does not end the load, unless
// nothing has ever been answered: then the error is ErrNoAnswer. When ctx ends
// the requests in flight are dropped and the error is ctx's cause, by default
// context.Canceled; rows that were complete are returned beside any error.
func Run(ctx context.Context, s Spec) ([]sample.Request, error) {
	p, err := newPlan(ctx, s)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	first := &opening{plan: p, stop: stop}

	if p.open() {
		return openLoop(ctx, p, first), context.Cause(ctx)
	}
	rows := make([]sample.Request, p.total())
	done := make([]int, p.threads())
	var all sync.WaitGroup
	for i := range done {
		own := rows[i*p.perThread():][:p.perThread()]
		start := p.Ramp.Std() * time.Duration(i) / time.Duration(len(done))
		all.Go(func() {
			if wait(ctx, start) {
				done[i] = newThread(p, i, first).loop(ctx, own)
			}
		})
	}
	all.Wait()
	return compact(rows, done), context.Cause(ctx)
}

// compact closes the gaps that threads left behind when they were stopped.
func compact(rows []sample.Request, done []int) []sample.Request {
	n, each := 0, len(rows)/len(done)
	for i, d := range done {
		n += copy(rows[n:], rows[i*each:][:d])
	}
	return rows[:n]
}

// opening watches the first requests of a load, so that a target that is not
// there ends it in seconds. All threads share it.
type opening struct {
	plan     *plan
	stop     context.CancelCauseFunc
	answered atomic.Bool
	failures atomic.Int64
}

// note takes the error class of a request that has ended, "" for none.
func (o *opening) note(class string) {
	if o.answered.Load() {
		return
	}
	if class == "" {
		o.answered.Store(true)
		return
	}
	if n := min(failuresMax, o.plan.requests()); o.failures.Add(1) == int64(n) {
		o.stop(fmt.Errorf("%w from %s: the first %d requests failed, the last with %q", ErrNoAnswer, o.plan.Target, n, class))
	}
}
