package balance

import (
	"testing"
	"time"
)

// An endpoint that fails is left out, for longer each time, comes back by and by, and
// never are more than half of them out.
func TestEjection(t *testing.T) {
	b := newWith(t, Options{Policy: RoundRobin, Eject: true}, three())
	fail := func(now time.Duration, nodes ...string) {
		for range 6 * len(nodes) * 3 {
			ticket, _ := b.Pick(now)
			o := Served
			for _, n := range nodes {
				if ticket.Node == n {
					o = Failed
				}
			}
			b.Done(ticket, now, o)
		}
	}
	fail(0, "b")
	if got := picks(t, b, 0, 20); got["b"] != 0 {
		t.Errorf("after failures went %v", got)
	}
	fail(0, "b", "c")
	if got := picks(t, b, 0, 20); got["c"] == 0 {
		t.Errorf("two of three are out: %v", got)
	}
	now := 10 * time.Second
	if got := picks(t, b, now, 30); got["b"] != 10 {
		t.Errorf("10 s later went %v", got)
	}
	fail(now, "b")
	if got := picks(t, b, now+19*time.Second, 20); got["b"] != 0 {
		t.Errorf("19 s after it was ejected for the second time went %v", got)
	}
	if got := picks(t, b, now+20*time.Second, 30); got["b"] != 10 {
		t.Errorf("20 s after went %v", got)
	}
}

// Where who took connections is gone, one that was left out takes them again: there is
// nobody better.
func TestEjectedAloneIsAsked(t *testing.T) {
	v := three()
	b := newWith(t, Options{Policy: RoundRobin, Eject: true}, v)
	for range 3 * failuresMax {
		ticket, _ := b.Pick(0)
		b.Done(ticket, 0, map[bool]Outcome{true: Failed, false: Served}[ticket.Node == "b"])
	}
	v.Endpoints = v.Endpoints[:2]
	b.Update(v, ms)
	if got := picks(t, b, ms, 10); got["a"] != 10 {
		t.Errorf("one of two is left out, and 10 connections went %v", got)
	}
	v.Endpoints = v.Endpoints[1:]
	b.Update(v, 2*ms)
	if got := picks(t, b, 2*ms, 10); got["b"] != 10 {
		t.Errorf("10 connections went %v", got)
	}
}

// Failures that are far apart are no row, and an endpoint that has done well for long begins
// anew, also where no connection has an answer.
func TestFailuresFarApart(t *testing.T) {
	var s standing
	now := time.Duration(0)
	fail := func(n int, every time.Duration) (out bool) {
		for range n {
			now += every
			out = s.judge(now, false, 0, 10)
		}
		return out
	}
	if fail(20, failuresApart+time.Second) {
		t.Error("it is left out for failures that were no row")
	}
	now += 2 * failuresApart
	for _, want := range []time.Duration{ejectedFirst, 2 * ejectedFirst} {
		if !fail(failuresMax, time.Second) || s.until != now+want {
			t.Errorf("left out for %v, not %v", s.until-now, want)
		}
		now = s.until
	}
	now += ejectedMost
	if !fail(failuresMax, time.Second) || s.until != now+ejectedFirst {
		t.Errorf("long after, left out for %v", s.until-now)
	}
}

func TestSlowStart(t *testing.T) {
	v := queued(0, 0, 0)
	v.Nodes[1].RTT, v.Nodes[2].RTT = Known(2*ms, 0), Known(2*ms, 0)
	b := newWith(t, Options{Policy: Cost}, v)
	home := b.byID["a"]
	home.standing.until = 10 * time.Second // it has just come back
	if got := picks(t, b, 10*time.Second, 1); got["a"] == 1 {
		t.Errorf("an endpoint of a tenth of its worth has the first connection: %v", got)
	}
	if got := picks(t, b, 20*time.Second, 1); got["a"] != 1 {
		t.Errorf("10 s later went %v", got)
	}
}

// Of two endpoints at home the one that has just come back is asked once the other has ten times
// as much, and sends nobody away meanwhile.
func TestSlowStartAtHome(t *testing.T) {
	v := queued(0, 0, 0)
	v.Endpoints = append(v.Endpoints, Endpoint{ID: "a2", Node: "a"})
	b := newWith(t, Options{Policy: Cost}, v)
	b.byID["a2"].standing.until = 10 * time.Second
	for range 100 {
		ticket, err := b.Pick(10 * time.Second)
		if err != nil || ticket.Endpoint != "a" {
			t.Fatalf("a connection went to %s: %v", ticket.Endpoint, err)
		}
		b.Done(ticket, 10*time.Second, Served)
	}
	b.byID["a"].inFlight = 10
	if home := b.field.lighter(b.field.local, 10*time.Second); home.ID != "a2" {
		t.Errorf("with ten in flight at the other, %s is asked", home.ID)
	}
}
