package main

import (
	"math"
	"testing"
)

// Bounds by scipy 1.17: binom.ppf(0.005, n, p), binom.isf(0.005, n, p).
func TestBinomialBounds(t *testing.T) {
	for _, tt := range []struct {
		n         int
		p         float64
		low, high int
	}{{20_000, 0.0199, 348, 450}, {100, 0.5, 37, 63}, {10, 0.01, 0, 1}} {
		if low, high := binomialBounds(tt.n, tt.p); low != tt.low || high != tt.high {
			t.Errorf("n=%d p=%g: %d to %d, want %d to %d", tt.n, tt.p, low, high, tt.low, tt.high)
		}
	}
}

func TestDifferenceOfMedians(t *testing.T) {
	var a, b []float64
	for i := range 1001 {
		a = append(a, float64(i)+100)
		b = append(b, float64(i))
	}
	e := difference(a, b)
	// The median of n uniform values on [0, 1000] spreads by 1000/(2 sqrt n).
	spread := 1.96 * math.Sqrt2 * 1000 / (2 * math.Sqrt(1001))
	if e.value != 100 || e.low > 100 || e.high < 100 || math.Abs((e.high-e.low)/2-spread) > spread/4 {
		t.Errorf("got %+v, want 100 ± %.1f", e, spread)
	}
}
