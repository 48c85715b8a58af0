package measure

import (
	"math"
	"math/rand/v2"
	"slices"
)

// How a resample of ten million values costs microseconds: no value is drawn.
// A resample of a repetition is a multinomial count of its sorted values, and
// a multinomial splits: of n values drawn from a range of size values, the
// number that fall into the lowest k of them is Binomial(n, k/size), and given
// it, both sides are again independent uniform draws. So an order statistic is
// found by halving the range of the pooled values, drawing for each
// repetition how many went left, and following the rank alone. The result has
// exactly the distribution of drawing everything and sorting. A repetition
// that was drawn c times is c·n draws from the same values.

// node is a range of the pooled values and what was drawn from it.
type node struct {
	cell *Repetitions
	// rng draws; nil takes every value once.
	rng *rand.Rand
	// from and to bound the range in cell.pooled.
	from, to int
	parts    []part
	// n is the number of values drawn, the sum over parts.
	n int
}

// part is n draws from the values lo to hi of one repetition.
type part struct {
	repetition, lo, hi, n int
}

// node draws the repetitions of a resample, or takes each once without Chance.
func (r *Repetitions) node(by Chance) node {
	times := make([]int, len(r.sorted))
	for i := range times {
		drawn := i
		if by.Turns != nil {
			drawn = by.Turns.IntN(len(times))
		}
		times[drawn]++
	}
	return r.times(times, by.Values)
}

// times is a node of each repetition as many times as it says. Without rng, no
// repetition may count more than once.
func (r *Repetitions) times(times []int, rng *rand.Rand) node {
	t := node{cell: r, rng: rng, to: len(r.pooled)}
	for i, values := range r.sorted {
		t = t.with(part{i, 0, len(values), times[i] * len(values)})
	}
	return t
}

// with adds a part, unless nothing was drawn from it.
func (t node) with(p part) node {
	if p.n > 0 {
		t.parts = append(t.parts, p)
		t.n += p.n
	}
	return t
}

// quantile is Sorted.Quantile of what was drawn.
func (t node) quantile(p float64) float64 {
	h := float64(t.n-1) * p
	i := int(h)
	low, high := t.ranks(i, min(i+1, t.n-1))
	return low + (h-float64(i))*(high-low)
}

// ranks is the values of rank i and of rank j, the same or the next, from 0.
func (t node) ranks(i, j int) (low, high float64) {
	for !t.single() {
		left, right := t.split()
		switch {
		case j < left.n:
			t = left
		case i >= left.n:
			t, i, j = right, i-left.n, j-left.n
		default:
			low, _ = left.ranks(i, i)
			high, _ = right.ranks(j-left.n, j-left.n)
			return low, high
		}
	}
	return t.cell.pooled[t.from], t.cell.pooled[t.from]
}

// single says that every value of the range is the same.
func (t node) single() bool { return t.cell.pooled[t.from] == t.cell.pooled[t.to-1] }

// split parts a range of different values near its middle and draws how many
// of each repetition's draws fell to the left.
func (t node) split() (left, right node) {
	pooled := t.cell.pooled[t.from:t.to]
	cut, _ := slices.BinarySearch(pooled, pooled[len(pooled)/2])
	if cut == 0 { // half the values tie for the smallest
		cut, _ = slices.BinarySearch(pooled, math.Nextafter(pooled[0], math.Inf(1)))
	}
	left = node{cell: t.cell, rng: t.rng, from: t.from, to: t.from + cut, parts: make([]part, 0, len(t.parts))}
	right = node{cell: t.cell, rng: t.rng, from: t.from + cut, to: t.to, parts: make([]part, 0, len(t.parts))}
	for _, p := range t.parts {
		below, _ := slices.BinarySearch(t.cell.sorted[p.repetition][p.lo:p.hi], pooled[cut])
		n := below
		if t.rng != nil {
			n = binomial(p.n, float64(below)/float64(p.hi-p.lo), t.rng)
		}
		left = left.with(part{p.repetition, p.lo, p.lo + below, n})
		right = right.with(part{p.repetition, p.lo + below, p.hi, p.n - n})
	}
	return left, right
}

// iqrMean is Sorted.IQRMean of what was drawn.
func (t node) iqrMean(m moments) float64 {
	i := int(math.Ceil(float64(t.n-1) * 0.25))
	j := int(float64(t.n-1) * 0.75)
	if i > j { // two values lie on either side of both quartiles
		return t.quantile(0.5)
	}
	sum, n := t.sum(i, j, m)
	return m.centre + sum/float64(n)
}

// sum is the sum, less the centre for each, and the number of values from rank
// i to rank j, with all that tie with either.
func (t node) sum(i, j int, m moments) (sum float64, n int) {
	if t.n == 0 || j < 0 || i >= t.n {
		return 0, 0
	}
	if t.single() {
		return float64(t.n) * (t.cell.pooled[t.from] - m.centre), t.n
	}
	if i <= 0 && j >= t.n-1 {
		for _, p := range t.parts {
			sum += m.draw(p, t.rng)
		}
		return sum, t.n
	}
	left, right := t.split()
	sum, n = left.sum(i, j, m)
	more, k := right.sum(i-left.n, j-left.n, m)
	return sum + more, n + k
}

// drawnMax is how many values are drawn one by one for a sum. The sum of more
// is drawn from the normal distribution of the same mean and variance. They
// lie between two quartiles, so that nothing heavy-tailed is among them.
const drawnMax = 64

// moments are the running sums, for each repetition, of its values less a
// centre, and of their squares: they give the mean and variance of any range.
// The centre keeps the squares from cancelling.
type moments struct {
	cell         *Repetitions
	centre       float64
	sums, square [][]float64
}

func newMoments(r *Repetitions) moments {
	m := moments{cell: r, centre: r.pooled.Median()}
	for _, values := range r.sorted {
		sums, square := make([]float64, len(values)+1), make([]float64, len(values)+1)
		for i, v := range values {
			sums[i+1] = sums[i] + (v - m.centre)
			square[i+1] = square[i] + (v-m.centre)*(v-m.centre)
		}
		m.sums, m.square = append(m.sums, sums), append(m.square, square)
	}
	return m
}

// draw is the sum of p's draws, less the centre for each.
func (m moments) draw(p part, rng *rand.Rand) float64 {
	size, n := float64(p.hi-p.lo), float64(p.n)
	if p.n <= drawnMax {
		var sum float64
		for range p.n {
			sum += m.cell.sorted[p.repetition][p.lo+rng.IntN(p.hi-p.lo)] - m.centre
		}
		return sum
	}
	mean := (m.sums[p.repetition][p.hi] - m.sums[p.repetition][p.lo]) / size
	variance := (m.square[p.repetition][p.hi]-m.square[p.repetition][p.lo])/size - mean*mean
	return n*mean + math.Sqrt(n*max(variance, 0))*rng.NormFloat64()
}
