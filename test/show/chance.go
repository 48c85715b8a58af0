package main

import (
	"math"
	"math/rand/v2"
	"sort"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
)

const (
	// half95 and half99 are half the width of an interval, in standard errors.
	half95, half99 = 1.960, 2.576
)

// about is a figure with the interval that its standard error gives it.
func about(value, standardError float64) estimate {
	return estimate{value, value - half95*standardError, value + half95*standardError}
}

// orderStatistic is a quantile of a sample of n. The interval is between two values of
// the sample, by the binomial number of values below the true quantile.
func orderStatistic(s measure.Sorted, n, q float64) estimate {
	reach := half95 * math.Sqrt(q*(1-q)/n)
	return estimate{s.Quantile(q), s.Quantile(max(q-reach, 0)), s.Quantile(min(q+reach, 1))}
}

// spread is what a figure is at the mean, with its standard error.
type spread struct{ mean, error float64 }

// bounds hold the figure with 99 %.
func (s spread) bounds() (low, high float64) { return s.mean - half99*s.error, s.mean + half99*s.error }

// burstLoss is the share of n packets that bursts lose where all in the bad state
// are lost. States turn with one chance each, so what packets meet is correlated
// from one to the next by 1 - enter - leave, which widens the binomial.
func burstLoss(b impair.Burst, n float64) spread {
	share := b.Share()
	together := 1 - float64(b.Enter) - float64(b.Leave)
	variance := share * (1 - share) / n * (1 + together) / (1 - together)
	return spread{share, math.Sqrt(variance)}
}

// burstLength is the mean length of the bursts among n packets: lengths are
// geometric, and there are as many bursts as packets leave the bad state.
func burstLength(b impair.Burst, n float64) spread {
	leave := float64(b.Leave)
	bursts := n * b.Share() * leave
	return spread{1 / leave, math.Sqrt(1-leave) / leave / math.Sqrt(bursts)}
}

// kolmogorov is the Kolmogorov-Smirnov distance of a sample in ascending order, in
// units of the jitter, from the distribution that an impairment has.
func kolmogorov(sample []float64, asked impair.Impairment) float64 {
	n := float64(len(sample))
	var distance float64
	for i, x := range sample {
		least, most := shares(asked, x)
		distance = max(distance, float64(i+1)/n-most, least-float64(i)/n)
	}
	return distance
}

// measured is the table of a recording for want of a real one: most packets take
// one route, some another with a long tail.
func measured() (*impair.Table, error) {
	const n = 10_000
	random := rand.New(rand.NewPCG(5, 5))
	values := make([]float64, n)
	for i := range values {
		values[i] = 12 + random.ExpFloat64()
		if random.Float64() < 0.2 {
			values[i] = 25 + 4*random.ExpFloat64()
		}
	}
	table, _, _, err := impair.NewTable(values)
	return table, err
}

// shares of a distribution that lie below x, and that do not lie above it. They
// differ where its tail is cut: all of the tail lies there. The clock is no finer
// than to tell a packet there from one within near.
func shares(asked impair.Impairment, x float64) (below, most float64) {
	const steps, near = 1 << 17, 0.01
	if cut := !asked.Distribution.IsFile(); cut && math.Abs(x) > impair.TableReach-near {
		x = math.Copysign(impair.TableReach, x)
	}
	at := func(i int) float64 { return asked.Quantile((float64(i) + 0.5) / steps) }
	below = float64(sort.Search(steps, func(i int) bool { return at(i) >= x })) / steps
	most = float64(sort.Search(steps, func(i int) bool { return at(i) > x })) / steps
	return below, most
}

// kolmogorovChance is the chance that n values of the distribution itself lie at
// least as far from it: Kolmogorov's series with the correction of Stephens.
func kolmogorovChance(distance, n float64) float64 {
	const (
		terms = 100
		// certain is where less than this many terms would do for a chance of 1.
		certain = 0.3
	)
	root := math.Sqrt(n)
	x := distance * (root + 0.12 + 0.11/root)
	if x < certain {
		return 1
	}
	var sum float64
	for k, sign := 1.0, 1.0; k <= terms; k, sign = k+1, -sign {
		sum += sign * math.Exp(-2*k*k*x*x)
	}
	return min(max(2*sum, 0), 1)
}
