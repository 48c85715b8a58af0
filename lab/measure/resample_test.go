package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// distance is the statistic of Kolmogorov and Smirnov: how far apart the
// distributions of two sets are at most.
func distance(a, b Sorted) float64 {
	var most float64
	for _, x := range slices.Concat(a, b) {
		upToA, _ := slices.BinarySearch(a, math.Nextafter(x, math.Inf(1)))
		upToB, _ := slices.BinarySearch(b, math.Nextafter(x, math.Inf(1)))
		most = max(most, math.Abs(float64(upToA)/float64(len(a))-float64(upToB)/float64(len(b))))
	}
	return most
}

// distanceMax is what two samples of n from one distribution exceed once in a
// thousand times.
func distanceMax(n int) float64 { return 1.95 * math.Sqrt(2/float64(n)) }

// naive is a resample as one would first write it: everything drawn and sorted.
func naive(r *Repetitions, rng *rand.Rand) Sorted {
	var drawn []float64
	for range r.sorted {
		values := r.sorted[rng.IntN(len(r.sorted))]
		for range values {
			drawn = append(drawn, values[rng.IntN(len(values))])
		}
	}
	return Sort(drawn)
}

// TestResamplesAreThoseOfDrawingEverything compares the distributions of figures
// of resamples with those of the naive way.
func TestResamplesAreThoseOfDrawingEverything(t *testing.T) {
	t.Parallel()
	const draws = 2500
	rng := rand.New(rand.NewPCG(1, 2))
	ties := make([]float64, 30)
	for i := range ties {
		ties[i] = float64(rng.IntN(4))
	}
	for name, r := range map[string]*Repetitions{
		"one repetition": Repeat(lognormal(rng, 1, 101, 0)),
		"alike":          Repeat(lognormal(rng, 5, 40, 0)),
		"apart":          Repeat(lognormal(rng, 5, 40, 1)),
		"of other sizes": Repeat([][]float64{congruential(3), congruential(80), sequence(9, 0, 11)}),
		"ties":           Repeat([][]float64{ties[:10], ties[10:], {2, 2, 2}}),
		"one value each": single(1, 2, 3, 5, 8, 13),
		"many":           Repeat([][]float64{congruential(500), sequence(9, 5000, 500)}),
	} {
		sums := newMoments(r)
		figures := []struct {
			name       string
			fast       func(node) float64
			naive      func(Sorted) float64
			drawn, all Sorted
		}{
			{"median", func(n node) float64 { return n.quantile(0.5) }, Sorted.Median, nil, nil},
			{"p90", func(n node) float64 { return n.quantile(0.9) }, func(s Sorted) float64 { return s.Quantile(0.9) }, nil, nil},
			{"maximum", func(n node) float64 { return n.quantile(1) }, Sorted.Max, nil, nil},
			{"IQR mean", func(n node) float64 { return n.iqrMean(sums) }, Sorted.IQRMean, nil, nil},
		}
		for range draws {
			everything := naive(r, rng)
			for i := range figures {
				f := &figures[i]
				// Sums in another order differ in their last digits: a grid makes them tie.
				f.drawn = append(f.drawn, math.Round(f.fast(r.node(Alone(rng)))*1e9)/1e9)
				f.all = append(f.all, math.Round(f.naive(everything)*1e9)/1e9)
			}
		}
		for _, f := range figures {
			if d := distance(Sort(f.drawn), Sort(f.all)); d > distanceMax(draws) {
				t.Errorf("%s, %s: the distributions lie %.4f apart", name, f.name, d)
			}
		}
	}
}

// TestNodeWithoutDraws holds the figures of the values as they are against
// Sorted's.
func TestNodeWithoutDraws(t *testing.T) {
	r := Repeat([][]float64{congruential(101), sequence(9, 0, 54), {7}, {5, 5, 5, 5}})
	for _, p := range []float64{0, 0.01, 0.25, 0.5, 0.77, 0.99, 1} {
		near(t, "quantile", r.node(Chance{}).quantile(p), r.Pooled().Quantile(p))
	}
	some := r.times([]int{1, 0, 1, 0}, nil)
	near(t, "median of two of four", some.quantile(0.5), Sort(append(congruential(101), 7)).Median())
}

// TestBinomial holds the mean, the variance and the distribution of what is
// drawn, on both sides of where the algorithm changes.
func TestBinomial(t *testing.T) {
	const draws = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		n int
		p float64
	}{
		{1, 0.5}, {10, 0.3}, {30, 0.01}, {19, 0.5}, {20, 0.5}, {21, 0.5}, {100, 0.099}, {100, 0.101}, {1000, 0.37},
		{1000, 0.999}, {1_000_000, 0.5}, {1_000_000, 0.00002}, {10_000_000, 0.9},
	} {
		counts := map[int]int{}
		var sum, square float64
		mean, variance := float64(c.n)*c.p, float64(c.n)*c.p*(1-c.p)
		for range draws {
			k := binomial(c.n, c.p, rng)
			if k < 0 || k > c.n {
				t.Fatalf("%d of %d", k, c.n)
			}
			counts[k]++
			sum += float64(k) - mean
			square += (float64(k) - mean) * (float64(k) - mean)
		}
		if z := sum / draws / math.Sqrt(variance/draws); math.Abs(z) > 4 {
			t.Errorf("n %d, p %v: the mean is off by %.1f standard errors", c.n, c.p, z)
		}
		// The variance of a binomial's square is 2σ⁴ + σ²(1−6pq).
		deviation := math.Sqrt((2*variance*variance + variance*(1-6*c.p*(1-c.p))) / draws)
		if z := (square/draws - variance) / deviation; math.Abs(z) > 4 {
			t.Errorf("n %d, p %v: the variance is off by %.1f standard errors", c.n, c.p, z)
		}
		if chi, cells := chiSquare(counts, c.n, c.p, draws); chi > float64(cells)+4*math.Sqrt(2*float64(cells)) {
			t.Errorf("n %d, p %v: chi square %.0f of %d cells", c.n, c.p, chi, cells)
		}
	}
	for _, c := range []struct {
		n    int
		p    float64
		want int
	}{{0, 0.5, 0}, {5, 0, 0}, {5, 1, 5}, {5, -1e-17, 0}, {5, 1 + 1e-16, 5}} {
		if got := binomial(c.n, c.p, rng); got != c.want {
			t.Errorf("%d of probability %v: %d successes", c.n, c.p, got)
		}
	}
}

// chiSquare is Pearson's statistic over the numbers of which at least 10 are
// expected.
func chiSquare(counts map[int]int, n int, p float64, draws int) (chi float64, cells int) {
	reach := int(5*math.Sqrt(float64(n)*p*(1-p))) + 1
	middle := int(float64(n) * p)
	for k := max(0, middle-reach); k <= min(n, middle+reach); k++ {
		log := logFactorials(0, float64(n)) - logFactorials(float64(k), float64(n)) +
			float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
		if expected := float64(draws) * math.Exp(log); expected >= 10 {
			off := float64(counts[k]) - expected
			chi += off * off / expected
			cells++
		}
	}
	return chi, cells
}
