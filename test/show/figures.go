package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"skerry.dev/skerry/lab/measure"
)

type readerAt = io.ReaderAt

// estimate is a figure with its 95 % interval.
type estimate struct{ value, low, high float64 }

func (e estimate) show(unit float64, name string) string {
	return fmt.Sprintf("%.4g %s [%.4g, %.4g]", e.value/unit, name, e.low/unit, e.high/unit)
}

func (e estimate) micro() string { return e.show(float64(time.Microsecond), "us") }

// bootstrap estimates a figure of samples by resampling each of them, with a
// fixed seed: percentile intervals of 1000 resamples.
func bootstrap(figure func(samples ...measure.Sorted) float64, samples ...[]float64) estimate {
	const resamples = 1000
	random := rand.New(rand.NewPCG(1, 1))
	sorted := make([]measure.Sorted, len(samples))
	for i, s := range samples {
		sorted[i] = measure.Sort(s)
	}
	result := estimate{value: figure(sorted...)}
	figures := make([]float64, resamples)
	for i := range figures {
		for j, s := range samples {
			again := make([]float64, len(s))
			for k := range again {
				again[k] = s[random.IntN(len(s))]
			}
			sorted[j] = measure.Sort(again)
		}
		figures[i] = figure(sorted...)
	}
	all := measure.Sort(figures)
	result.low, result.high = all.Quantile(0.025), all.Quantile(0.975)
	return result
}

// difference of the medians of two samples.
func difference(a, b []float64) estimate {
	return bootstrap(func(s ...measure.Sorted) float64 { return s[0].Median() - s[1].Median() }, a, b)
}

// quantileOver is a quantile of a sample less a constant.
func quantileOver(values []float64, p, less float64) estimate {
	return bootstrap(func(s ...measure.Sorted) float64 { return s[0].Quantile(p) - less }, values)
}

// binomialBounds hold the count of a binomial(n, p) with at least 99 %: the
// counts whose tails beyond them hold at most 0.5 % each, summed exactly.
func binomialBounds(n int, p float64) (low, high int) {
	const tail = 0.005
	probability := binomial(n, p)
	sum := probability(0)
	for sum <= tail && low < n {
		low++
		sum += probability(low)
	}
	high, sum = n, probability(n)
	for sum <= tail && high > 0 {
		high--
		sum += probability(high)
	}
	return low, high
}

// binomial gives the probability of k of n, by logarithms of factorials.
func binomial(n int, p float64) func(k int) float64 {
	logFactorial := func(k int) float64 {
		v, _ := math.Lgamma(float64(k) + 1)
		return v
	}
	whole := logFactorial(n)
	return func(k int) float64 {
		return math.Exp(whole - logFactorial(k) - logFactorial(n-k) +
			float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
}
