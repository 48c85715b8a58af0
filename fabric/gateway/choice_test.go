package gateway

import (
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// Ways are tried as their prices say, those first that are ready.
func TestChoose(t *testing.T) {
	path := func(ready bool, rtt time.Duration, loss float64, streams int) transport.Path {
		return transport.Path{Ready: ready, RTT: rtt, Loss: loss, Streams: streams}
	}
	for _, c := range []struct {
		what string
		ways []transport.Path
		want []int
	}{
		{"none", nil, []int{}},
		{"the near one", []transport.Path{path(true, 20*time.Millisecond, 0, 0), path(true, 2*time.Millisecond, 0, 0)}, []int{1, 0}},
		{"the near one has much to do", []transport.Path{path(true, 20*time.Millisecond, 0, 0), path(true, 2*time.Millisecond, 0, 20)}, []int{0, 1}},
		{"one loses packets", []transport.Path{path(true, 20*time.Millisecond, 0.05, 0), path(true, 25*time.Millisecond, 0, 0)}, []int{1, 0}},
		{"the near one is not there", []transport.Path{path(false, 2*time.Millisecond, 0, 0), path(true, 20*time.Millisecond, 0, 9)}, []int{1, 0}},
		{"one is not known yet", []transport.Path{path(true, 2*time.Millisecond, 0, 0), path(true, 0, 0, 0)}, []int{1, 0}},
		{"none is there", []transport.Path{path(false, 9*time.Millisecond, 0, 0), path(false, 2*time.Millisecond, 0, 0)}, []int{1, 0}},
	} {
		if got := choose(c.ways, func(int) int { return 0 }); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
}

// Of ways that cost about the same each is the first at times, of others none.
func TestChooseOfAlike(t *testing.T) {
	ways := []transport.Path{{Ready: true, RTT: 50 * time.Millisecond}, {Ready: true, RTT: 20 * time.Millisecond}, {Ready: true, RTT: 21 * time.Millisecond}}
	for drawn, want := range [][]int{{1, 2, 0}, {2, 1, 0}} {
		got := choose(ways, func(n int) int {
			if n != 2 {
				t.Errorf("one of %d is drawn, want 2", n)
			}
			return drawn
		})
		if !slices.Equal(got, want) {
			t.Errorf("draw %d: got %v, want %v", drawn, got, want)
		}
	}
}
