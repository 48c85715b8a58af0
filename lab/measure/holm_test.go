package measure

import (
	"math"
	"testing"
)

// TestHolm holds the textbook's arithmetic, done by hand.
func TestHolm(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct{ p, want []float64 }{
		"none":              {nil, nil},
		"one":               {[]float64{0.03}, []float64{0.03}},
		"in order":          {[]float64{0.01, 0.02, 0.03, 0.04}, []float64{0.04, 0.06, 0.06, 0.06}},
		"in any order":      {[]float64{0.04, 0.005, 0.03, 0.01}, []float64{0.06, 0.02, 0.06, 0.03}},
		"never above 1":     {[]float64{0.6, 0.7, 0.001}, []float64{1, 1, 0.003}},
		"ties":              {[]float64{0.02, 0.02, 0.02}, []float64{0.06, 0.06, 0.06}},
		"no test, no place": {[]float64{nan, 0.01, nan, 0.02}, []float64{nan, 0.02, nan, 0.02}},
		"nothing tested":    {[]float64{nan}, []float64{nan}},
	} {
		got := Holm(c.p)
		if len(got) != len(c.want) {
			t.Fatalf("%s: %v, want %v", name, got, c.want)
		}
		for i, want := range c.want {
			if math.IsNaN(want) != math.IsNaN(got[i]) || math.Abs(got[i]-want) > 1e-12 {
				t.Errorf("%s: %v becomes %v, want %v", name, c.p, got, c.want)
				break
			}
		}
	}
	p := []float64{0.04, 0.005}
	Holm(p)
	if p[0] != 0.04 || p[1] != 0.005 {
		t.Errorf("Holm changed its argument to %v", p)
	}
}
