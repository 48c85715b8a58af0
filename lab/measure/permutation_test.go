package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// single is repetitions of one value each: their medians.
func single(medians ...float64) *Repetitions {
	values := make([][]float64, len(medians))
	for i, m := range medians {
		values[i] = []float64{m}
	}
	return Repeat(values)
}

// The expected p-values were computed with SciPy 1.17.1, not by this code:
//
//	def statistic(x, y, axis):
//	    return np.mean(np.log(x), axis=axis) - np.mean(np.log(y), axis=axis)
//	r = scipy.stats.permutation_test((a, b), statistic, vectorized=True, n_resamples=np.inf)
//	p = np.mean(np.abs(r.null_distribution) >= abs(r.statistic) - 1e-12)
func TestRatioPValueAgreesWithScipy(t *testing.T) {
	eight := single(104, 107, 102, 111, 106, 103, 108, 105)
	for _, c := range []struct {
		name string
		a, b *Repetitions
		want float64
	}{
		{"3 apart", single(100, 101, 102), single(110, 111, 112), 0.1},
		{"5 apart", single(10, 11, 12, 13, 14), single(20, 21, 22, 23, 24), 0.007936507936507936},
		{"5 mixed", single(100, 103, 99, 108, 101), single(104, 107, 102, 111, 106), 0.1111111111111111},
		{"3 against 5", single(5, 7, 9), single(6, 8, 10, 12, 14), 0.19642857142857142},
		{"ties", single(1, 2, 2, 3), single(2, 2, 3, 3), 0.6285714285714286},
		{"8 mixed", single(100, 103, 99, 108, 101, 104, 98, 102), eight, 0.022533022533022532},
		{"the same", eight, eight, 1},
		{"0 throughout", single(0, 0, 0), single(0, 0, 0, 0), 1},
		{"a thousandfold", single(5e6, 7e6, 9e6), single(6e6, 8e6, 10e6, 12e6, 14e6), 0.19642857142857142},
	} {
		if got := RatioPValue(c.a, c.b, nil); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: p = %v, want %v", c.name, got, c.want)
		}
		if got := RatioPValue(c.b, c.a, nil); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s, the other way: p = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRatioPValueOfWhatHasNone(t *testing.T) {
	some := single(1, 2, 3)
	for name, pair := range map[string][2]*Repetitions{
		"empty": {some, Repeat(nil)}, "nil": {nil, some}, "zero": {some, single(0, 1, 2)}, "negative": {single(-1, 1, 2), some},
	} {
		if got := RatioPValue(pair[0], pair[1], nil); !math.IsNaN(got) {
			t.Errorf("%s: p = %v, want NaN", name, got)
		}
	}
}

// TestRatioPValueWithoutDifference counts how often it stays below a level, of
// cells that are alike: as often as the level says, exact or drawn.
func TestRatioPValueWithoutDifference(t *testing.T) {
	const trials = 2000
	rng := rand.New(rand.NewPCG(1, 2))
	var p Sorted
	for range trials {
		medians := make([]float64, 12)
		for i := range medians {
			medians[i] = math.Exp(0.02 * rng.NormFloat64())
		}
		p = append(p, RatioPValue(single(medians[:6]...), single(medians[6:]...), rng))
	}
	slices.Sort(p)
	for _, level := range []float64{0.01, 0.05, 0.25, 0.5, 0.9} {
		below, _ := slices.BinarySearch(p, math.Nextafter(level, 1))
		// Multiples of 2/C(12, 6) are all that it can be.
		deviation := 3*math.Sqrt(level*(1-level)/trials) + 2./924
		if got := float64(below) / trials; math.Abs(got-level) > deviation {
			t.Errorf("p ≤ %v in %v of the trials", level, got)
		}
	}
}

// TestRatioPValueByDraws holds the drawn p-value of 12 against 12 against that
// of all 2,704,156 ways, by SciPy as above.
func TestRatioPValueByDraws(t *testing.T) {
	a := single(sequence(3, 900_000, 12)...)
	b := single(sequence(4, 950_000, 12)...)
	rng := rand.New(rand.NewPCG(1, 2))
	got := RatioPValue(a, b, rng)
	if want := 0.037460856548216896; math.Abs(got/want-1) > 0.05 {
		t.Errorf("p = %v, want about %v", got, want)
	}
	far := RatioPValue(a, single(sequence(4, 9_500_000, 12)...), rng)
	if want := 1. / (1 + permutationsMax); far != want {
		t.Errorf("where no draw comes near: p = %v, want %v", far, want)
	}
}

// TestDealsAreEven counts how often each repetition is dealt to the first cell.
func TestDealsAreEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	counts, all := make([]int, 30), 0
	exact := deals(30, 10, 30_000, rng, func(dealt []int) {
		all++
		seen := map[int]bool{}
		for _, i := range dealt {
			counts[i]++
			seen[i] = true
		}
		if len(seen) != 10 {
			t.Fatalf("dealt %v", dealt)
		}
	})
	if exact || all != 30_000 {
		t.Errorf("%d deals, exact %v", all, exact)
	}
	for i, n := range counts {
		if math.Abs(float64(n)-10_000) > 4*math.Sqrt(30_000*2./9) {
			t.Errorf("repetition %d was dealt %d times, want about 10000", i, n)
		}
	}
	var ways [][]int
	if exact := deals(4, 2, 100, nil, func(dealt []int) { ways = append(ways, slices.Clone(dealt)) }); !exact || len(ways) != 6 {
		t.Errorf("two of four: %v", ways)
	}
}
