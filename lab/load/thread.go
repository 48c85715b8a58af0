package load

// A request: due → (dial) → sent → first byte → last byte → checked → think.
// One coroutine does it all and stamps it all; the loop wakes it when its socket
// is ready (loop.go).
//
// A request is due when its thread is ready to send it: at the start of the
// loop, after the answer before it or, with think time, when the thread has woken
// up. A late wake-up is the generator's fault and is not charged to the system;
// in a closed loop it only makes the think time longer. Of answers that arrive
// together, the later ones are stamped after the requests that the earlier ones
// gave rise to, as by wrk: some microseconds for each.

import (
	"bytes"
	"time"

	"skerry.dev/skerry/lab/sample"
)

const (
	// backoff after an error, so that a dead peer is not hammered.
	backoff = 100 * time.Millisecond
	// answerMin is the least that a thread can hold of a body whose length is
	// not known in advance.
	answerMin = 64 << 10
)

// thread is one thread of the load; nothing in it is shared but the plan, the
// opening and the loop behind the routine.
type thread struct {
	routine *routine
	plan    *plan
	opening *opening
	aim     *aim
	link    link
	// begun says that it has requested, awaited that the opening waits for its first.
	begun, awaited bool
	// answer is one byte longer than the body that is expected, so that a full
	// buffer means a body that is too long.
	answer []byte
}

func newThread(r *routine, p *plan, o *opening) *thread {
	size, a := max(answerMin, p.wantLen)+1, p.aim(r.number, 0)
	return &thread{routine: r, plan: p, opening: o, aim: a, link: link{routine: r, protocol: p.protocol(a)}, answer: make([]byte, size)}
}

// closed fills the rows one after the other, until the loop ends.
func (t *thread) closed(rows *book) {
	defer t.link.close()
	pause := time.Duration(0)
	for i := range rows.requests {
		if i > 0 && !t.routine.sleep(pause) {
			return
		}
		row, times, goesOn := t.inTurn(i)
		if !goesOn {
			return
		}
		rows.enter(i, row, times)
		t.note(row.Error)
		pause = t.pause(row)
	}
}

// note tells the opening how a request has ended.
func (t *thread) note(class string) {
	if t.awaited {
		t.awaited = false
		t.opening.waiting--
	}
	t.opening.note(class)
}

// turn has the thread ask another target from now on, on a new connection.
func (t *thread) turn(a *aim) {
	if a != t.aim {
		t.aim, t.link.protocol = a, t.plan.protocol(a)
	}
}

// inTurn does request i of a closed loop, and reports whether the loop goes on.
func (t *thread) inTurn(i int) (row sample.Request, times stamps, goesOn bool) {
	row, times = t.request(0)
	row.Warmup = i < t.plan.Warmup
	// The end of the loop ends the request; what that breaks is no finding.
	return row, times, row.Error == "" || !t.routine.loop.ended
}

func (t *thread) pause(last sample.Request) time.Duration {
	if last.Error != "" {
		return max(t.plan.Think.Std(), backoff)
	}
	return t.plan.Think.Std()
}

// request does one request that was due at a time of CLOCK_MONOTONIC, 0 for
// now, and leaves the link open only if the next one may use it.
func (t *thread) request(due int64) (sample.Request, stamps) {
	if !t.begun {
		t.begun, t.awaited = true, t.opening.await()
	}
	now := t.routine.loop.watch.now
	began := now()
	if due == 0 {
		due = began
	}
	row := sample.Request{Thread: t.routine.number, ScheduledNs: due}
	err := t.link.ready(t.aim.address, began+int64(t.plan.timeout()))
	row.Connection, row.Index = t.link.number, t.link.index
	if err != nil {
		row.Error = "dial " + class(err)
		return row, stamps{}
	}
	row.SentNs = now()
	got, err := t.link.exchange(t.answer)
	row.FirstByteNs = t.link.firstByte
	row.Status = int32(got.status)
	if err == nil {
		row.LastByteNs = t.link.lastByte
	}
	if err != nil && !t.link.outlives(err) || got.last || t.plan.Connection == New {
		t.link.close()
	}
	row.Error = t.verdict(got, err)
	return row, got.stamps
}

// verdict is the error class of a request, "" for the answer that was expected.
func (t *thread) verdict(got answer, err error) string {
	body := t.answer[:got.length]
	switch {
	case got.status != 0 && (got.status < 200 || got.status > 299):
		return statusClass(got.status)
	case err != nil:
		return class(err)
	case t.plan.wantLen >= 0 && len(body) < t.plan.wantLen:
		return classShortBody
	case t.plan.wantLen >= 0 && len(body) > t.plan.wantLen:
		return classLongBody
	case t.plan.want != nil && !bytes.Equal(body, t.plan.want):
		return classWrongBody
	}
	return ""
}
