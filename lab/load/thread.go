package load

// A request: due → (dial) → sent → first byte → last byte → checked → think.
// One goroutine does it all and stamps it all; the runtime wakes it when the
// socket is ready. Only a dial involves another goroutine: the one with which
// net.Dialer watches the deadline.
//
// A request is due when its thread is ready to send it: at the start of the
// loop, after the answer before it or, with think time, when the thread has
// woken up. A late wake-up is the generator's fault, up to a millisecond with
// the Go runtime, and is not charged to the system; in a closed loop it only
// makes the think time longer.

import (
	"bytes"
	"context"
	"time"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/sample"
)

const (
	// backoff after an error, so that a dead peer is not hammered.
	backoff = 100 * time.Millisecond
	// answerMin is the least that a thread can hold of a body whose length is
	// not known in advance.
	answerMin = 64 << 10
)

// thread is one thread of the loop; nothing in it is shared but the plan and
// the opening.
type thread struct {
	plan    *plan
	number  int32
	opening *opening
	link    link
	// answer is one byte longer than the body that is expected, so that a full
	// buffer means a body that is too long.
	answer []byte
}

func newThread(p *plan, number int, o *opening) *thread {
	size := max(answerMin, p.wantLen) + 1
	return &thread{plan: p, number: int32(number), opening: o, answer: make([]byte, size)}
}

// loop fills rows and returns how many: fewer than there are when ctx ends.
func (t *thread) loop(ctx context.Context, rows []sample.Request) int {
	defer t.link.close()
	for i := range rows {
		if i > 0 && !wait(ctx, t.pause(rows[i-1])) {
			return i
		}
		row := t.request(ctx, 0)
		// The end of ctx closes the connection; what that breaks is no finding.
		if row.Error != "" && ctx.Err() != nil {
			return i
		}
		row.Warmup = i < t.plan.Warmup
		rows[i] = row
		t.opening.note(row.Error)
	}
	return len(rows)
}

func (t *thread) pause(last sample.Request) time.Duration {
	if last.Error != "" {
		return max(t.plan.Think.Std(), backoff)
	}
	return t.plan.Think.Std()
}

// request does one request that was due at a time of CLOCK_MONOTONIC, 0 for
// now, and leaves the link open only if the next one may use it.
func (t *thread) request(ctx context.Context, due int64) sample.Request {
	deadline := time.Now().Add(t.plan.timeout())
	err := t.link.extend(deadline)
	if due == 0 {
		due = clock.Mono()
	}
	row := sample.Request{Thread: t.number, ScheduledNs: due}
	if err == nil {
		err = t.link.ready(ctx, t.plan.address, deadline)
	}
	row.Connection, row.Index = t.link.number, t.link.index
	if err != nil {
		row.Error = "dial " + class(err)
		return row
	}
	row.SentNs = clock.Mono()
	got, err := t.link.exchange(t.plan.request, t.answer)
	row.FirstByteNs = t.link.firstByte
	row.Status = int32(got.status)
	if err == nil {
		row.LastByteNs = t.link.lastByte
	}
	if err != nil || got.last || t.plan.Connection == New {
		t.link.close()
	}
	row.Error = t.verdict(got, err)
	return row
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

// wait sleeps, and reports whether ctx is still alive.
func wait(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
