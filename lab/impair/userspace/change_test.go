package userspace

import (
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// length of the chain of directions that one goes on from.
func length(d *direction) (n int) {
	for ; d.before != nil; d = d.before {
		n++
	}
	return n
}

// A link that changes without a packet keeps nothing of what it was, however often
// it does, and still goes on with what it was doing.
func TestChangesOfAnIdleLinkAreForgotten(t *testing.T) {
	first := newDirection(impair.Stages{{Rate: 8e6}}, 1)
	w := newWire(t, first)
	first.stages[0].admit(0, 1000) // the rate is busy for 1 ms
	for range 1000 {
		next := newDirection(impair.Stages{{Rate: 8e6}}, 1)
		next.before = w.engine.table[0].Load()
		w.engine.table[0].Store(next)
		w.engine.changed.Store(true)
		w.begin()
		if n := length(next); n > 0 {
			t.Fatalf("a chain of %d directions is kept", n)
		}
	}
	last := w.engine.table[0].Load()
	if o := last.stages[0].admit(0, 1000); o.due != 2e6 {
		t.Errorf("after 1000 changes a packet is due at %d ns, want 2 ms: behind the one before them", o.due)
	}
	// A turn without a change looks at no direction.
	last.before = first
	if w.begin(); last.before != first {
		t.Error("a turn without a change has directions go on")
	}
}

// A change of another link lets no packet of this one overtake those under way.
func TestOrderIsKeptOverAChange(t *testing.T) {
	does := impair.Stages{{Delay: quantity.Duration(50 * time.Millisecond), Jitter: quantity.Duration(20 * time.Millisecond)}}
	var arrival, last int64
	var before *direction
	for seed := range uint64(3) {
		d := newDirection(does, seed)
		d.before = before
		d.goOn()
		for range 200 {
			arrival += 1e5
			o := d.stages[0].admit(arrival, 1000)
			if o.due < last {
				t.Fatalf("after %d changes a packet is due at %d ns, before the one ahead of it, at %d ns", seed, o.due, last)
			}
			last = o.due
		}
		before = d
	}
}
