package proof

import (
	"math"
	"math/rand/v2"
	"testing"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// distribution is the probability of each number of packets that a chain chooses
// out of n, packet by packet.
func (c chain) distribution(n int) []float64 {
	bad := 0.0
	if c.enter > 0 {
		bad = c.enter / (c.enter + c.leave)
	}
	// By the number chosen, with the state that the next packet meets.
	inGood, inBad := make([]float64, n+2), make([]float64, n+2)
	inGood[0], inBad[0] = 1-bad, bad
	for range n {
		nextGood, nextBad := make([]float64, n+2), make([]float64, n+2)
		for k := range n + 1 {
			for _, from := range []struct{ share, chosen, toBad float64 }{
				{inGood[k], c.good, c.enter}, {inBad[k], c.bad, 1 - c.leave},
			} {
				for more, p := range []float64{from.share * (1 - from.chosen), from.share * from.chosen} {
					nextBad[k+more] += p * from.toBad
					nextGood[k+more] += p * (1 - from.toBad)
				}
			}
		}
		inGood, inBad = nextGood, nextBad
	}
	all := make([]float64, n+1)
	for k := range all {
		all[k] = inGood[k] + inBad[k]
	}
	return all
}

// alike are chains that decide about as many packets.
func alike(of span, chains ...chain) (all []load) {
	for _, c := range chains {
		all = append(all, load{c, of})
	}
	return all
}

var bursty = []chain{
	{good: 0, bad: 1, enter: 0.02, leave: 0.25},
	{good: 0.01, bad: 0.5, enter: 0.1, leave: 0.3},
	{good: 0, bad: 1, enter: 0.9, leave: 0.8}, // turns more often than not
	{good: 0, bad: 1, enter: 1, leave: 1},
	{good: 0.3, bad: 0.1, enter: 0.001, leave: 0.002},
}

// The generating function by eigenvalues is that of the distribution.
func TestCumulants(t *testing.T) {
	const n = 200
	for _, c := range append(bursty, independent(0.3)) {
		exact := c.distribution(n)
		for _, theta := range []float64{-3, -0.1, 0, 0.05, 1} {
			want := 0.0
			for k, p := range exact {
				want += p * math.Exp(theta*float64(k))
			}
			if got := c.cumulants(theta, n); math.Abs(got-math.Log(want)) > 1e-9*(1+math.Abs(got)) {
				t.Errorf("%+v at %g: got %.12g, want %.12g", c, theta, got, math.Log(want))
			}
		}
		if got, want := c.all(20), math.Log(c.distribution(20)[20]); math.Abs(got-want) > 1e-9*math.Abs(want) && !(math.IsInf(want, -1) && got < -700) {
			t.Errorf("%+v: all of 20 with the logarithm %g, want %g", c, got, want)
		}
	}
}

// The bound is never below what it bounds, and not far above: by a factor of the
// order of the standard deviations that k lies out.
func TestChanceBoundsTheTails(t *testing.T) {
	const n = 300
	for _, c := range bursty {
		exact := c.distribution(n)
		mean := n * c.mean()
		for k := range exact {
			lower, upper := 0.0, 0.0
			for i, p := range exact {
				if i <= k {
					lower += p
				}
				if i >= k {
					upper += p
				}
			}
			want := min(1, 2*min(lower, upper))
			got := chance(alike(exactly(n), c), uint64(k))
			if got < want*(1-1e-6)-1e-15 {
				t.Errorf("%+v, %d of %d: the bound %.3g lies below %.3g", c, k, n, got, want)
			}
			const loosest = 40
			if want > 1e-12 && got > loosest*want && math.Abs(float64(k)-mean) > 1 {
				t.Errorf("%+v, %d of %d: the bound %.3g is far above %.3g", c, k, n, got, want)
			}
		}
	}
}

// Of links that lose in bursts as asked, no larger share is rejected than the
// level says, though a binomial would reject many of them; links whose bursts are
// three times as long are found.
func TestLevelOfBursts(t *testing.T) {
	const links, packets, level = 3000, 20_000, 0.01
	asked := chain{good: 0.001, bad: 1, enter: 0.002, leave: 0.2}
	random := rand.New(rand.NewPCG(8, 8))
	lose := func(c chain) (lost uint64) {
		bad := random.Float64() < c.enter/(c.enter+c.leave)
		for range packets {
			chosen, turns := c.good, c.enter
			if bad {
				chosen, turns = c.bad, c.leave
			}
			if random.Float64() < chosen {
				lost++
			}
			if random.Float64() < turns {
				bad = !bad
			}
		}
		return lost
	}
	var rejected, byBinomial uint64
	for range links {
		lost := lose(asked)
		if chance(alike(exactly(packets), asked), lost) < level {
			rejected++
		}
		if twoSided(packets, lost, asked.mean()) < level {
			byBinomial++
		}
	}
	if rejected > links*level && twoSided(links, rejected, level) < 0.01 {
		t.Errorf("%d of %d are rejected at the level %g", rejected, links, level)
	}
	if byBinomial < links/10 {
		t.Errorf("a binomial rejects %d of %d only: the test tests nothing", byBinomial, links)
	}
	longer := asked
	longer.leave /= 3
	found := 0
	for range 100 {
		if chance(alike(exactly(packets), asked), lose(longer)) < level {
			found++
		}
	}
	if found < 90 {
		t.Errorf("longer bursts are found in %d of 100 links", found)
	}
}

// A number of packets that is known within bounds only makes the test wider.
func TestChanceOfSpans(t *testing.T) {
	for _, c := range []struct {
		of       span
		k        uint64
		rejected bool
	}{
		{span{1000, 1000}, 100, false},
		{span{1000, 1000}, 140, true},
		{span{1000, 1400}, 140, false},
		{span{1000, 1400}, 60, true},
		{span{600, 1400}, 60, false},
		{span{0, 1000}, 0, false},
		{span{1000, 1000}, 1001, true},
	} {
		if got := chance(alike(c.of, independent(0.1)), c.k); (got < 0.001) != c.rejected {
			t.Errorf("%d of %+v: %g", c.k, c.of, got)
		}
	}
	two := alike(exactly(1000), independent(0.1), independent(0.05))
	for k, rejected := range map[uint64]bool{150: false, 145: false, 100: true, 200: true, 2001: true} {
		if got := chance(two, k); (got < 0.001) != rejected {
			t.Errorf("two stages choose %d: %g", k, got)
		}
	}
	// Each counts by the packets that came to it.
	apart := []load{{independent(0.1), exactly(1000)}, {independent(0.5), exactly(100)}}
	for k, rejected := range map[uint64]bool{150: false, 100: true, 200: true, 600: true, 1101: true} {
		if got := chance(apart, k); (got < 0.001) != rejected {
			t.Errorf("two stages of other numbers choose %d: %g", k, got)
		}
	}
}

func TestSilence(t *testing.T) {
	burst := impair.Impairment{Burst: impair.Burst{Enter: 0.1, Leave: 0.3, Loss: 0.5}}
	for _, c := range []struct {
		name   string
		stages impair.Stages
		want   float64
	}{
		{"nothing is lost", impair.Stages{{Delay: ms}}, 0},
		{"all is", impair.Stages{{Delay: ms}, {Loss: 1}}, 1},
		{"loss", impair.Stages{{Loss: 0.5}}, math.Pow(0.5, 10)},
		{"loss, corrupted, lost again", impair.Stages{{Loss: 0.5, Corrupt: 0.5}, {Loss: 0.2}}, math.Pow(0.8, 10)},
		{"bursts", impair.Stages{burst}, math.Exp(losses(burst).all(10))},
		{"bursts twice", impair.Stages{burst, burst}, math.Exp(chain{good: 0.5, bad: 0.75, enter: 0.1, leave: 0.3}.all(10))},
	} {
		if got := silence(c.stages, 10); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: got %g, want %g", c.name, got, c.want)
		}
	}
}

func FuzzChance(f *testing.F) {
	f.Add(0.1, 0.5, 0.01, 0.2, uint64(100), uint64(10))
	f.Add(0.0, 1.0, 1.0, 1.0, uint64(1), uint64(1))
	f.Add(1.0, 1.0, 0.0, 0.0, uint64(5), uint64(5))
	f.Fuzz(func(t *testing.T, loss, bad, enter, leave float64, n, k uint64) {
		i := impair.Impairment{Loss: quantity.Fraction(loss)}
		i.Burst = impair.Burst{Enter: quantity.Fraction(enter), Leave: quantity.Fraction(leave), Loss: quantity.Fraction(bad)}
		if i.Check() != nil || n == 0 || n > 1<<40 {
			t.Skip()
		}
		for _, stages := range [][]chain{{losses(i)}, {losses(i), independent(0.1)}} {
			if p := chance(alike(span{n / 2, n}, stages...), k); !(p >= 0 && p <= 1) {
				t.Errorf("%d of %d by %+v: %g", k, n, stages, p)
			}
		}
	})
}
