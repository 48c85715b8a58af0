package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// MoreMax bounds the answer of More: it stands for "that many or more".
const MoreMax = 10_000

// More is how many more repetitions would bring the interval clear of bound,
// which is one bound of so many tests (see Contrast), if the value stayed: with
// h the interval's half on the side of the bound and R the repetitions, the
// least R' for which
//
//	h · w(R') / w(R) < |Value − bound|,  w(R) = t(1 − α/2m, R−1) / √R.
//
// 0 means clear already; an interval that ends at the bound is not. ok is false
// where no number would do: the value is the bound, there is no interval, or
// one repetition has not shown how repetitions differ. It is a forecast from an
// estimate, good to a factor of about two.
func (e Estimate) More(bound float64, tests int) (more int, ok bool) {
	distance, half := bound-e.Value, e.High-e.Value
	if distance < 0 {
		distance, half = -distance, e.Value-e.Low
	}
	if e.Repetitions < 2 || !(distance > 0) || math.IsNaN(half) || math.IsInf(half, 0) {
		return 0, false
	}
	width := func(repetitions int) float64 {
		return studentQuantile((1-confidence)/float64(tests), repetitions-1) / math.Sqrt(float64(repetitions))
	}
	least := distance / half * width(e.Repetitions)
	return sort.Search(MoreMax, func(more int) bool { return width(e.Repetitions+more) < least }), true
}

// floorRepetitionsMin is the fewest repetitions with a noise floor: six have
// 20 halves, the fewest of which a twentieth is one.
const floorRepetitionsMin = 6

// floorSplitsMax bounds the halves that a noise floor looks at: 12 repetitions
// have 924. Of more, as many are drawn.
const floorSplitsMax = 1000

// NoiseFloor is the difference that this cell shows against itself: its
// repetitions are split into two halves in every way (an odd one goes to the
// second), and floor is the 95 % quantile of |ratio − 1| of the halves' pooled
// medians. A half has half the repetitions, so this is about √2 above the
// floor of two whole cells: it errs on the side of calling nothing. ok is false
// with fewer than six repetitions. Values are times, which are positive.
func (r *Repetitions) NoiseFloor(rng *rand.Rand) (floor float64, ok bool) {
	if r.Len() < floorRepetitionsMin {
		return math.NaN(), false
	}
	var ratios Sorted
	deals(r.Len(), r.Len()/2, floorSplitsMax, rng, func(dealt []int) {
		first, second := make([]int, r.Len()), make([]int, r.Len())
		for i := range second {
			second[i] = 1
		}
		for _, i := range dealt {
			first[i], second[i] = 1, 0
		}
		ratio := r.times(first, nil).quantile(0.5) / r.times(second, nil).quantile(0.5)
		ratios = append(ratios, math.Abs(ratio-1))
	})
	slices.Sort(ratios)
	return ratios.Quantile(0.95), true
}

// Spread is the standard deviation of the repetitions' medians as a share of
// them: of their logarithms. It is NaN with fewer than two repetitions.
func (r *Repetitions) Spread() float64 {
	logs := logMedians(r)
	if len(logs) < 2 {
		return math.NaN()
	}
	centre := Sorted(logs).Mean()
	var sum float64
	for _, v := range logs {
		sum += (v - centre) * (v - centre)
	}
	return math.Sqrt(sum / float64(len(logs)-1))
}

// Resolves is the least difference between two cells, as a share, that so many
// repetitions of each tell from none in four of five runs, where repetitions
// spread by so much:
//
//	spread · √(2/R) · (t(1 − α/2, R−1) + t(0.8, R−1)),  α = 5 %.
//
// It is +Inf for one repetition. Source: Cohen, Statistical Power Analysis
// (1988), §2, with Student's t in place of the normal.
func Resolves(repetitions int, spread float64) float64 {
	if repetitions < 2 {
		return math.Inf(1)
	}
	df := repetitions - 1
	const power = 0.8
	t := studentQuantile(1-confidence, df) + studentQuantile(2*(1-power), df)
	return spread * math.Sqrt(2/float64(repetitions)) * t
}
