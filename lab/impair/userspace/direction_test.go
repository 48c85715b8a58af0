package userspace

import (
	"math"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

const ms = quantity.Duration(time.Millisecond)

// delays sends n packets of a size, one each interval, and returns the delay of
// each that passed, and the fates.
func delays(i impair.Impairment, n, size int, interval time.Duration) (passed []float64, fates map[fate]int) {
	s := newStage(i, 42, 0)
	fates = map[fate]int{}
	for k := range n {
		arrival := int64(k) * int64(interval)
		o := s.admit(arrival, size)
		fates[o.fate]++
		if o.fate == pass {
			passed = append(passed, float64(o.due-arrival))
		}
	}
	return passed, fates
}

func TestPureDelayIsExact(t *testing.T) {
	got, _ := delays(impair.Impairment{Delay: 5 * ms}, 100, 1514, 0)
	if slices.Min(got) != 5e6 || slices.Max(got) != 5e6 {
		t.Errorf("delays from %v to %v ns, want 5e6", slices.Min(got), slices.Max(got))
	}
}

func TestLossFollowsItsBinomial(t *testing.T) {
	const n, p = 100_000, 0.01
	_, fates := delays(impair.Impairment{Loss: p}, n, 100, 0)
	const sigmas = 3.29 // 99.9 %
	if spread := sigmas * math.Sqrt(n*p*(1-p)); math.Abs(float64(fates[lose])-n*p) > spread {
		t.Errorf("lost %d of %d, want %v ± %.0f", fates[lose], n, n*p, spread)
	}
}

func TestLossOfAllAndNothing(t *testing.T) {
	if _, fates := delays(impair.Impairment{Loss: 1}, 1000, 100, 0); fates[pass] != 0 {
		t.Errorf("%d packets passed a loss of 100%%", fates[pass])
	}
	if _, fates := delays(impair.Impairment{Delay: ms}, 1000, 100, 0); fates[pass] != 1000 {
		t.Errorf("%d of 1000 packets passed a lossless link", fates[pass])
	}
}

// ks is the Kolmogorov–Smirnov distance of a sample from a distribution, given by
// its quantiles: it may have steps, which the many equal values of a cut are.
func ks(values []float64, quantile func(float64) float64) float64 {
	slices.Sort(values)
	const steps = 1 << 16
	worst, n := 0.0, float64(len(values))
	i := 0
	for k := range steps {
		p := float64(k+1) / steps
		for i < len(values) && values[i] <= quantile(p) {
			i++
		}
		if quantile(p) < quantile(1) { // of a step its end counts
			worst = max(worst, math.Abs(float64(i)/n-p))
		}
	}
	return worst
}

func TestJitterDistributions(t *testing.T) {
	const n = 10_000
	critical := 1.95 / math.Sqrt(n) // 99.9 %
	all := []impair.Distribution{impair.Uniform, impair.Normal, impair.Pareto}
	for _, distribution := range all {
		// Packets 20 ms apart are never held back to keep their order.
		got, _ := delays(impair.Impairment{Delay: 5 * ms, Jitter: ms, Distribution: distribution}, n, 100, 20*time.Millisecond)
		for _, asked := range all {
			d := ks(got, func(p float64) float64 { return 5e6 + 1e6*asked.Quantile(p) })
			if d > critical != (asked != distribution) {
				t.Errorf("%s: distance %.4f from %s, critical %.4f", distribution, d, asked, critical)
			}
		}
	}
}

func TestJitterKeepsOrderUnlessAsked(t *testing.T) {
	overtaken := func(unordered bool) (n int) {
		s := newStage(impair.Impairment{Delay: 5 * ms, Jitter: 2 * ms, Unordered: unordered}, 1, 0)
		var last int64
		for k := range int64(1000) {
			o := s.admit(k*1000, 100)
			if o.due < last {
				n++
			}
			last = o.due
		}
		return n
	}
	if n := overtaken(false); n != 0 {
		t.Errorf("%d packets overtook others", n)
	}
	if n := overtaken(true); n < 300 {
		t.Errorf("only %d of 1000 packets overtook another although reordering was asked for", n)
	}
}

func TestRateSerialisesAndBoundsItsQueue(t *testing.T) {
	// 1000 bytes at 8 Mbit/s take 1 ms each; 10,000 bytes may wait.
	i := impair.Impairment{Delay: 5 * ms, Rate: 8e6, Queue: 10_000}
	got, fates := delays(i, 100, 1000, 0)
	if fates[pass] != 10 || fates[overflow] != 90 {
		t.Fatalf("of a burst of 100 packets %d passed and %d overflowed, want 10 and 90", fates[pass], fates[overflow])
	}
	for k, d := range got {
		if want := float64(k+1)*1e6 + 5e6; d != want {
			t.Errorf("packet %d took %v ns, want %v", k, d, want)
		}
	}
	// At 80 % of the rate nothing waits for longer than its own serialisation.
	got, fates = delays(i, 100, 1000, 1250*time.Microsecond)
	if fates[overflow] != 0 || slices.Max(got) != 6e6 {
		t.Errorf("below the rate %d overflowed and the worst took %v ns, want 0 and 6e6", fates[overflow], slices.Max(got))
	}
}

func TestFrameBytesOfSuperPackets(t *testing.T) {
	tcp := make([]byte, copyRange)
	tcp[0], tcp[9], tcp[32] = 0x45, 6, 8<<4 // IPv4, TCP with 12 bytes of options
	tcp6 := make([]byte, copyRange)
	tcp6[0], tcp6[6], tcp6[52] = 0x60, 6, 8<<4 // IPv6, likewise
	tests := []struct {
		name   string
		length int
		head   []byte
		want   int
	}{
		{"two full segments of IPv6", 72 + 2*1428, tcp6, 2 * 1514},
		{"one packet", 1500, tcp, 1514},
		{"a small one", 52, tcp, 66},
		{"two full segments", 52 + 2*1448, tcp, 2 * 1514},
		{"a full and a short segment", 52 + 1448 + 100, tcp, 1514 + 166},
		{"44 segments", 52 + 44*1448, tcp, 44 * 1514},
	}
	for _, tt := range tests {
		if got := frameBytes(tt.length, tt.head); got != tt.want {
			t.Errorf("%s: %d bytes on the wire, want %d", tt.name, got, tt.want)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	s := newStage(impair.Impairment{Delay: 5 * ms, Jitter: ms, Loss: 0.0008, Rate: 1e9}, 1, 0)
	arrival := int64(0)
	for b.Loop() {
		arrival += 12_112
		s.admit(arrival, 1514)
	}
}

func TestGaps(t *testing.T) {
	const bound = int64(impair.GapBound)
	var g gaps
	for _, ns := range []int64{-5, 0, 40_000, bound, 3 * bound, 2 * bound} {
		g.record(ns)
	}
	if got, want := g.snapshot(), (impair.Gaps{MaxNs: 3 * bound, Count: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	g.reset()
	if got := g.snapshot(); got != (impair.Gaps{}) {
		t.Errorf("after a reset: %+v", got)
	}
}

// An emulator that is kept from its packets for long is late by all of it; a wall
// clock that was stepped says nothing.
func TestBelieved(t *testing.T) {
	const second = int64(time.Second)
	p := &path{drained: 10 * second}
	for _, c := range []struct {
		name               string
		arrival, now, want int64
	}{
		{"just now", 11 * second, 11*second + 5, 11 * second},
		{"after a stall of an hour", 11 * second, 3600 * second, 11 * second},
		{"held up by the kernel", 10*second - 5e6, 11 * second, 10*second - 5e6},
		{"stepped back", 12 * second, 11 * second, 11 * second},
		{"stepped forth", 8 * second, 11 * second, 11 * second},
	} {
		if got := p.believed(c.arrival, c.now); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// A loop that comes round later than it was to has a gap of that much; sleep
// that was asked for is none.
func TestReach(t *testing.T) {
	p := &path{engine: &Engine{}}
	p.reach(200_000)
	p.expected += 5_000_000 // asleep for 5 ms
	p.reach(5_300_000)      // 100 us late
	if got := p.engine.Gaps(); got != (impair.Gaps{MaxNs: 200_000}) {
		t.Errorf("got %+v, want 200 us at most", got)
	}
	p.reach(9_300_000) // kept away for 4 ms
	if got := p.engine.Gaps(); got != (impair.Gaps{MaxNs: 4_000_000, Count: 1}) {
		t.Errorf("got %+v, want one gap of 4 ms", got)
	}
}
