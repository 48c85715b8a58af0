package native

import (
	"testing"
	"time"
)

// A pool has room for twice what streams needed in this span or the one before.
func TestDemand(t *testing.T) {
	const ahead, most = 1, 64
	var d demand
	for step, c := range []struct {
		do   func()
		want int
	}{
		{func() {}, 1},
		{d.begin, 2},
		{d.begin, 4},
		{d.end, 4},  // it may come again
		{d.turn, 4}, // the span before counts
		{d.turn, 2},
		{d.end, 2},
		{d.turn, 2},
		{d.turn, 1},
		{func() {
			for range 100 {
				d.begin()
			}
		}, most},
	} {
		c.do()
		if got := d.connections(ahead, most); got != c.want {
			t.Errorf("step %d: %d connections, want %d", step, got, c.want)
		}
	}
}

// Streams rush while more are open than there are connections, but not for ever.
func TestRush(t *testing.T) {
	const connections = 2
	var d demand
	at := time.Unix(1e9, 0)
	for _, c := range []struct {
		after time.Duration
		do    func()
		want  bool
	}{
		{0, d.begin, false},
		{0, d.begin, false}, // each has its connection
		{0, d.begin, true},
		{rushLook, func() {}, true},
		{0, d.end, false},
		{rushMost, d.begin, true}, // another
		{rushMost - 1, d.begin, true},
		{1, func() {}, false}, // they stay
		{rushMost, d.begin, false},
	} {
		at = at.Add(c.after)
		c.do()
		if got := d.rushes(at, connections); got != c.want {
			t.Errorf("%d streams on %d connections rush: %v", d.now, connections, got)
		}
	}
}
