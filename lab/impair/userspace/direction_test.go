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
	d := newDirection(i, 42)
	fates = map[fate]int{}
	for k := range n {
		arrival := int64(k) * int64(interval)
		due, f := d.admit(arrival, size)
		fates[f]++
		if f == pass {
			passed = append(passed, float64(due-arrival))
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

// ks is the Kolmogorov–Smirnov distance of a sample from a distribution.
func ks(values []float64, cdf func(float64) float64) float64 {
	slices.Sort(values)
	worst, n := 0.0, float64(len(values))
	for i, v := range values {
		worst = max(worst, math.Abs(cdf(v)-float64(i)/n), math.Abs(cdf(v)-float64(i+1)/n))
	}
	return worst
}

func TestJitterDistributions(t *testing.T) {
	const n = 10_000
	critical := 1.95 / math.Sqrt(n) // 99.9 %
	tests := map[impair.Distribution]func(float64) float64{
		impair.Uniform: func(v float64) float64 { return (v - 4e6) / 2e6 },
		impair.Normal:  func(v float64) float64 { return (1 + math.Erf((v-5e6)/1e6/math.Sqrt2)) / 2 },
	}
	for distribution, cdf := range tests {
		// Packets 20 ms apart are never held back to keep their order.
		got, _ := delays(impair.Impairment{Delay: 5 * ms, Jitter: ms, Distribution: distribution}, n, 100, 20*time.Millisecond)
		if d := ks(got, cdf); d > critical {
			t.Errorf("%s: distance %.4f from what was asked, critical %.4f", distribution, d, critical)
		}
	}
}

func TestJitterKeepsOrderUnlessAsked(t *testing.T) {
	overtaken := func(reorder bool) (n int) {
		d := newDirection(impair.Impairment{Delay: 5 * ms, Jitter: 2 * ms, Reorder: reorder}, 1)
		var last int64
		for k := range int64(1000) {
			due, _ := d.admit(k*1000, 100)
			if due < last {
				n++
			}
			last = due
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
	tests := []struct {
		name   string
		length int
		head   []byte
		want   int
	}{
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
	d := newDirection(impair.Impairment{Delay: 5 * ms, Jitter: ms, Loss: 0.0008, Rate: 1e9}, 1)
	arrival := int64(0)
	for b.Loop() {
		arrival += 12_112
		d.admit(arrival, 1514)
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
