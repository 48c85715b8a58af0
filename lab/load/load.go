// Package load drives a workload over HTTP/1.1, HTTP/2, TCP, UDP, MQTT or AMQP in
// a closed or an open loop and records every request: it is the lab's stop-watch. A
// thread of either is one coroutine that owns one connection and does
// everything itself, with no other client library between the clock and the
// socket; all threads share one core.
//
// It does not pipeline, share a connection between threads, retry, follow
// redirects, speak TLS, or draw conclusions; a failed request is a row that
// says why. Start at Run, then thread.go, timed.go and open.go, with loop.go below them
// and a file for each protocol; oneway/ is the load for timed packets.
package load

import (
	"context"
	"errors"
	"fmt"

	"skerry.dev/skerry/lab/sample"
)

// ErrNoAnswer is returned when the first requests of a load all fail.
var ErrNoAnswer = errors.New("no answer")

// failuresMax is how many requests may fail, all threads together, before the
// first is answered. A load of fewer requests may fail them all but one. Who had begun by
// then gets an answer or fails first, since some targets refuse at once where others
// take their time.
const failuresMax = 20

// Result is what a load has seen.
type Result struct {
	// Requests has a row per request: by thread and within a thread in order, of
	// an open loop in the order in which they were due.
	Requests []sample.Request
	// There and Back are the ways of each datagram, to the service and from it,
	// in the order of Requests and as long, with their index as the sequence; nil
	// for all but UDP of sizes that can carry the times. A way that was not seen
	// has a time of 0.
	There, Back []sample.OneWay
}

// Run drives the load to its end. A request that fails does not end the load,
// unless nothing has ever been answered: then the error is ErrNoAnswer. When
// ctx ends the requests in flight are dropped and the error is ctx's cause, by
// default context.Canceled; rows that were complete are returned beside any
// error.
func Run(ctx context.Context, s Spec) (Result, error) {
	p, err := newPlan(ctx, s)
	if err != nil {
		return Result{}, err
	}
	return p.drive(ctx)
}

func (p *plan) drive(ctx context.Context) (Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l, release, err := newLoop(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	first := &opening{plan: p, stop: func(err error) {
		stop(err)
		l.ended = true
	}}
	rows := begin(l, p, first)
	err = l.run()
	return rows(), errors.Join(err, context.Cause(ctx))
}

// begin starts the threads of a load; rows gives what they have seen, once they have
// ended.
func begin(l *loop, p *plan, first *opening) (rows func() Result) {
	if p.timed() {
		return timedLoop(l, p, first).close
	}
	book := newBook(p, p.requests())
	if p.open() {
		openLoop(l, p, first, book)
	} else {
		closedLoop(l, p, first, book)
	}
	return book.close
}

// closedLoop starts the threads of a closed loop by iterations.
func closedLoop(l *loop, p *plan, first *opening, book *book) {
	for i := range p.threads() {
		own := book.part(i*p.perThread(), p.perThread())
		l.start(func(r *routine) {
			if r.sleep(p.startsAfter(i)) {
				newThread(r, p, first).closed(own)
			}
		})
	}
}

// opening watches the first requests of a load, so that a target that is not
// there ends it in seconds.
type opening struct {
	plan     *plan
	stop     func(error)
	answered bool
	failures int
	// waiting counts the threads whose first request was begun before so many failed, and
	// is under way.
	waiting int
}

// await says that a thread begins its first request, and reports whether that counts.
func (o *opening) await() bool {
	if o.answered || o.failures >= o.most() {
		return false
	}
	o.waiting++
	return true
}

// most is how many requests may fail.
func (o *opening) most() int { return min(failuresMax, o.plan.requests()) }

// note takes the error class of a request that has ended, "" for none.
func (o *opening) note(class string) {
	if o.answered {
		return
	}
	if class == "" {
		o.answered = true
		return
	}
	o.failures++
	if o.failures >= o.most() && o.waiting == 0 {
		o.stop(fmt.Errorf("%w from %s: the first %d requests failed, the last with %q", ErrNoAnswer, o.plan.names(), o.failures, class))
	}
}

// book has room for requests of a load.
type book struct {
	requests    []sample.Request
	there, back []sample.OneWay
}

func newBook(p *plan, n int) *book {
	b := &book{requests: make([]sample.Request, n)}
	if p.stamps() {
		b.there, b.back = make([]sample.OneWay, n), make([]sample.OneWay, n)
	}
	return b
}

// part is n rows of the book.
func (b *book) part(from, n int) *book {
	p := &book{requests: b.requests[from:][:n]}
	if b.there != nil {
		p.there, p.back = b.there[from:][:n], b.back[from:][:n]
	}
	return p
}

// enter writes a row.
func (b *book) enter(i int, row sample.Request, times stamps) {
	b.requests[i] = row
	if b.there != nil {
		b.there[i] = sample.OneWay{SentNs: times.sent, ReceivedNs: times.arrived}
		b.back[i] = sample.OneWay{SentNs: times.answered, ReceivedNs: times.received}
	}
}

// close leaves out the rows that no thread came to.
func (b *book) close() Result {
	n := 0
	for i, r := range b.requests {
		if r.ScheduledNs == 0 {
			continue
		}
		b.requests[n] = r
		if b.there != nil {
			b.there[n], b.back[n] = b.there[i], b.back[i]
			b.there[n].Sequence, b.back[n].Sequence = int64(n), int64(n)
		}
		n++
	}
	result := Result{Requests: b.requests[:n]}
	if b.there != nil {
		result.There, result.Back = b.there[:n], b.back[:n]
	}
	return result
}
