package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDrawnFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := Repeat([][]float64{{1, 2, 3, 4, 5}, {2, 3, 4, 5, 6}, {3, 4, 5, 6, 7}})
	for name, c := range map[string]struct {
		d    Drawn
		want float64
	}{
		"quantile": {r.DrawQuantile(0.5, Alone(rng)), 4},
		"under":    {r.DrawQuantile(0.5, Alone(rng)).Under(8), 2},
		"IQR":      {r.DrawIQR(Alone(rng)), 2},
		"IQR mean": {r.DrawIQRMean(Alone(rng)), 4},
		"mean":     {DrawMean(r.Means(), 15, Alone(rng)), 4},
	} {
		mean := Sorted(c.d.Draws).Mean()
		if c.d.Value != c.want || c.d.N != 15 || c.d.Repetitions != 3 || math.Abs(mean-c.want) > 0.5 {
			t.Errorf("%s: %v of %d in %d, drawn about %v; want %v of 15 in 3", name, c.d.Value, c.d.N, c.d.Repetitions, mean, c.want)
		}
	}
	for _, values := range [][]float64{{1, 1, 1, 1, 5}, {1, 1, 1, 2, 9}} {
		ties := Repeat([][]float64{values, {1, 1, 1, 1, 5}})
		if e := Contrast([]Drawn{ties.DrawIQR(Alone(rng))}, 1, first); e.Low != 0 || !(e.High > 0) || e.Value < 0 {
			t.Errorf("quartiles that tie lie %+v apart, want 0 or more", e)
		}
	}
	if hits, of := r.HitsOver(5); len(hits) != 3 || hits[0] != 0 || hits[1] != 1 || hits[2] != 2 || of[0] != 5 {
		t.Errorf("over 5 there are %v of %v, want 0 1 2 of 5 5 5", hits, of)
	}
	for _, d := range []Drawn{
		(&Repetitions{}).DrawQuantile(0.5, Alone(rng)), (*Repetitions)(nil).DrawIQR(Alone(rng)), DrawMean(nil, 0, Alone(rng)), DrawShare(nil, nil, Alone(rng)),
	} {
		if e := Contrast([]Drawn{d}, 1, first); !math.IsNaN(e.Value) || !math.IsNaN(e.Low) {
			t.Errorf("nothing has the figure %+v", e)
		}
	}
}

func TestShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	share := func(hits ...int) Estimate {
		of := make([]int, len(hits))
		for i := range of {
			of[i] = 1000
		}
		return Contrast([]Drawn{DrawShare(hits, of, Alone(rng))}, 1, first)
	}
	none, one, all := share(0, 0, 0), share(0, 0, 1), share(1000, 1000, 1000)
	if none.Value != 0 || none.Low != 0 || none.High < 0.0005 || none.High > 0.01 {
		t.Errorf("none of 3000: %+v; it proves no 0, and hardly 1%%", none)
	}
	if one.Low <= 0 || one.High < none.High {
		t.Errorf("one of 3000: %+v; what was seen is possible", one)
	}
	if all.Value != 1 || all.High != 1 || all.Low < 0.99 || all.Low == 1 {
		t.Errorf("all of 3000: %+v", all)
	}
}

// One repetition without an answer, or one request that took 0 ms, is pushed to 0 and not
// below: what is divided by it has no end, and no other sign.
func TestZerosArePushedNoFurther(t *testing.T) {
	seed := func() Chance { return Alone(rand.New(rand.NewPCG(1, 2))) }
	rates := []Drawn{DrawMean([]float64{50, 50, 50}, 3, seed()), DrawMean([]float64{0, 100, 100}, 3, seed())}
	if e := Contrast(rates, 1, quotient); !(e.Low > 0.2 && e.Low < 0.5) || e.Value != 0.75 || !math.IsInf(e.High, 1) {
		t.Errorf("50/s over a rate that may be 0: %+v, want 0.75 without an upper end", e)
	}
	rates[0] = rates[1]
	if e := Contrast(rates, 1, quotient); !math.IsNaN(e.Low) || !math.IsNaN(e.High) {
		t.Errorf("0 over 0: %+v, want no interval", e)
	}
	times := Repeat([][]float64{{0, 1e6, 1e6}, {3e6, 3e6, 3e6}, {3e6, 3e6, 3e6}})
	late := Repeat([][]float64{{6e6}, {6e6}, {6e6}})
	medians := []Drawn{late.DrawQuantile(0.5, seed()), times.DrawQuantile(0.5, seed())}
	if e := Contrast(medians, 1, quotient); !(e.Low > 0) || e.Value != 2 || !math.IsInf(e.High, 1) {
		t.Errorf("6 ms over a time that may be 0: %+v, want 2 without an upper end", e)
	}
	if e := Contrast(medians, 1, func(v []float64) (low, high float64) { return v[1], v[1] }); e.Low != 0 || e.Value != 3e6 {
		t.Errorf("a time of %+v ns, want none below 0", e)
	}
}

// The greatest of 300 values lies below p99 in one sample of twenty: no upper end is known.
func TestTailOfFewValues(t *testing.T) {
	for _, c := range []struct {
		p      float64
		n      int
		needed int
	}{{0.99, 122, 368}, {0.99, 123, 0}, {0.9, 11, 36}, {0.9, 12, 0}, {0.5, 1, 0}, {0.25, 1, 0}} {
		rng := rand.New(rand.NewPCG(1, 2))
		d := Repeat(lognormal(rng, 3, c.n, 0.01)).DrawQuantile(c.p, Alone(rng))
		e := Contrast([]Drawn{d}, 1, first)
		if d.Needed != c.needed || math.IsInf(e.High, 1) != (c.needed > 0) || math.IsInf(e.Low, 0) || !(e.Low <= e.Value) {
			t.Errorf("p%g of 3 times %d values: needed %d, %+v; want %d", 100*c.p, c.n, d.Needed, e, c.needed)
		}
	}
}
