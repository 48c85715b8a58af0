package guest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/flow"
	"skerry.dev/skerry/lab/impair"
)

// refused gives orders that cannot be carried out, after one that can.
func refused(t *testing.T, l lab) {
	var tooMany []impair.Direction
	for i := range 16 {
		d := routed(l.Network, impair.Impairment{Delay: ms(1)})[0]
		d.Name = fmt.Sprintf("d%d", i)
		tooMany = append(tooMany, d)
	}
	noInterface := routed(l.Network, impair.Impairment{Delay: ms(5)})
	noInterface[1].Match.Out = "c9"
	l.set(t, tooMany[:15]...)
	before := qdiscs(t)
	for _, order := range []struct {
		directions []impair.Direction
		want       string
	}{
		{tooMany, "link d15: more than 15 impaired directions end at interface c2"},
		{noInterface, "find interface c9"},
		{routed(l.Network, impair.Impairment{Loss: 0.1, Duplicate: 0.1}), "netem would decide on the loss of a duplicated packet's copy again"},
		{routed(l.Network, impair.Impairment{Trace: "lte"}), "netem replays no traces"},
	} {
		err := l.links.Set(t.Context(), order.directions)
		if err == nil || !strings.Contains(err.Error(), order.want) {
			t.Errorf("error %v, want %s", err, order.want)
		}
		if left := qdiscs(t); !slices.Equal(left, before) {
			t.Errorf("after a refused order there are qdiscs %s, before it %s", strings.Join(left, ", "), strings.Join(before, ", "))
		}
		l.wantDelay(t, l.C1N1, l.C2N1, time.Millisecond)
	}
}

// changed has a link do something else that takes the same qdiscs, and looks for
// what it did before: a rate, corruption, and the tails of a distribution.
func changed(t *testing.T, l lab) {
	const count = 200
	before := impair.Impairment{Delay: ms(10), Jitter: ms(2), Distribution: impair.Normal, Unordered: true, Corrupt: 1}
	after := impair.Impairment{Delay: ms(10), Jitter: ms(2), Unordered: true, Loss: 1e-9}
	slow := impair.Impairment{Delay: ms(10), Rate: 1e6}
	for _, was := range []impair.Impairment{before, slow} {
		l.set(t, routed(l.Network, was)...)
		_, err := l.links.Change(t.Context(), routed(l.Network, after))
		must(t, err)
		arrivals := l.send(t, flow.Flow{Count: count, Gap: 200 * time.Microsecond})
		if len(arrivals) != count {
			t.Fatalf("from %s to %s: %d of %d arrived", was, after, len(arrivals), count)
		}
		// Of a normal jitter a third would lie outside; at the old rate each packet
		// takes 0.5 ms, so that half of them would.
		least, most := arrivals.Quantile(0), arrivals.Quantile(0.9)
		if least < 8*time.Millisecond || most > 12*time.Millisecond+slack {
			t.Errorf("from %s to %s: delays of %s to %s, want 10ms ± 2ms", was, after, least, most)
		}
	}
}

// outage has a link that has a rate lose all for a time: netem drops by the same qdisc
// what overflows before and after it.
func outage(t *testing.T, l lab) {
	const count = 50
	up, down := impair.Impairment{Delay: ms(10), Rate: 100e6}, impair.Impairment{Loss: 1}
	l.set(t, routed(l.Network, up)...)
	_, err := l.links.Change(t.Context(), routed(l.Network, down))
	must(t, err)
	l.send(t, flow.Flow{Count: count, Gap: 200 * time.Microsecond})
	before := l.counters(t, there)
	_, err = l.links.Change(t.Context(), routed(l.Network, up))
	must(t, err)
	if arrivals := l.send(t, flow.Flow{Count: count, Gap: time.Millisecond}); len(arrivals) != count {
		t.Errorf("after the outage %d of %d arrived", len(arrivals), count)
	}
	after := l.counters(t, there)
	since, forward := after.Minus(before)
	if !forward || before.Lost != count || since.Packets != count || since.Lost != 0 || after.Overflowed != 0 {
		t.Errorf("down it counted %+v, up again %+v", before, after)
	}
}
