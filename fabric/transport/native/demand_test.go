package native

import "testing"

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
