package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The expected effects were computed with SciPy 1.17.1 and NumPy 2.4.6, not by
// this code:
//
//	u = scipy.stats.mannwhitneyu(a, b).statistic
//	delta = 2*u/(len(a)*len(b)) - 1
//	shift = np.median(np.subtract.outer(a, b))
var effectsByScipy = []struct {
	name         string
	a, b         []float64
	delta, shift float64
}{
	{"one each", []float64{3}, []float64{1}, 1, 2},
	{"ties", []float64{1, 2, 2, 3, 5, 5}, []float64{2, 2, 2, 4}, 1. / 6, 0},
	{"apart", []float64{10, 11, 12}, []float64{1, 2, 3, 4}, 1, 8.5},
	{"both signs", []float64{-5, -1, 0, 2, 7, 9}, []float64{-2, 0, 0, 3}, 1. / 6, 1.5},
	{"fractions", []float64{0.1, 0.25, 0.7, 1.5}, []float64{0.2, 0.3, 0.35}, 1. / 6, 0.2},
	{"alike", []float64{1, 2, 3}, []float64{1, 2, 3}, 0, 0},
	{"many", congruential(301), sequence(7, 1234, 200), -0.0684551495016611, -3492},
}

func TestEffectsAgreeWithScipy(t *testing.T) {
	for _, c := range effectsByScipy {
		t.Run(c.name, func(t *testing.T) {
			a, b := Sort(c.a), Sort(c.b)
			near(t, "delta", Delta(a, b), c.delta)
			near(t, "shift", Shift(a, b), c.shift)
			near(t, "delta the other way", Delta(b, a), -c.delta)
			near(t, "shift the other way", Shift(b, a), -c.shift)
			if got := Shift(a, b); got == 0 && math.Signbit(got) {
				t.Error("the shift is minus nothing")
			}
		})
	}
}

// TestShiftByBruteForce holds the bisection against all differences, sorted, of
// sets with ties, of both signs and of every size up to 12.
func TestShiftByBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 500 {
		a, b := make([]float64, 1+rng.IntN(12)), make([]float64, 1+rng.IntN(12))
		scale := math.Pow(10, float64(rng.IntN(13)-6))
		for _, set := range [][]float64{a, b} {
			for i := range set {
				set[i] = scale * math.Round(10*rng.NormFloat64())
			}
		}
		var differences []float64
		for _, x := range a {
			for _, y := range b {
				differences = append(differences, x-y)
			}
		}
		if got, want := Shift(Sort(a), Sort(b)), Sort(differences).Median(); got != want {
			t.Fatalf("trial %d: the shift from %v to %v is %v, want %v", trial, b, a, got, want)
		}
	}
}

func TestEffectsOfNothing(t *testing.T) {
	some := Sorted{1, 2}
	for name, got := range map[string]float64{
		"delta": Delta(nil, some), "delta the other way": Delta(some, nil),
		"shift": Shift(nil, some), "shift the other way": Shift(some, nil),
	} {
		if !math.IsNaN(got) {
			t.Errorf("%s of nothing is %v, want NaN", name, got)
		}
	}
}

// sequence is congruential from another seed, plus an offset.
func sequence(seed uint32, offset float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		seed = 1664525*seed + 1013904223
		values[i] = float64(seed%100000) + offset
	}
	return values
}

// BenchmarkShift compares two cells of a million values each.
func BenchmarkShift(b *testing.B) {
	x, y := Sort(congruential(1_000_000)), Sort(sequence(7, 1234, 1_000_000))
	for b.Loop() {
		Shift(x, y)
	}
}
