package guest_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/flow"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
)

// counted wants a count of the emulator to be what arrived; netem knows only of
// reordered packets.
func (l lab) counted(t *testing.T, word string, count uint64, arrived int) {
	t.Helper()
	status, err := l.links.Status(t.Context())
	must(t, err)
	want := uint64(arrived)
	if status.Backend == emulator.Netem {
		want = 0
	}
	if count != want {
		t.Errorf("%d counted as %s, want %d", count, word, want)
	}
}

func bursts(t *testing.T, l lab) {
	const count, enter, leave = 1200, 0.02, 0.25
	l.set(t, routed(l.Network, impair.Impairment{Burst: impair.Burst{Enter: enter, Leave: leave}})...)
	arrivals := l.send(t, flow.Flow{Count: count, Gap: 50 * time.Microsecond})
	gaps := arrivals.Gaps(count)
	c := l.counters(t, there)
	if c.Packets != count || c.Lost != uint64(count-len(arrivals)) || c.Overflowed+c.Missed != 0 {
		t.Errorf("counters %+v, but %d of %d arrived", c, len(arrivals), count)
	}
	// Lengths are geometric: 5 standard errors of their mean.
	n := float64(len(gaps))
	mean := float64(count-len(arrivals)) / n
	if math.Abs(mean-1/leave) > 5*math.Sqrt(1-leave)/leave/math.Sqrt(n) {
		t.Errorf("bursts of %.2f packets at the mean of %.0f, want %g", mean, n, 1/leave)
	}
	// A burst begins behind each packet that arrives, but for the last.
	wantBinomial(t, len(gaps), len(arrivals), enter)
}

func duplication(t *testing.T, l lab) {
	const count, p = 700, 0.1
	l.set(t, routed(l.Network, impair.Impairment{Delay: ms(2), Duplicate: p})...)
	arrivals := l.send(t, flow.Flow{Count: count, Gap: 100 * time.Microsecond})
	copies := arrivals.Copies()
	if len(arrivals) != count+copies || arrivals.Gaps(count) != nil {
		t.Errorf("%d packets arrived, %d of them copies; want %d and the copies", len(arrivals), copies, count)
	}
	// Copies and what they are of wait for the guest's one core.
	if least, most := arrivals.Quantile(0), arrivals.Quantile(0.9); least < 2*time.Millisecond || most > 2*time.Millisecond+slack {
		t.Errorf("delays of %s to %s, want 2ms for copies, too", least, most)
	}
	wantBinomial(t, copies, count, p)
	l.counted(t, "duplicated", l.counters(t, there).Duplicated, copies)
}

func corruption(t *testing.T, l lab) {
	const count, p = 700, 0.1
	l.set(t, routed(l.Network, impair.Impairment{Corrupt: p})...)
	arrivals := l.send(t, flow.Flow{Count: count, Size: 1400, Gap: 100 * time.Microsecond, Bare: true})
	whole, arrived := len(arrivals.Delays()), len(arrivals)
	// Nearly all of a packet is payload, so nearly all with a wrong bit arrive.
	if damaged := arrived - whole; damaged < 9*(count-whole)/10 {
		t.Errorf("%d of %d damaged packets arrived", damaged, count-whole)
	}
	wantBinomial(t, count-whole, count, p)
	l.counted(t, "corrupted", l.counters(t, there).Corrupted, count-whole)
}

func reordering(t *testing.T, l lab) {
	const count, p = 700, 0.1
	l.set(t, routed(l.Network, impair.Impairment{Delay: ms(50), Reorder: p, Rate: 1e9})...)
	arrivals := l.send(t, flow.Flow{Count: count, Gap: 100 * time.Microsecond})
	ahead, early := arrivals.Overtaking(), 0
	for _, a := range arrivals {
		// Packets without delay may wait for the guest's one core, though not for so long.
		if a.Delay < 50*time.Millisecond {
			early++
		}
	}
	// The first packet has none to overtake, nor has one whose sender was held up for
	// longer than the delay before it, rarely.
	if len(arrivals) != count || early-ahead < 0 || early-ahead > early/10 {
		t.Errorf("%d of %d arrived, %d without delay, %d before an earlier one", len(arrivals), count, early, ahead)
	}
	if c := l.counters(t, there); c.Reordered != uint64(early) {
		t.Errorf("%d counted as reordered, want %d", c.Reordered, early)
	}
	wantBinomial(t, early, count, p)
}

func paretoJitter(t *testing.T, l lab) {
	i := impair.Impairment{Delay: ms(10), Jitter: ms(5), Distribution: impair.Pareto, Unordered: true}
	arrivals := jittered(t, l, i)
	// Five standard errors of the share of packets below each quantile.
	for _, q := range []float64{0.1, 0.5, 0.9} {
		reach := 5 * math.Sqrt(q*(1-q)/float64(len(arrivals)))
		at := func(p float64) time.Duration {
			return 10*time.Millisecond + time.Duration(5e6*impair.Pareto.Quantile(p))
		}
		if got, low, high := arrivals.Quantile(q), at(q-reach), at(q+reach)+slack; got < low || got > high {
			t.Errorf("quantile %g is %s, want %s to %s", q, got, low, high)
		}
	}
}

// recordedJitter is a file's: two routes of which a third of all packets take the
// longer, and one in a hundred is held up for long.
func recordedJitter(t *testing.T, l lab) {
	var text strings.Builder
	for i := range 300 {
		switch {
		case i%100 == 1:
			fmt.Fprintln(&text, 210)
		case i%3 == 0:
			fmt.Fprintln(&text, 20)
		default:
			fmt.Fprintln(&text, 10)
		}
	}
	file := filepath.Join(t.TempDir(), "delays.csv")
	must(t, os.WriteFile(file, []byte(text.String()), 0o600))
	arrivals := jittered(t, l, impair.Impairment{Distribution: impair.Distribution(file), Unordered: true})
	var short, long, held int
	for _, a := range arrivals {
		within := func(want time.Duration) bool { return a.Delay >= want-slack && a.Delay <= want+slack }
		switch {
		case within(10 * time.Millisecond):
			short++
		case within(20 * time.Millisecond):
			long++
		case a.Delay > 200*time.Millisecond:
			held++
		}
	}
	n := len(arrivals)
	if other := n - short - long - held; other > n/20 { // the sender may be held up, rarely
		t.Errorf("%d of %d packets have a delay that was not recorded", other, n)
	}
	wantBinomial(t, long, n, 99./300)
	wantBinomial(t, held, n, 3./300)
}

// nodesExempt have no link, whatever their clusters have, also once it was taken
// away.
func nodesExempt(t *testing.T, l lab) {
	directions := routed(l.Network, impair.Impairment{Delay: ms(4)})
	single := impair.Direction{Name: "c1/n2>c2/n1", Match: directions[0].Match}
	single.Match.Source, single.Match.Destination = l.C1N2.Address, l.C2N1.Address
	l.set(t, append(directions, single)...)
	l.wantDelay(t, l.C1N2, l.C2N1, 0)
	l.wantDelay(t, l.C1N1, l.C2N1, 4*time.Millisecond)
	l.wantDelay(t, l.C2N1, l.C1N2, 4*time.Millisecond)
	_, err := l.links.Change(t.Context(), directions)
	must(t, err)
	l.wantDelay(t, l.C1N2, l.C2N1, 4*time.Millisecond)
	_, err = l.links.Change(t.Context(), append(directions, single))
	must(t, err)
	l.wantDelay(t, l.C1N2, l.C2N1, 0)
}

// stages are two links in a row: delays add up, each loses its share, and the
// second has a queue of its own behind the first's delay.
func stages(t *testing.T, l lab) {
	const count, p, size, bits = 600, 0.1, 1400, 100e6
	directions := routed(l.Network, impair.Impairment{Delay: ms(3), Loss: p})
	directions[0].Then = []impair.Impairment{{Delay: ms(4), Loss: p, Rate: bits}}
	l.set(t, directions...)
	arrivals := l.send(t, flow.Flow{Count: count, Size: size, Gap: 300 * time.Microsecond})
	want := 7*time.Millisecond + time.Duration((size+flow.Headers)*8e9/bits)
	if least, middle := arrivals.Quantile(0), arrivals.Quantile(0.5); least < want || middle > want+slack {
		t.Errorf("delays from %s, %s at the median, want %s", least, middle, want)
	}
	c := l.counters(t, there)
	if c.Packets != count || c.Lost != uint64(count-len(arrivals)) || c.Overflowed+c.Missed != 0 {
		t.Errorf("counters %+v, but %d of %d arrived", c, len(arrivals), count)
	}
	wantBinomial(t, int(c.Lost), count, 1-(1-p)*(1-p))
}
