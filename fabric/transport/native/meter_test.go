package native

import "testing"

// Loss is what happened in the last minutes: one packet is none, and in time it is over.
func TestMeter(t *testing.T) {
	var m meter
	seconds := func(n int, packets, lost uint32) {
		for range n {
			m.add(count{packets, lost})
		}
	}
	for _, c := range []struct {
		what string
		do   func()
		want bool
	}{
		{"nothing was sent", func() {}, false},
		{"nothing is lost", func() { seconds(60, 100, 0) }, false},
		{"one is", func() { seconds(1, 100, 1) }, false},
		{"one of a thousand is", func() { seconds(60, 1000, 1) }, true},
		{"no more is lost", func() { seconds(60, 1000, 0) }, true},
		{"none was for long", func() { seconds(1000, 1000, 0) }, false},
	} {
		if c.do(); m.lossy() != c.want {
			t.Errorf("%s: lossy %t, %.3f of %.0f", c.what, m.lossy(), m.lost, m.packets)
		}
	}
}
