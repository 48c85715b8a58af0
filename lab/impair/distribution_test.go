package impair_test

import (
	"math"
	"testing"

	"skerry.dev/skerry/lab/impair"
)

// Quantiles of the normal distribution by scipy 1.17 (norm.ppf); those of the
// Pareto distribution by hand: (1-p)^(-1/3) is 1, 2 and 4 at 0, 7/8 and 63/64.
func TestQuantile(t *testing.T) {
	deviation := math.Sqrt(0.75)
	for _, c := range []struct {
		shape   impair.Distribution
		p, want float64
	}{
		{"", 0, -1},
		{impair.Uniform, 0.5, 0},
		{impair.Uniform, 0.75, 0.5},
		{impair.Uniform, 1, 1},
		{impair.Normal, 0, -impair.TableReach},
		{impair.Normal, 0.5, 0},
		{impair.Normal, 0.1, -1.2815515655446008},
		{impair.Normal, 0.975, 1.959963984540054},
		{impair.Normal, 1, impair.TableReach},
		{impair.Pareto, 0, -0.5 / deviation},
		{impair.Pareto, 7. / 8, 0.5 / deviation},
		{impair.Pareto, 63. / 64, 2.5 / deviation},
		{impair.Pareto, 0.999, impair.TableReach},
		{impair.Pareto, 1, impair.TableReach},
	} {
		if got := c.shape.Quantile(c.p); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: quantile %g is %.15g, want %.15g", c.shape, c.p, got, c.want)
		}
	}
}

// Quantiles never fall, their mean is 0 and their standard deviation that of the
// distribution, less what is cut.
func TestMomentsOfQuantiles(t *testing.T) {
	const n = 100_000
	for shape, want := range map[impair.Distribution]struct{ mean, deviation float64 }{
		impair.Uniform: {0, 1 / math.Sqrt(3)},
		impair.Normal:  {0, 1},
		// Of y = (1-p)^(-1/3), cut at c: the mean is 1.5 - 0.5/c², that of y² is 3 - 2/c.
		impair.Pareto: {-0.0234, 0.7372},
	} {
		var sum, squares float64
		last := math.Inf(-1)
		for i := range n {
			x := shape.Quantile((float64(i) + 0.5) / n)
			if x < last {
				t.Fatalf("%s: quantile %d falls from %g to %g", shape, i, last, x)
			}
			last = x
			sum += x
			squares += x * x
		}
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-want.mean) > 5e-4 || math.Abs(deviation-want.deviation) > 5e-4 {
			t.Errorf("%s: mean %.4f and deviation %.4f, want %.4f and %.4f", shape, mean, deviation, want.mean, want.deviation)
		}
	}
}
