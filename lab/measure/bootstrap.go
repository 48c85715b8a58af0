package measure

import (
	"math/rand/v2"
	"slices"
)

// Repetitions holds the values of one cell by repetition, in ns, each
// repetition sorted once. Make it with Repeat. It is read-only afterwards, so
// that several goroutines may estimate from it, each with its own rand. A nil
// one has no values.
type Repetitions struct {
	sorted []Sorted
	pooled Sorted
}

// confidence is the probability with which an interval holds the figure.
const confidence = 0.95

// Estimate is a figure with its 95 % interval, in the unit of the figure: ns,
// a pure number for a ratio, ns per unit of the factor for a slope. Without
// values, Value, Low and High are NaN.
type Estimate struct {
	Value, Low, High float64
	// N values stand behind it, of all cells together.
	N int
	// Repetitions behind it; of several cells, those of the cell with fewest.
	Repetitions int
	// RequestsOnly says that a cell had one repetition: the interval then holds
	// only what differs between requests, not what would differ between
	// repetitions, and is too narrow to compare runs by.
	RequestsOnly bool
}

// Repeat copies and sorts the values of each repetition, which hold no NaN.
// Repetitions without values are left out: they say nothing about a median.
// It keeps two copies of the values, 16 bytes for each.
func Repeat(values [][]float64) *Repetitions {
	sorted := make([]Sorted, len(values))
	for i, v := range values {
		sorted[i] = Sort(v)
	}
	return repeat(sorted)
}

// repeat is Repeat for values that are sorted already and stay as they are.
func repeat(sorted []Sorted) *Repetitions {
	r := &Repetitions{sorted: slices.DeleteFunc(sorted, func(s Sorted) bool { return len(s) == 0 })}
	if len(r.sorted) == 1 {
		r.pooled = r.sorted[0]
		return r
	}
	r.pooled = slices.Concat(r.sorted...)
	slices.Sort(r.pooled)
	return r
}

// Len is the number of repetitions that hold values.
func (r *Repetitions) Len() int {
	if r == nil {
		return 0
	}
	return len(r.sorted)
}

// Pooled is all values together. It must not be changed.
func (r *Repetitions) Pooled() Sorted {
	if r == nil {
		return nil
	}
	return r.pooled
}

// Quantile estimates the p-quantile of the pooled values (see Sorted.Quantile)
// by a hierarchical bootstrap: a resample draws as many repetitions as there
// are, with replacement, then from each as many values as it has, with
// replacement. Sources: Efron and Tibshirani, An Introduction to the Bootstrap
// (1993), §13.3; Davison and Hinkley, Bootstrap Methods and their Application
// (1997), §3.8, two-stage resampling.
//
// The interval is that of Contrast, made for few repetitions. So often, in per
// cent and to about one, does it hold the true median, where repetitions differ
// by σ_b and the medians of 200 values from one repetition by σ_w = 0.6 %; in
// brackets, the plain percentile interval:
//
//	repetitions     2         3         5         10        20
//	σ_b = 0         100 (97)  100 (99)  100 (98)  100 (99)  100 (99)
//	σ_b = 1 %       100 (81)  100 (89)   99 (92)   98 (95)   96 (95)
//	σ_b = 5 %       100 (60)   96 (77)   96 (85)   95 (91)   95 (93)
//	σ_b = 30 %       94 (52)   94 (78)   96 (92)   95 (91)   97 (96)
//
// It is too wide where repetitions hardly differ, since the resamples' variance
// is about (1−1/R)σ_b² + (2−1/R)σ_w², over R. The price of three repetitions is
// its width: 2.7 times that of the plain one. Of one repetition the interval is
// the plain one, of its requests alone.
func (r *Repetitions) Quantile(p float64, rng *rand.Rand) Estimate {
	return contrast([]Drawn{r.DrawQuantile(p, Alone(rng))}, 1, func(v []float64) (low, high float64) { return v[0], v[0] })
}

// Median estimates the median as Quantile does.
func (r *Repetitions) Median(rng *rand.Rand) Estimate { return r.Quantile(0.5, rng) }
