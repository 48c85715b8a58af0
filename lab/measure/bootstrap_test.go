package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestOneRepetitionAgreesWithScipy holds the intervals of one repetition, which
// are those of the plain bootstrap, against SciPy 1.17.1:
//
//	scipy.stats.bootstrap((v,), np.median, n_resamples=100000, method='percentile')
//
// so with lambda x, axis: np.quantile(x, .9, axis=axis) and, of two sets, with
// the ratio of their medians. The ends may differ as ends of 2000 draws do, by a
// quarter of the distribution's standard deviation.
func TestOneRepetitionAgreesWithScipy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v := Repeat([][]float64{congruential(1000)})
	w := Repeat([][]float64{sequence(7, 50_000, 400)})
	for _, c := range []struct {
		name             string
		got              Estimate
		value, low, high float64
		n                int
	}{
		{"median", v.Median(rng), 49729.5, 46974.5, 52180, 1000},
		{"p90", v.Quantile(0.9, rng), 88930.9, 85736.6, 90530.3, 1000},
		{"IQR mean", contrast([]Drawn{v.DrawIQRMean(Alone(rng))}, 1, first), 48607.522, 46094.995, 51206.339, 1000},
		{"ratio", ratioOf(w, v, rng), 2.024774027, 1.881470071, 2.184737086, 1400},
	} {
		near(t, c.name, c.got.Value, c.value)
		within := (c.high - c.low) / 16
		if math.Abs(c.got.Low-c.low) > within || math.Abs(c.got.High-c.high) > within {
			t.Errorf("%s: [%v, %v], want [%v, %v] ± %v", c.name, c.got.Low, c.got.High, c.low, c.high, within)
		}
		if !c.got.RequestsOnly || c.got.Repetitions != 1 || c.got.N != c.n {
			t.Errorf("%s: %+v, want one repetition of %d values, requests only", c.name, c.got, c.n)
		}
	}
}

// draws in tests of coverage: fewer than resamples, since many are made.
const fewDraws = 250

func medianOf(r *Repetitions, rng *rand.Rand) Drawn {
	d := drawn(fewDraws, r.Len(), func(from Chance) float64 { return r.node(from).quantile(0.5) }, Alone(rng))
	d.Positive = true
	return d
}

// ratioOf estimates the median of a over that of b.
func ratioOf(a, b *Repetitions, rng *rand.Rand) Estimate {
	return contrast([]Drawn{a.DrawQuantile(0.5, Alone(rng)), b.DrawQuantile(0.5, Alone(rng))}, 1, quotient)
}

// lognormalMedian is the median of lognormal's values: that of the absolute
// value of a normal variable is 0.6745.
var lognormalMedian = math.Exp(0.1 * 0.6744897501960817)

// TestIntervalsCover counts how often 95 % intervals hold the truth, of a
// median, a ratio and a slope over three cells, where 20 repetitions differ by
// 2 % and the 200 values of each have a tail of 10 %.
func TestIntervalsCover(t *testing.T) {
	t.Parallel()
	const trials = 100
	rng := rand.New(rand.NewPCG(1, 2))
	ratio := func(v []float64) (low, high float64) { return v[1] / v[0], v[1] / v[0] }
	slope := func(v []float64) (low, high float64) { return (v[2] - v[0]) / 2, (v[2] - v[0]) / 2 }
	var median, ratios, slopes float64
	for range trials {
		var cells []Drawn
		for range 3 {
			cells = append(cells, medianOf(Repeat(lognormal(rng, 20, 200, 0.02)), rng))
		}
		for i := range cells {
			median += held(contrast(cells[i:i+1], 1, first), lognormalMedian) / (3 * trials)
		}
		ratios += held(contrast(cells[:2], 1, ratio), 1) / (2 * trials)
		ratios += held(contrast(cells[1:], 1, ratio), 1) / (2 * trials)
		slopes += held(contrast(cells, 1, slope), 0) / trials
	}
	for name, share := range map[string]float64{"median": median, "ratio": ratios, "slope": slopes} {
		if share < 0.92 || share > 0.98 {
			t.Errorf("%s: the interval held the truth in %.3f, want 0.92 to 0.98", name, share)
		}
	}
}

// TestIntervalsOfFewRepetitionsCover holds a row of Quantile's table, where
// repetitions differ by 5 %.
func TestIntervalsOfFewRepetitionsCover(t *testing.T) {
	t.Parallel()
	const trials = 300
	for _, repetitions := range []int{2, 3, 5, 10} {
		rng := rand.New(rand.NewPCG(uint64(repetitions), 1))
		var share float64
		for range trials {
			d := medianOf(Repeat(lognormal(rng, repetitions, 50, 0.05)), rng)
			share += held(contrast([]Drawn{d}, 1, first), lognormalMedian) / trials
		}
		if share < 0.93 {
			t.Errorf("%d repetitions: the interval held the truth in %.3f, want 0.95 or more", repetitions, share)
		}
	}
}

func held(e Estimate, truth float64) float64 {
	if e.Low <= truth && truth <= e.High {
		return 1
	}
	return 0
}

// TestIntervalsOfTimesArePositive pushes far: of three repetitions one is half
// as long as the others.
func TestIntervalsOfTimesArePositive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := single(1e6, 2e6, 2e6)
	if e := r.Median(rng); e.Value != 2e6 || e.Low <= 0 || e.Low > 1e6 || e.High < e.Value {
		t.Errorf("the median of 1, 2 and 2 ms: %+v", e)
	}
	if e := ratioOf(r, r, rng); e.Value != 1 || e.Low <= 0 || math.IsInf(e.High, 0) {
		t.Errorf("a ratio: %+v", e)
	}
}

func TestSameSeedSameEstimate(t *testing.T) {
	estimate := func(seed uint64) Estimate {
		return Repeat([][]float64{congruential(50), sequence(7, 0, 60)}).Median(rand.New(rand.NewPCG(seed, 1)))
	}
	if estimate(1) != estimate(1) || estimate(1) == estimate(2) {
		t.Errorf("from seeds 1, 1 and 2: %+v, %+v, %+v", estimate(1), estimate(1), estimate(2))
	}
}

func TestEstimatesOfNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, e := range map[string]Estimate{
		"median of nothing": Repeat([][]float64{nil, {}}).Median(rng),
		"median of nil":     (*Repetitions)(nil).Median(rng),
		"ratio to nothing":  ratioOf(single(1, 2), Repeat(nil), rng),
	} {
		if !math.IsNaN(e.Value) || !math.IsNaN(e.Low) || !math.IsNaN(e.High) {
			t.Errorf("%s: %+v, want NaN", name, e)
		}
	}
	r := Repeat([][]float64{{3, 1}, nil, {2}})
	if r.Len() != 2 || len(r.Pooled()) != 3 || r.Pooled().Median() != 2 {
		t.Errorf("%d repetitions, pooled %v", r.Len(), r.Pooled())
	}
}
