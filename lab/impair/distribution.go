package impair

import (
	"math"
	"strings"
)

// Quantile is the jitter that a share p of all packets does not exceed, in units
// of Jitter. What draws p evenly from 0 to 1 draws jitter of the distribution. A
// recorded one that was not read counts as uniform.
func (i Impairment) Quantile(p float64) float64 {
	if i.Distribution.IsFile() && i.Table != nil {
		return i.Table.Quantile(p)
	}
	return i.Distribution.Quantile(p)
}

// IsFile reports that the distribution is recorded in a file of this name.
func (d Distribution) IsFile() bool { return strings.ContainsAny(string(d), "./") }

// Quantile is that of a distribution that is no file: -1 to 1 for uniform, within
// ±TableReach for the others. Of a Pareto distribution 0.8 % lie beyond the cut,
// and with them a quarter of the deviation.
func (d Distribution) Quantile(p float64) float64 {
	switch d {
	case Normal:
		return reached(math.Sqrt2 * math.Erfinv(2*p-1))
	case Pareto:
		// A Pareto distribution of shape 3 from 1 on has the mean 1.5 and the
		// variance 0.75.
		const mean, variance = 1.5, 0.75
		return reached((1/math.Cbrt(1-p) - mean) / math.Sqrt(variance))
	}
	return 2*p - 1
}

// reached ends a distribution where netem's tables do.
func reached(x float64) float64 { return min(max(x, -TableReach), TableReach) }

// known reports one of the distributions, a file, or none, which is Uniform.
func (d Distribution) known() bool {
	return d == "" || d == Uniform || d == Normal || d == Pareto || d.IsFile()
}
