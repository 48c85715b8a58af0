package userspace

import (
	"path/filepath"
	"testing"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/trace"
)

// replaying is a direction of one stage whose trace begins at 0.
func replaying(t *testing.T, does impair.Impairment) *direction {
	t.Helper()
	d := newDirection(impair.Stages{does}, 1)
	if err := d.replay(0, trace.Open); err != nil {
		t.Fatal(err)
	}
	return d
}

// A stage with a trace does what a player of that trace says, behind it what the
// stage does besides, and keeps packets in order though the trace's delay falls.
func TestReplay(t *testing.T) {
	made, err := trace.Open(trace.LTE)
	if err != nil {
		t.Fatal(err)
	}
	const queue = 60_000
	d := replaying(t, impair.Impairment{Trace: trace.LTE, Delay: 3 * ms, Queue: queue})
	player := trace.NewPlayer(made, 0)
	var last, overflowed int64
	for i := range int64(20_000) {
		arrival := i * 400_000 // 30 Mbit/s, more than the link has
		left, delay, ok := player.Send(arrival, 1514, queue)
		o := d.stages[0].admit(arrival, 1514)
		if ok != (o.fate == pass) {
			t.Fatalf("packet %d: %+v, the player says %t", i, o, ok)
		}
		if !ok {
			overflowed++
			continue
		}
		last = max(last, left+int64(delay)+int64(3*ms))
		if o.due != last {
			t.Fatalf("packet %d is due at %d, want %d", i, o.due, last)
		}
	}
	if overflowed == 0 {
		t.Error("no packet overflowed the queue")
	}
}

// A link that changes goes on with its trace where it stands, and begins another
// one anew.
func TestReplayGoesOn(t *testing.T) {
	before := replaying(t, impair.Impairment{Trace: trace.LTE})
	before.stages[0].admit(0, 1514)
	player := before.stages[0].player
	for _, c := range []struct {
		name string
		kept bool
	}{{trace.LTE, true}, {trace.NR, false}} {
		after := replaying(t, impair.Impairment{Trace: c.name, Delay: ms})
		after.before = before
		after.goOn()
		if got := after.stages[0].player == player; got != c.kept {
			t.Errorf("from %s to %s: goes on is %t", trace.LTE, c.name, got)
		}
	}
}

func TestReplayOfNoTrace(t *testing.T) {
	d := newDirection(impair.Stages{{Trace: filepath.Join(t.TempDir(), "none")}}, 1)
	if err := d.replay(0, trace.Open); err == nil {
		t.Error("a file that is not there is replayed")
	}
}
