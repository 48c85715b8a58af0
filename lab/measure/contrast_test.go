package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

func first(values []float64) (low, high float64) { return values[0], values[0] }

// TestContrastCovers counts how often the interval holds a difference that is
// there, of two means of few repetitions.
func TestContrastCovers(t *testing.T) {
	t.Parallel()
	const trials = 300
	for _, repetitions := range []int{2, 3, 5, 10} {
		held := 0
		for seed := range uint64(trials) {
			rng := rand.New(rand.NewPCG(seed, uint64(repetitions)))
			cell := func(mean float64) Drawn {
				values := make([]float64, repetitions)
				for i := range values {
					values[i] = mean + 0.01*rng.NormFloat64()
				}
				return DrawMean(values, repetitions, Alone(rng))
			}
			e := Contrast([]Drawn{cell(3), cell(1)}, 1, difference)
			if e.Low <= 2 && 2 <= e.High {
				held++
			}
		}
		if share := float64(held) / trials; share < 0.93 {
			t.Errorf("%d repetitions: the interval held the truth in %.3f, want 0.95 or more", repetitions, share)
		}
	}
}

// TestContrastOfTurns holds a row of Chance's table: cells whose repetitions are slow
// together are told apart by less than cells that are drawn apart, and no less rightly.
func TestContrastOfTurns(t *testing.T) {
	t.Parallel()
	for _, repetitions := range []int{3, 5, 10} {
		for _, together := range []float64{0, 0.05, 0.2} {
			share, width := turns(repetitions, together, 300)
			if share < 0.91 {
				t.Errorf("%d repetitions, %.2f together: the interval held the truth in %.3f, want some 0.95", repetitions, together, share)
			}
			if most := map[float64]float64{0: 1.1, 0.05: 0.45, 0.2: 0.15}[together]; width > most {
				t.Errorf("%d repetitions: the interval is %.2f as wide as of cells that are drawn apart, want %.2f at most", repetitions, width, most)
			}
		}
	}
}

// turns is how often the interval holds the quotient of two means of which each
// repetition's differ by 2 % of their own, and by so much together, and how wide it is in
// widths of that of cells that are drawn apart, at the median.
func turns(repetitions int, together float64, trials int) (share, width float64) {
	var widths []float64
	for seed := range trials {
		rng := rand.New(rand.NewPCG(uint64(seed), uint64(repetitions)))
		a, b := make([]float64, repetitions), make([]float64, repetitions)
		for i := range a {
			common := math.Exp(together * rng.NormFloat64())
			a[i], b[i] = 2*common*math.Exp(0.02*rng.NormFloat64()), common*math.Exp(0.02*rng.NormFloat64())
		}
		estimate := func(by func() Chance) Estimate {
			x, y := DrawMean(a, repetitions, by()), DrawMean(b, repetitions, by())
			return Contrast([]Drawn{x, y}, 1, quotient)
		}
		turned := estimate(func() Chance { return Chance{Turns: rand.New(rand.NewPCG(1, 1)), Values: rng} })
		apart := estimate(func() Chance { return Alone(rng) })
		share += held(turned, 2) / float64(trials)
		widths = append(widths, (turned.High-turned.Low)/(apart.High-apart.Low))
	}
	return share, Sort(widths).Median()
}

// TestContrastPushes holds the interval of a median against the percentiles of
// its resamples: the same, pushed.
func TestContrastPushes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := Repeat(lognormal(rng, 5, 100, 0.05))
	d := r.DrawQuantile(0.5, Alone(rng))
	e := Contrast([]Drawn{d}, 1, first)
	if e.Value != r.Pooled().Median() || e.N != 500 || e.Repetitions != 5 || e.RequestsOnly {
		t.Errorf("got %+v of 5 repetitions of 100 values", e)
	}
	sorted := Sort(d.Draws)
	for end, plain := range map[float64]float64{e.Low: sorted.Quantile(0.025), e.High: sorted.Quantile(0.975)} {
		if got := math.Log(end/d.Value) / math.Log(plain/d.Value); math.Abs(got/push(5, 1)-1) > 0.01 {
			t.Errorf("an end lies %.3f times as far off as the plain one, want %.3f", got, push(5, 1))
		}
	}
	if wide := Contrast([]Drawn{d}, 100, first); wide.High-wide.Low < 2*(e.High-e.Low) {
		t.Errorf("as one of 100 tests: [%v, %v], alone [%v, %v]", wide.Low, wide.High, e.Low, e.High)
	}
	// t(0.975, R−1) · √(R/(R−1)) / 1.96, by SciPy as in TestStudentQuantile.
	for repetitions, want := range map[int]float64{2: 9.16817207, 3: 2.68864729, 5: 1.58378420, 10: 1.21661573} {
		if got := push(repetitions, 1); math.Abs(got-want) > 1e-8 {
			t.Errorf("the push of %d repetitions is %v, want %v", repetitions, got, want)
		}
	}
}

// lognormal is repetitions of n values about 1 whose medians spread by so much,
// with a heavy right tail.
func lognormal(rng *rand.Rand, repetitions, n int, spread float64) [][]float64 {
	all := make([][]float64, repetitions)
	for i := range all {
		shift := spread * rng.NormFloat64()
		for range n {
			all[i] = append(all[i], math.Exp(shift+0.1*math.Abs(rng.NormFloat64())))
		}
	}
	return all
}

func TestContrastOfInfinities(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := DrawMean([]float64{1, 2, 3, 4}, 4, Alone(rng))
	beyond := func(limit float64) func([]float64) (low, high float64) {
		return func(v []float64) (low, high float64) {
			if v[0] > limit {
				return math.Inf(1), math.Inf(1)
			}
			return v[0], v[0]
		}
	}
	if e := Contrast([]Drawn{d}, 1, beyond(3)); e.Value != 2.5 || !math.IsInf(e.High, 1) || math.IsInf(e.Low, 0) {
		t.Errorf("sometimes infinite: %+v", e)
	}
	if e := Contrast([]Drawn{d}, 1, beyond(-100)); !math.IsInf(e.Low, 1) {
		t.Errorf("always infinite: %+v", e)
	}
	log := func(v []float64) (low, high float64) { return math.Log(v[0] - 2.4), math.Log(v[0] - 2.4) }
	if e := Contrast([]Drawn{d}, 1, log); !math.IsNaN(e.Low) || !math.IsNaN(e.High) {
		t.Errorf("resamples without a figure are left out: %+v", e)
	}
	alone := Contrast([]Drawn{d, DrawMean([]float64{1}, 1, Alone(rng))}, 1, difference)
	if !alone.RequestsOnly || !math.IsInf(alone.Low, -1) || !math.IsInf(alone.High, 1) {
		t.Errorf("one repetition has an interval: %+v", alone)
	}
}
