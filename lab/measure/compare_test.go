package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// cellOf draws a cell of repetitions whose medians differ by a share sd, each of
// n values around a median with a tail to the right.
func cellOf(rng *rand.Rand, median, sd float64, repetitions, n int) *Repetitions {
	values := make([][]float64, repetitions)
	for i := range values {
		own := median * math.Exp(sd*rng.NormFloat64())
		for range n {
			values[i] = append(values[i], own*math.Exp(0.05*rng.NormFloat64())+0.01*median*rng.ExpFloat64())
		}
	}
	return Repeat(values)
}

// family is a run of 8 cells as those of the quickstart: half of them near, where
// repetitions differ much, half of them far.
func family(rng *rand.Rand, slowed func(cell int, median float64) float64) []*Repetitions {
	var cells []*Repetitions
	for i := range 8 {
		median, sd := 50e3, 0.3
		if i >= 4 {
			median, sd = 10e6, 0.01
		}
		cells = append(cells, cellOf(rng, slowed(i, median), sd, 10, 30))
	}
	return cells
}

func pairsOf(a, b []*Repetitions) []Pair {
	pairs := make([]Pair, len(a))
	for i := range a {
		pairs[i] = Pair{a[i], b[i]}
	}
	return pairs
}

// verdicts are those of Compare at 1 %, without the intervals.
func verdicts(pairs []Pair, rng *rand.Rand) []Difference {
	all := make([]Difference, len(pairs))
	for i, pair := range pairs {
		all[i] = pair.test(rng)
	}
	decide(all, pairs, Rule{Alpha: 0.01})
	return all
}

// TestCompareCallsNothingBetweenAlikeAndFindsWhatWasPlanted is what a user asks
// of skerry compare: of 20 pairs of runs that do not differ one may be called
// different, and of 10 in which half of the cells were slowed none may be missed.
func TestCompareCallsNothingBetweenAlikeAndFindsWhatWasPlanted(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	asIs := func(_ int, median float64) float64 { return median }
	alarms := 0
	for range 20 {
		for _, d := range verdicts(pairsOf(family(rng, asIs), family(rng, asIs)), rng) {
			if d.Verdict != Same {
				alarms++
				break
			}
		}
	}
	if alarms > 1 {
		t.Errorf("%d of 20 pairs of runs that do not differ were called different", alarms)
	}
	slowed := func(i int, median float64) float64 {
		if i%2 == 0 {
			return median
		}
		return median + max(0.05*median, 300e3)
	}
	for trial := range 10 {
		for i, d := range verdicts(pairsOf(family(rng, asIs), family(rng, slowed)), rng) {
			if i%2 == 1 && d.Verdict != Slower {
				t.Errorf("run %d, cell %d: a slow-down of 5 %% or 300 µs was missed: %+v", trial, i, d)
			}
		}
	}
}

// TestCompareNeedsMoreThanTheNoiseFloor has cells whose repetitions' medians
// differ by a little in every case, and the median of all requests not at all.
func TestCompareNeedsMoreThanTheNoiseFloor(t *testing.T) {
	d := []Difference{
		{P: 0.0001, Ratio: Estimate{Value: 1.02}, Floor: 0.03},
		{P: 0.0001, Ratio: Estimate{Value: 1.04}, Floor: 0.03},
		{P: 0.0001, Ratio: Estimate{Value: 0.96}, Floor: 0.03},
		{P: 0.0001, Ratio: Estimate{Value: 1.02}, Floor: math.NaN()},
		{P: 0.0101, Ratio: Estimate{Value: 1.20}, Floor: 0.03},
	}
	ten := single(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	decide(d, []Pair{{ten, ten}, {ten, ten}, {ten, ten}, {ten, ten}, {ten, ten}}, Rule{Alpha: 0.01})
	for i, want := range []Verdict{Same, Slower, Faster, Slower, Same} {
		if d[i].Verdict != want {
			t.Errorf("%+v, want %q", d[i], want)
		}
	}
}

func TestCompareOfOneCell(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	base := cellOf(rng, 10e6, 0.01, 10, 50)
	slow := cellOf(rng, 12e6, 0.01, 10, 50)
	d := Compare([]Pair{{base, slow}}, Rule{Alpha: 0.01}, rng)[0]
	if d.Verdict != Slower || d.Ratio.Value < 1.15 || d.Ratio.Value > 1.25 || d.Ratio.Low < 1.1 || d.Delta < 0.9 {
		t.Errorf("20 %% slower: %+v", d)
	}
	if d.Shift < 1.5e6 || d.Shift > 2.5e6 {
		t.Errorf("shift %v ns, want about 2 ms", d.Shift)
	}
	if a := d.Apart; math.Abs(a.Value-2e6) > 2e5 || !(a.Low < a.Value && a.Value < a.High && a.Low > 1e6 && a.High < 3e6) {
		t.Errorf("apart by %+v ns, want about 2 ms", a)
	}
	if !(d.Floor > 0 && d.Floor < 0.05) {
		t.Errorf("noise floor %v, want about 1 %%", d.Floor)
	}
	if d := Compare([]Pair{{slow, base}}, Rule{Alpha: 0.01}, rng)[0]; d.Verdict != Faster || d.Shift > 0 {
		t.Errorf("the other way round: %+v", d)
	}
	// 2 ms apart, so that a coarser resolution sees nothing.
	if d := Compare([]Pair{{base, slow}}, Rule{Alpha: 0.01, Resolution: 3e6}, rng)[0]; d.Verdict != Same || math.Abs(d.Apart.Value-2e6) > 2e5 {
		t.Errorf("by a resolution of 3 ms: %+v", d)
	}
	if d := Compare([]Pair{{base, base}}, Rule{Alpha: 0.01}, rng)[0]; d.Jitter.Value != 0 || d.Verdict != Same || d.Ratio.Value != 1 || d.P != 1 {
		t.Errorf("against itself: %+v", d)
	}
}

// TestCompareOfJitter has the same median in both runs, and in one of them quartiles
// that are 4 ms apart in place of 2.
func TestCompareOfJitter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	spread := func(by float64) *Repetitions {
		values := make([][]float64, 10)
		for i := range values {
			for range 200 {
				values[i] = append(values[i], 20e6+by*(2*rng.Float64()-1))
			}
		}
		return Repeat(values)
	}
	narrow, wide := spread(2e6), spread(4e6)
	d := Compare([]Pair{{narrow, wide}, {wide, narrow}}, Rule{Alpha: 0.01}, rng)
	if j := d[0].Jitter; math.Abs(j.Value-2e6) > 3e5 || j.Low < 1e6 || j.High > 3e6 || j.Low >= j.Value || j.High <= j.Value {
		t.Errorf("the quartiles went apart by %+v ns, want about 2 ms", j)
	}
	if j := d[1].Jitter; math.Abs(j.Value+2e6) > 3e5 || j.High >= 0 {
		t.Errorf("the other way round: %+v", j)
	}
	if a := d[0].Apart; a.Low >= 0 || a.High <= 0 {
		t.Errorf("the medians, which are the same, are apart by %+v", a)
	}
}

// TestCompareSaysWhenItCouldNotTell plants a difference that nobody could miss
// in fewer repetitions than any test could call it from.
func TestCompareSaysWhenItCouldNotTell(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		repetitions, family, needed int
		verdict                     Verdict
	}{
		{3, 1, 5, TooFew}, // 2 / C(6, 3) = 0.1
		{4, 1, 5, TooFew}, // 2 / C(8, 4) = 0.029
		{5, 1, 0, Slower}, // 2 / C(10, 5) = 0.0079
		{5, 8, 7, TooFew}, // 8 · 0.0079
		{6, 8, 7, TooFew}, // 8 · 2 / C(12, 6) = 0.017
		{7, 8, 0, Slower}, // 8 · 2 / C(14, 7) = 0.0047
		{10, 8, 0, Slower},
	} {
		pairs := make([]Pair, c.family)
		for i := range pairs {
			pairs[i] = Pair{cellOf(rng, 1e6, 0.01, c.repetitions, 20), cellOf(rng, 2e6, 0.01, c.repetitions, 20)}
		}
		for _, d := range verdicts(pairs, rng) {
			if d.Verdict != c.verdict || d.Needed != c.needed {
				t.Errorf("%d repetitions of %d cells: %q, needed %d; want %q, %d", c.repetitions, c.family, d.Verdict, d.Needed, c.verdict, c.needed)
				break
			}
		}
	}
	// Tools of whole milliseconds have medians of 0, of which there is no ratio.
	zero, some, late := single(make([]float64, 10)...), single(0, 1e6, 1e6, 1e6, 1e6), single(50e6, 51e6, 52e6, 53e6, 54e6)
	for _, c := range []struct {
		a, b *Repetitions
		want Verdict
	}{{zero, late, NotComparable}, {late, zero, NotComparable}, {some, late, NotComparable}, {zero, zero, Same}, {single(0, 0), single(0, 0), TooFew}} {
		if d := Compare([]Pair{{c.a, c.b}}, Rule{Alpha: 0.01}, rng)[0]; d.Verdict != c.want {
			t.Errorf("medians of 0 ms: %+v, want %q", d, c.want)
		}
	}
	five := single(1, 1.01, 1.02, 1.03, 1.04)
	for _, empty := range []*Repetitions{Repeat(nil), nil} {
		d := Compare([]Pair{{empty, empty}, {five, single(2, 2.01, 2.02, 2.03, 2.04)}}, Rule{Alpha: 0.01}, rng)
		if d[0].Verdict != TooFew || d[0].Needed != 5 || !math.IsNaN(d[0].Ratio.Value) {
			t.Errorf("nothing against nothing: %+v", d[0])
		}
		if d[1].Verdict != Slower || d[1].Adjusted != d[1].P {
			t.Errorf("a pair without figures counts as a test: %+v", d[1])
		}
	}
	for tests, want := range map[int]int{0: 5, 1: 5, 8: 7, 500: 10, 2000: 11, 2001: 0} {
		if got := repetitionsFor(0.01, tests); got != want {
			t.Errorf("%d tests need %d repetitions, want %d", tests, got, want)
		}
	}
}

// TestFailsMore counts how often runs whose requests fail alike are said not to, and how
// often one that fails more is found, in one of eight cells of ten repetitions.
func TestFailsMore(t *testing.T) {
	t.Parallel()
	const trials, n = 100, 500
	rule := Rule{Alpha: 0.01}
	run := func(rng *rand.Rand, p float64, repetitions int) (each []Summary) {
		for range repetitions {
			own := min(p*math.Exp(0.1*rng.NormFloat64()), 1) // repetitions differ
			each = append(each, Summary{Requests: n, Errors: binomial(n, own, rng)})
		}
		return each
	}
	for _, c := range []struct {
		a, b        float64
		repetitions int
		least, most int
	}{
		{0, 0, 10, 0, 0}, {0.02, 0.02, 10, 0, 3}, {0.001, 0.001, 10, 0, 3}, {0.02, 0.02, 3, 0, 3},
		{0, 0.02, 10, 97, trials}, {0.02, 0.1, 10, 97, trials}, {0.02, 0.6, 5, 97, trials}, {0, 0.6, 1, 0, 0},
	} {
		called := 0
		for seed := range uint64(trials) {
			rng := rand.New(rand.NewPCG(seed, 9))
			if FailsMore(run(rng, c.a, c.repetitions), run(rng, c.b, c.repetitions), 8, rule, rng) {
				called++
			}
		}
		if called < c.least || called > c.most {
			t.Errorf("%g against %g in %d repetitions: called %d times in %d, want %d to %d", c.b, c.a, c.repetitions, called, trials, c.least, c.most)
		}
	}
}
