package host_test

import (
	"testing"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
)

// Links that change count on: to each time between two changes belongs what it
// counted, to the last packet, and the whole is the sum. What is under way when a
// link changes arrives as it would have.
func TestChangedLinksGoOn(t *testing.T) {
	lab := up(t, "change", square())
	set(t, lab, both("c1", "c2", delay(10))...)
	slow(t, rtt(t, lab, "c1/worker", "c2-worker"), 20*time.Millisecond)
	change := func(links []host.Link) impair.Counters {
		t.Helper()
		ended, err := lab.ChangeLinks(t.Context(), links, 2)
		if err != nil {
			t.Fatal(err)
		}
		return ended["c1>c2"]
	}
	underWay := make(chan time.Duration, 1)
	go func() { underWay <- rtt(t, lab, "c2/worker", "c1-worker") }()
	time.Sleep(100 * time.Millisecond)
	first := change(both("c1", "c2", delay(40)))
	if first.Packets == 0 || first.Lost > 0 {
		t.Errorf("until the first change: %+v", first)
	}
	if least := <-underWay; least < 20*time.Millisecond || least > 40*time.Millisecond {
		t.Errorf("the least of pings before the change and after it is %s", least)
	}
	slow(t, rtt(t, lab, "c1/worker", "c2-worker"), 80*time.Millisecond)
	second := change(both("c1", "c2", impair.Impairment{Loss: 1}))
	if out, err := sh(t, lab, "c1/worker", "ping -c 5 -i 0.01 -W 0.2 c2-worker"); err == nil {
		t.Errorf("a link that is down answers: %s", out)
	}
	third := change(both("c1", "c2", impair.Impairment{}))
	// Since none passed meanwhile, each was lost: not one is counted with others.
	since, forward := third.Minus(second)
	if !forward || since.Packets < 5 || since.Lost != since.Packets || second.Packets <= first.Packets || second.Lost > 0 {
		t.Errorf("until the changes: %+v, %+v, %+v", first, second, third)
	}
	fast(t, rtt(t, lab, "c1/worker", "c2-worker"), 20*time.Millisecond)
	if now := seen(t, lab, "c1>c2"); now.Packets < third.Packets+10 || now.Lost != third.Lost {
		t.Errorf("after the changes %+v, with the pings since: %+v", third, now)
	}
}
