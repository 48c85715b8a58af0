package native

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// Training ends with the budget, and where it would cost others something.
func TestOver(t *testing.T) {
	const most = 1 << 20
	fine := lesson{sent: 1 << 19, rtt: 21 * time.Millisecond, least: 20 * time.Millisecond, count: count{packets: 400}}
	with := func(change func(*lesson)) lesson {
		l := fine
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		at   lesson
		want bool
	}{
		"fine":                {fine, false},
		"the budget is spent": {with(func(l *lesson) { l.sent = most }), true},
		"a short path":        {with(func(l *lesson) { l.least = 200 * time.Microsecond }), true},
		"three were lost":     {with(func(l *lesson) { l.lost = 3 }), false},
		"many were":           {with(func(l *lesson) { l.lost = 4 }), true},
		"nothing more comes":  {with(func(l *lesson) { l.rounds = roundsMost + 1 }), true},
		"few of many were":    {with(func(l *lesson) { l.lost, l.packets = 4, 4000 }), false},
	} {
		if got := c.at.over(most); got != c.want {
			t.Errorf("%s: over %t", name, got)
		}
	}
}

// A queue that stands for a round trip has to go; one that stands though no more comes
// through than before says that the path is full.
func TestQueued(t *testing.T) {
	now := time.Unix(1000, 0)
	l := lesson{}
	see := func(ms int, rtt int, rate uint64) bool {
		at := now.Add(time.Duration(ms) * time.Millisecond)
		l.see(at, time.Duration(rtt)*time.Millisecond, 20*time.Millisecond, 0)
		l.rate = max(l.rate, rate)
		return l.queued(at)
	}
	for _, c := range []struct {
		ms, rtt      int
		rate         uint64
		queued, full bool
	}{
		{0, 21, 100, false, false},
		{10, 26, 200, false, false},
		{30, 26, 200, false, false}, // for a moment
		{50, 22, 200, false, false}, // and has gone
		{60, 26, 200, false, false},
		{90, 26, 200, true, false}, // the first, perhaps of a pause
		{200, 26, 400, false, false},
		{260, 26, 400, true, false}, // more came through
		{300, 26, 450, false, false},
		{360, 26, 450, true, true},
	} {
		got := see(c.ms, c.rtt, c.rate)
		if got != c.queued {
			t.Errorf("after %d ms: queued %t", c.ms, got)
		}
		if got && l.full() != c.full {
			t.Errorf("after %d ms: full %t", c.ms, !c.full)
		}
	}
}

// Rounds are counted since a quarter more came through, and not while nothing is delivered.
func TestGrowth(t *testing.T) {
	var g growth
	for _, c := range []struct {
		delivered, underway uint32
		rate                uint64
		want                int
	}{
		{0, 10, 100, 1},
		{5, 10, 100, 1}, // within the round
		{5, 20, 100, 1}, // the machine pauses
		{10, 20, 110, 2},
		{30, 40, 110, 3},
		{70, 80, 125, 1}, // a quarter more
		{150, 80, 150, 2},
	} {
		if g.note(c.delivered, c.underway, c.rate); g.rounds != c.want {
			t.Errorf("after %+v: %d rounds", c, g.rounds)
		}
	}
}

// A probe follows a lesson at half its rate, and fits into what is left of the budget and
// into four round trips; none follows where nothing was learnt.
func TestProbes(t *testing.T) {
	const most = 16 << 20
	for _, c := range []struct {
		at          lesson
		bytes, rate int64
	}{
		{lesson{least: 200 * time.Microsecond}, 0, 0},
		{lesson{sent: 8 << 20, least: 20 * time.Millisecond, rate: 100e6}, 2 << 20, 50e6},
		{lesson{sent: most - 1<<20, least: 20 * time.Millisecond, rate: 100e6}, 1 << 20, 50e6},
		{lesson{sent: 1 << 20, least: 40 * time.Millisecond, rate: 2.5e6}, 200e3, 1.25e6},
		{lesson{sent: most, least: 40 * time.Millisecond, rate: 2.5e6}, 0, 1.25e6},
	} {
		if bytes, rate := c.at.probes(most); bytes != c.bytes || int64(rate) != c.rate {
			t.Errorf("after %+v: %d bytes at %d", c.at, bytes, rate)
		}
	}
}

// What is sent for nobody stays within an hour's budget, is counted, and ends with it.
func TestBudget(t *testing.T) {
	const perHour = 1 << 20
	extra := new(Extra)
	training := NewTraining(perHour, perHour, extra)
	pad := padding{leg: legOf(nil), idle: func() bool { return true }, bytes: make([]byte, 1<<10), out: func([]byte) error { return nil }}
	allowed := 0
	for training.budget.AllowN(time.Now(), len(pad.bytes)) {
		if err := training.pad(pad); err != nil {
			t.Fatal(err)
		}
		allowed += len(pad.bytes)
	}
	later := time.Now().Add(time.Hour) // what has become free in one
	if allowed += int(training.budget.TokensAt(later)); allowed > perHour+len(pad.bytes) || allowed < perHour/2 {
		t.Errorf("%d bytes in an hour, of %d", allowed, perHour)
	}
	if got := extra.Training.Load(); got < perHour/2 || got > perHour/2+4<<10 {
		t.Errorf("%d bytes are counted", got)
	}
}

// A lesson that waits to write for ever keeps no other from learning.
func TestTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := semaphore.NewWeighted(lanesAtOnce)
		late := turn(turns, lanesAtOnce)
		begin := time.Now()
		next := turn(turns, lanesAtOnce)
		if took := time.Since(begin); took != turnLong {
			t.Errorf("the next waits for %s", took)
		}
		late() // which gives nothing back twice
		next()
		next = turn(turns, lanesAtOnce)
		if turns.TryAcquire(1) {
			t.Error("two have the turn")
		}
		next()
	})
}
