package measure

import (
	"math"
	"math/big"
	"testing"
)

// The ranks and coverages were computed with SciPy 1.17.1: the largest k with
//
//	1 - 2*scipy.stats.binom.cdf(k-1, n, 0.5) >= 0.95
var ranksBySciPy = []struct {
	n, k     int
	coverage float64
}{
	{6, 1, 0.96875},
	{7, 1, 0.984375},
	{8, 1, 0.9921875},
	{10, 2, 0.978515625},
	{20, 6, 0.9586105346679688},
	{31, 10, 0.9705506265163422},
	{100, 40, 0.9647997997822951},
	{1000, 469, 0.9537088026395019},
	{9999, 4902, 0.9500210895282053},
	{100_000, 49_690, 0.9504442853304776},
	{1_000_000, 499_020, 0.9501210313476314},
}

func TestMedianRankAgreesWithSciPy(t *testing.T) {
	for _, c := range ranksBySciPy {
		k, coverage := medianRank(c.n)
		if k != c.k || math.Abs(coverage-c.coverage) > 1e-10 {
			t.Errorf("n = %d: rank %d covers %.12f, want rank %d, %.12f", c.n, k, coverage, c.k, c.coverage)
		}
	}
}

// Whole-number arithmetic is the proof for small n: coverage is
// Σ C(n, j) / 2ⁿ for j from k to n−k, and k+1 would not suffice.
func TestMedianRankIsExact(t *testing.T) {
	for n := range 400 {
		k, coverage := medianRank(n)
		if k == 0 {
			if n >= 6 {
				t.Errorf("n = %d has no interval", n)
			}
			continue
		}
		if want := exactCoverage(n, k); math.Abs(coverage-want) > 1e-13 || want < 0.95 {
			t.Errorf("n = %d: rank %d covers %v, exactly %v", n, k, coverage, want)
		}
		if wider := exactCoverage(n, k+1); wider >= 0.95 {
			t.Errorf("n = %d: rank %d would do as well, with %v", n, k+1, wider)
		}
	}
}

func exactCoverage(n, k int) float64 {
	sum := new(big.Int)
	for j := k; j <= n-k; j++ {
		sum.Add(sum, new(big.Int).Binomial(int64(n), int64(j)))
	}
	share, _ := new(big.Rat).SetFrac(sum, new(big.Int).Lsh(big.NewInt(1), uint(n))).Float64()
	return share
}

func TestMedianIntervalTakesTheValuesAtItsRanks(t *testing.T) {
	s := Sort([]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1})
	low, high, coverage, ok := s.MedianInterval()
	if low != 2 || high != 9 || coverage != 0.978515625 || !ok {
		t.Errorf("got [%v, %v] with %v, %v; want [2, 9] with 0.978515625", low, high, coverage, ok)
	}
	if _, _, _, ok := s[:5].MedianInterval(); ok {
		t.Error("five values have an interval of 95 %")
	}
}

func BenchmarkMedianRankOfAMillion(b *testing.B) {
	for b.Loop() {
		medianRank(1_000_000)
	}
}
