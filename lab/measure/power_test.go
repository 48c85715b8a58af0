package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMore holds the forecast against what so many repetitions give.
func TestMore(t *testing.T) {
	e := Estimate{Value: 10, Low: 9, High: 11, Repetitions: 3}
	more, ok := e.More(10.45, 1)
	// t(2)/√3 = 2.484 must fall below 0.45 of it, 1.118: t(4)/√5 = 1.242, t(5)/√6 = 1.049.
	if more != 3 || !ok {
		t.Errorf("got %d more, %v; want 3", more, ok)
	}
	if more, ok := e.More(11, 1); more != 1 || !ok {
		t.Errorf("the interval ends at the bound: %d more, %v; want 1", more, ok)
	}
	if more, ok := e.More(8, 1); more != 0 || !ok {
		t.Errorf("clear already: got %d, %v", more, ok)
	}
	for _, c := range []struct {
		e     Estimate
		bound float64
	}{{e, 10}, {Estimate{Value: 10, Repetitions: 1}, 9}, {e, math.NaN()}, {Estimate{Value: 1, Low: 0, High: math.Inf(1), Repetitions: 3}, 9}} {
		if more, ok := c.e.More(c.bound, 1); ok {
			t.Errorf("%+v against %v: %d more would do", c.e, c.bound, more)
		}
	}
}

// TestResolves holds arithmetic by hand: 3 repetitions that
// spread by 1 % resolve 0.01 · √(2/3) · (4.30265273 + 1.06066017).
func TestResolves(t *testing.T) {
	if got := Resolves(3, 0.01); math.Abs(got-0.043791) > 1e-6 {
		t.Errorf("3 repetitions resolve %v, want 0.043791", got)
	}
	if got := Resolves(1, 0.01); !math.IsInf(got, 1) {
		t.Errorf("1 repetition resolves %v", got)
	}
	if got := Repeat([][]float64{{100}, {100 * math.E}}).Spread(); math.Abs(got-math.Sqrt2/2) > 1e-12 {
		t.Errorf("spread %v, want %v", got, math.Sqrt2/2)
	}
	for n, r := range []*Repetitions{nil, single(100)} {
		if got := r.Spread(); !math.IsNaN(got) {
			t.Errorf("%d repetitions spread by %v, want NaN", n, got)
		}
	}
}

// TestMoreIsEnough makes as many repetitions as were forecast: the interval then
// is as wide as was needed, within the factor that the forecast claims.
func TestMoreIsEnough(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	few := Repeat(lognormal(rng, 5, 50, 0.05)).Median(rng)
	bound := few.Value * 1.02
	more, ok := few.More(bound, 1)
	if !ok || more < 5 || more > 100 {
		t.Fatalf("%+v against %v: %d more, %v", few, bound, more, ok)
	}
	many := Repeat(lognormal(rng, 5+more, 50, 0.05)).Median(rng)
	if half := (many.High - many.Low) / 2 / many.Value; half < 0.01 || half > 0.04 {
		t.Errorf("%d more repetitions narrow the interval to ±%.3f, want about 0.02", more, half)
	}
	far := Estimate{Value: 10, Low: 0, High: 20, Repetitions: 5}
	if more, ok := far.More(10+1e-9, 1); more != MoreMax || !ok {
		t.Errorf("a billionth of the interval away: %d more, %v; want the bound %d", more, ok, MoreMax)
	}
}

func TestNoiseFloor(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	// By hand: of 1, 1, 1, 1, 1, 2 every half without the 2 has the median 1, and
	// so has every half with it.
	if floor, ok := single(1, 1, 1, 1, 1, 2).NoiseFloor(rng); floor != 0 || !ok {
		t.Errorf("one outlier of six: %v, %v; want 0", floor, ok)
	}
	// Of 1, 1, 1, 2, 2, 2 the halves have the medians 1 and 2, one way or the
	// other: |1/2 − 1| or |2/1 − 1|, each in half of the 20 ways.
	if floor, ok := single(1, 1, 1, 2, 2, 2).NoiseFloor(rng); floor != 1 || !ok {
		t.Errorf("three of six are double: %v, %v; want 1", floor, ok)
	}
	if floor, ok := single(1, 2, 3, 4, 5).NoiseFloor(rng); !math.IsNaN(floor) || ok {
		t.Errorf("five repetitions: %v, %v; want none", floor, ok)
	}
	if floor, ok := (*Repetitions)(nil).NoiseFloor(rng); !math.IsNaN(floor) || ok {
		t.Errorf("none: %v, %v", floor, ok)
	}
	// Means of halves of 20 differ by 2 % · √(2/10), which 95 % stay within 1.96
	// times; medians of a few values in each by about as much.
	floor, _ := Repeat(lognormal(rng, 20, 50, 0.02)).NoiseFloor(rng)
	if floor < 0.008 || floor > 0.035 {
		t.Errorf("20 repetitions that differ by 2 %%: %v, want about 0.018", floor)
	}
}
