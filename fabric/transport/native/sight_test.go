package native

import (
	"testing"
	"time"

	"skerry.dev/skerry/internal/conntest"
)

// A gateway is silent when it owes an answer for longer than usual, and a way that became
// worse is known at once, one that became better by and by.
func TestSight(t *testing.T) {
	at := time.Unix(1000, 0)
	var s sight
	if s.silent(at) || s.silence(at) != 0 {
		t.Error("silent before anything was asked")
	}
	s.ask(at)
	s.ask(at.Add(time.Second)) // the first has no answer yet
	if got := s.silence(at.Add(2 * time.Second)); got != 2*time.Second {
		t.Errorf("silent for %s, want 2s", got)
	}
	s.answer(20 * time.Millisecond)
	for _, c := range []struct {
		answer, want time.Duration
	}{{100 * time.Millisecond, 100 * time.Millisecond}, {50 * time.Millisecond, 90 * time.Millisecond}, {40 * time.Millisecond, 80 * time.Millisecond}} {
		if s.answer(c.answer); s.rtt != c.want {
			t.Errorf("after an answer in %s: %s, want %s", c.answer, s.rtt, c.want)
		}
	}
	s.ask(at)
	if s.silent(at.Add(600 * time.Millisecond)) {
		t.Error("silent, though twice the usual and a half second are not over")
	}
	if !s.silent(at.Add(700 * time.Millisecond)) {
		t.Error("not silent")
	}
}

// A gateway that owes an answer is not ready when the connection ends on which it was asked, though
// others to it seem open yet; it is when it has left that one, or the pool has.
func TestSilentWithoutSession(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(*Pool, *session)
		ready bool
	}{
		"the connection ends": {(*Pool).forsake, false},
		"the gateway leaves":  {(*Pool).excuse, true},
		"renewed":             {func(p *Pool, _ *session) { p.Renew() }, true},
	} {
		near, _ := conntest.Pair(t)
		p, s := NewPool("", nil, Options{}), new(session)
		p.put(&connection{conn: near, own: true})
		p.shared = s
		p.sight.ask(time.Now().Add(-time.Minute))
		if c.end(p, s); p.Path().Ready != c.ready {
			t.Errorf("%s: ready %t", name, p.Path().Ready)
		}
	}
}

// A queue stands on a path where the round trip is longer than the least by a quarter.
func TestCrowded(t *testing.T) {
	for _, c := range []struct {
		rtt, least time.Duration
		want       bool
	}{
		{0, 0, false},
		{time.Millisecond, 100 * time.Microsecond, false},
		{24 * time.Millisecond, 20 * time.Millisecond, false},
		{26 * time.Millisecond, 20 * time.Millisecond, true},
		{66 * time.Millisecond, 40 * time.Millisecond, true},
	} {
		if got := crowded(c.rtt, c.least); got != c.want {
			t.Errorf("%s of %s: %t", c.rtt, c.least, got)
		}
	}
}

// BBR makes way for cubic once, and no other does.
func TestYield(t *testing.T) {
	if err := HasCongestion(bbr); err != nil {
		t.Skip("needs the kernel's tcp_bbr: ", err)
	}
	conn, _ := conntest.Pair(t)
	of := legOf(conn)
	if err := of.tune(bbr); err != nil {
		t.Fatal(err)
	}
	if first, second := of.yield(), of.yield(); !first || second {
		t.Errorf("yields %t, then %t", first, second)
	}
}
