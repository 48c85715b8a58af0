package measure

import (
	"math"
	"slices"
)

// Sorted is a set of values in ascending order, without NaN. Make it with
// Sort. Every figure of an empty set is NaN.
type Sorted []float64

// outliersMax bounds the outliers that a Box lists for drawing.
const outliersMax = 40

// whiskerIQRs is how far whiskers may reach from the box, in inter-quartile
// ranges: Tukey, Exploratory Data Analysis (1977), §2C.
const whiskerIQRs = 1.5

// Box is a five-number summary with Tukey's whiskers, in the unit of the values.
type Box struct {
	// Low and High end the whiskers: the outermost values that lie within 1.5
	// inter-quartile ranges of the box.
	Low, High float64
	// Q1, Median and Q3 draw the box.
	Q1, Median, Q3 float64
	// OutlierCount is how many values lie beyond the whiskers.
	OutlierCount int
	// Outliers are those values in ascending order, at most 40 of them: of more,
	// 40 that lie evenly among their ranks, the smallest and largest included.
	Outliers []float64
}

// Sort copies values into ascending order.
func Sort(values []float64) Sorted {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}

// Quantile is the value below which the share p of the set lies, p in [0, 1],
// interpolated linearly between the values of rank ⌊h⌋ and ⌊h⌋+1, where
// h = (n−1)p + 1: type 7 of Hyndman and Fan, Sample Quantiles in Statistical
// Packages (1996), the default of R and NumPy.
func (s Sorted) Quantile(p float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	h := float64(len(s)-1) * p
	i := int(h)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (h-float64(i))*(s[i+1]-s[i])
}

// Median is the middle value, or the mean of the two in the middle.
func (s Sorted) Median() float64 { return s.Quantile(0.5) }

// Min is the smallest value.
func (s Sorted) Min() float64 { return s.Quantile(0) }

// Max is the largest value.
func (s Sorted) Max() float64 { return s.Quantile(1) }

// Mean is the arithmetic mean.
func (s Sorted) Mean() float64 {
	var sum float64
	for _, v := range s {
		sum += v
	}
	return sum / float64(len(s))
}

// IQRMean is the mean of the values from the first quartile to the third, both
// included: what table 3 of the ClusterLink paper calls IQR mean. The paper
// does not say what becomes of values that equal a quartile; here they count.
func (s Sorted) IQRMean() float64 {
	from, to := s.bounds(s.Quantile(0.25), s.Quantile(0.75))
	if from == to {
		return s.Median() // two values lie on either side of both quartiles
	}
	return s[from:to].Mean()
}

// Box is the set's five-number summary.
func (s Sorted) Box() Box {
	b := Box{Q1: s.Quantile(0.25), Median: s.Median(), Q3: s.Quantile(0.75)}
	if len(s) == 0 {
		b.Low, b.High = math.NaN(), math.NaN()
		return b
	}
	reach := whiskerIQRs * (b.Q3 - b.Q1)
	from, to := s.bounds(b.Q1-reach, b.Q3+reach)
	b.Low, b.High = s[from], s[to-1]
	b.OutlierCount = from + len(s) - to
	b.Outliers = make([]float64, min(b.OutlierCount, outliersMax))
	for i := range b.Outliers {
		rank := i
		if b.OutlierCount > outliersMax {
			rank = i * (b.OutlierCount - 1) / (outliersMax - 1)
		}
		if rank >= from {
			rank += to - from
		}
		b.Outliers[i] = s[rank]
	}
	return b
}

// bounds are the ranks, from 0, of the first value that is at least low and of
// the first beyond high.
func (s Sorted) bounds(low, high float64) (from, to int) {
	from, _ = slices.BinarySearch(s, low)
	to, _ = slices.BinarySearch(s, math.Nextafter(high, math.Inf(1)))
	return from, to
}
