package measure

import (
	"math"
	"math/rand/v2"
)

// inversionMax is the mean up to which a binomial is drawn by walking up its
// distribution; Hörmann's constants hold from there.
const inversionMax = 10

// binomial draws the successes among n trials of probability p.
func binomial(n int, p float64, rng *rand.Rand) int {
	switch {
	case p <= 0 || n == 0:
		return 0
	case p >= 1:
		return n
	case p > 0.5:
		return n - binomial(n, 1-p, rng)
	case float64(n)*p < inversionMax:
		return binomialByInversion(n, p, rng)
	}
	return binomialByRejection(float64(n), p, rng)
}

// binomialByInversion walks up the probabilities, each from the one before:
// P(k+1) = P(k) · (n−k)/(k+1) · p/(1−p).
func binomialByInversion(n int, p float64, rng *rand.Rand) int {
	u, term := rng.Float64(), math.Exp(float64(n)*math.Log1p(-p))
	odds := p / (1 - p)
	for k := range n {
		if u < term {
			return k
		}
		u -= term
		term *= odds * float64(n-k) / float64(k+1)
	}
	return n
}

// binomialByRejection is algorithm BTRS, transformed rejection with squeeze:
// Hörmann, The Generation of Binomial Random Variates, Journal of Statistical
// Computation and Simulation 46 (1993). It needs p ≤ 1/2 and n·p ≥ 10.
func binomialByRejection(n, p float64, rng *rand.Rand) int {
	deviation := math.Sqrt(n * p * (1 - p))
	b := 1.15 + 2.53*deviation
	a := -0.0873 + 0.0248*b + 0.01*p
	alpha := (2.83 + 5.1/b) * deviation
	mode := math.Floor((n + 1) * p)
	for { // accepts more than four in five
		u, v := rng.Float64()-0.5, rng.Float64()
		room := 0.5 - math.Abs(u)
		k := math.Floor((2*a/room+b)*u + n*p + 0.5)
		if room >= 0.07 && v <= 0.92-4.2/b {
			return int(k)
		}
		if k < 0 || k > n {
			continue
		}
		v = math.Log(v * alpha / (a/(room*room) + b))
		if v <= logFactorials(mode, n)-logFactorials(k, n)+(k-mode)*math.Log(p/(1-p)) {
			return int(k)
		}
	}
}

// logFactorials is ln k! + ln (n−k)!.
func logFactorials(k, n float64) float64 {
	a, _ := math.Lgamma(k + 1)
	b, _ := math.Lgamma(n - k + 1)
	return a + b
}
