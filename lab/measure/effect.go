package measure

import (
	"math"
	"sort"
)

// Delta is Cliff's delta, P(x > y) − P(x < y) for x from a and y from b: a
// count over all pairs, made in one pass over both sets. Source: Cliff,
// Dominance Statistics (1993). With U of Mann and Whitney, 2U/(nm) − 1. It is
// from −1, all of a below all of b, to 1, and NaN where a set is empty.
func Delta(a, b Sorted) float64 {
	var balance float64
	below, atMost := 0, 0 // of b: less than x, and at most x
	for _, x := range a {
		for below < len(b) && b[below] < x {
			below++
		}
		for atMost < len(b) && b[atMost] <= x {
			atMost++
		}
		balance += float64(below - (len(b) - atMost))
	}
	return balance / (float64(len(a)) * float64(len(b)))
}

// Shift is the Hodges–Lehmann estimate of the shift from b to a: the median of
// all differences x − y, x from a and y from b. It is exact for any size: the
// difference of a given rank is found by bisection over all float64, at most 64
// steps of one pass over both sets. Source: Hodges and Lehmann, Estimates of
// Location Based on Rank Tests (1963). Values must be finite. It is NaN where a
// set is empty.
func Shift(a, b Sorted) float64 {
	pairs := len(a) * len(b)
	if pairs == 0 {
		return math.NaN()
	}
	low := differenceOfRank(a, b, (pairs-1)/2)
	count, next := differences(a, b, low)
	if pairs%2 == 1 || count > pairs/2 {
		return low + 0 // no −0
	}
	return low + (next-low)/2
}

// differenceOfRank is the difference of rank k, from 0.
func differenceOfRank(a, b Sorted, k int) float64 {
	from, to := ordinal(a.Min()-b.Max()), ordinal(a.Max()-b.Min())
	// A span from negative to positive may be wider than an int: settle the
	// sign first.
	if from < 0 && to >= 0 {
		if count, _ := differences(a, b, math.Copysign(0, -1)); count > k {
			to = -1
		} else {
			from = 0
		}
	}
	steps := sort.Search(int(to-from), func(i int) bool {
		count, _ := differences(a, b, float(from+int64(i)))
		return count > k
	})
	return float(from + int64(steps))
}

// differences counts the pairs whose difference is at most limit, and finds
// the least difference beyond it: +Inf without one. Both walk the sets once,
// since x − limit only grows with x.
func differences(a, b Sorted, limit float64) (count int, next float64) {
	next = math.Inf(1)
	beyond := 0 // of b: those whose difference from x is above limit
	for _, x := range a {
		for beyond < len(b) && x-b[beyond] > limit {
			beyond++
		}
		if beyond > 0 {
			next = min(next, x-b[beyond-1])
		}
		count += len(b) - beyond
	}
	return count, next
}

// ordinal numbers the float64 in ascending order, 0 and above from 0; float is
// its inverse.
func ordinal(f float64) int64 {
	if bits := int64(math.Float64bits(f)); bits >= 0 {
		return bits
	}
	return -int64(math.Float64bits(-f)) - 1
}

func float(ordinal int64) float64 {
	if ordinal >= 0 {
		return math.Float64frombits(uint64(ordinal))
	}
	return -math.Float64frombits(uint64(-(ordinal + 1)))
}
