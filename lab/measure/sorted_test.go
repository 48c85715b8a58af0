package measure

import (
	"math"
	"slices"
	"testing"
)

// The expected figures were computed with NumPy 2.4.6, not by this code:
//
//	q = np.quantile(v, [0, .25, .5, .9, .99, 1]); q1, q3 = np.quantile(v, [.25, .75])
//	r = 1.5*(q3-q1); inside = v[(v >= q1-r) & (v <= q3+r)]
//	middle = v[(v >= q1) & (v <= q3)]
//	v.mean(), middle.mean(), inside.min(), inside.max(), len(v)-len(inside)
var figuresByNumPy = []struct {
	name         string
	values       []float64
	quantiles    [6]float64 // 0, 0.25, 0.5, 0.9, 0.99, 1
	mean, middle float64
	low, high    float64
	outliers     int
}{
	{"one", []float64{7}, [6]float64{7, 7, 7, 7, 7, 7}, 7, 7, 7, 7, 0},
	{"two", []float64{2, 1}, [6]float64{1, 1.25, 1.5, 1.9, 1.99, 2}, 1.5, 1.5, 1, 2, 0},
	{"ties", []float64{1, 2, 1, 1, 1}, [6]float64{1, 1, 1, 1.6, 1.96, 2}, 1.2, 1, 1, 1, 1},
	{"both tails", []float64{3, 1, 4, 1, 5, 10, 2, 6, 5, 3, 5, 100, -80},
		[6]float64{-80, 2, 4, 9.2, 89.2, 100}, 5, 27. / 7, 1, 6, 3},
	{"thousand", congruential(1000),
		[6]float64{11, 23207.25, 49729.5, 88930.9, 99040.44, 99785}, 48965.068, 48607.522, 11, 99785, 0},
}

func TestFiguresAgreeWithNumPy(t *testing.T) {
	for _, c := range figuresByNumPy {
		t.Run(c.name, func(t *testing.T) {
			s := Sort(c.values)
			for i, p := range []float64{0, 0.25, 0.5, 0.9, 0.99, 1} {
				near(t, "quantile", s.Quantile(p), c.quantiles[i])
			}
			near(t, "mean", s.Mean(), c.mean)
			near(t, "IQR mean", s.IQRMean(), c.middle)
			b := s.Box()
			near(t, "whisker low", b.Low, c.low)
			near(t, "whisker high", b.High, c.high)
			if b.OutlierCount != c.outliers || len(b.Outliers) != c.outliers {
				t.Errorf("outliers: counted %d, listed %v, want %d", b.OutlierCount, b.Outliers, c.outliers)
			}
		})
	}
}

func TestSortLeavesItsArgumentAlone(t *testing.T) {
	values := []float64{3, 1, 2}
	Sort(values)
	if !slices.Equal(values, []float64{3, 1, 2}) {
		t.Errorf("values are now %v", values)
	}
}

func TestEmptySetHasNoFigures(t *testing.T) {
	var s Sorted
	b := s.Box()
	for _, v := range []float64{s.Quantile(0.5), s.Min(), s.Max(), s.Mean(), s.IQRMean(), b.Low, b.Q1, b.High} {
		if !math.IsNaN(v) {
			t.Errorf("a figure of nothing is %v, want NaN", v)
		}
	}
}

func TestOutliersAreBoundedForDrawing(t *testing.T) {
	values := make([]float64, 10_000) // a box of zero height around 0
	for i := range 1000 {
		values[i] = float64(i + 1)
	}
	b := Sort(values).Box()
	if b.OutlierCount != 1000 {
		t.Errorf("counted %d outliers, want 1000", b.OutlierCount)
	}
	if n := len(b.Outliers); n != outliersMax || b.Outliers[0] != 1 || b.Outliers[n-1] != 1000 {
		t.Errorf("listed %v, want %d from 1 to 1000", b.Outliers, outliersMax)
	}
	if !slices.IsSorted(b.Outliers) {
		t.Errorf("outliers are out of order: %v", b.Outliers)
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// congruential is the generator x ← 1664525x + 1013904223 mod 2³² from 42,
// each value taken mod 100000, so that Python can make the same set.
func congruential(n int) []float64 {
	x, values := uint32(42), make([]float64, n)
	for i := range values {
		x = 1664525*x + 1013904223
		values[i] = float64(x % 100000)
	}
	return values
}
