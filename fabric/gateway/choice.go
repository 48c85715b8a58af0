package gateway

import (
	"cmp"
	"slices"

	"skerry.dev/skerry/fabric/transport"
)

const (
	// packets of a call: when one is lost it takes a round trip more.
	callPackets = 10
	// rttLeast keeps differences that nobody notices from having one way take all.
	rttLeast = 0.2e6
	// alike are ways of which the dearer costs at most this much more.
	alike = 1.1
)

// choose says in which order ways are to be tried: those first that are ready, and of these
// the cheapest. Of ways that cost about the same one is drawn to be the first, so that all
// of a cluster's gateways are used.
func choose(ways []transport.Path, draw func(n int) int) []int {
	all := make([]int, len(ways))
	for i := range all {
		all[i] = i
	}
	unready := func(i int) int {
		if ways[i].Ready {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(cmp.Compare(unready(a), unready(b)), cmp.Compare(price(ways[a]), price(ways[b])))
	})
	same := 0
	for same < len(all) && unready(all[same]) == unready(all[0]) && price(ways[all[same]]) <= alike*price(ways[all[0]]) {
		same++
	}
	if same > 1 {
		first := draw(same)
		all[0], all[first] = all[first], all[0]
	}
	return all
}

// price of a call by a way: what a round trip takes, times the calls that are on the way
// then, as in the peak-EWMA of Finagle. What is not known costs least: then it will be.
func price(w transport.Path) float64 {
	return (float64(w.RTT) + rttLeast) * float64(1+w.Streams) * (1 + callPackets*w.Loss)
}
