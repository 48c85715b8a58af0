package measure

import (
	"math"
	"math/rand/v2"
	"slices"
)

// permutationsMax bounds how many ways of dealing repetitions to two cells are
// tried one by one; 10 against 10 have 184,756. Of more, as many are drawn.
const permutationsMax = 200_000

// permutationTie is how much smaller a difference of logarithms may be and
// still count as equal: the same sum in another order differs in its last digits.
const permutationTie = 1e-12

// RatioPValue is the two-sided p-value of "a and b are alike" against a ratio
// other than 1, by permutation of whole repetitions: the share of all ways to
// deal them to two cells of the same sizes in which the means of the
// repetitions' log medians lie at least as far apart as they do. Source: Good,
// Permutation, Parametric and Bootstrap Tests of Hypotheses (2005), §3.2.
//
// A permutation, since it is exact for however few repetitions, where a
// bootstrap of five repetitions finds differences that are none; of
// repetitions, since requests of one repetition are not independent. The price
// is a least p-value: for R repetitions in each cell 2/C(2R, R), that is 0.1
// for 3, 0.008 for 5, 0.00001 for 10. No test by so few can do better.
//
// Where ways are drawn, p is (1 + hits) / (1 + draws): Phipson and Smyth,
// Permutation P-values Should Never Be Zero (2010). It is NaN where a cell is
// empty or a median is not positive, but 1 where all medians are the same, 0 too.
func RatioPValue(a, b *Repetitions, rng *rand.Rand) float64 {
	logs := append(logMedians(a), logMedians(b)...)
	first := a.Len()
	switch {
	case first == 0 || b.Len() == 0:
		return math.NaN()
	case !slices.ContainsFunc(logs, func(v float64) bool { return v != logs[0] }):
		return 1
	case slices.ContainsFunc(logs, func(v float64) bool { return !(v > math.Inf(-1)) }):
		return math.NaN()
	}
	centre := Sorted(logs).Mean()
	for i := range logs {
		logs[i] -= centre
	}
	// The logs now sum to 0: the first cell's sum alone tells how far apart.
	var seen float64
	for _, v := range logs[:first] {
		seen += v
	}
	least := math.Abs(seen) - permutationTie
	hits, all := 0, 0
	exact := deals(len(logs), first, permutationsMax, rng, func(dealt []int) {
		var sum float64
		for _, i := range dealt {
			sum += logs[i]
		}
		all++
		if math.Abs(sum) >= least {
			hits++
		}
	})
	if !exact {
		return float64(1+hits) / float64(1+all)
	}
	return float64(hits) / float64(all)
}

func logMedians(r *Repetitions) []float64 {
	logs := make([]float64, r.Len())
	for i := range logs {
		logs[i] = math.Log(r.sorted[i].Median())
	}
	return logs
}

// deals calls visit with each way to take k of n in ascending order, or with
// limit random ways, in no order, where there are more: then exact is false.
func deals(n, k, limit int, rng *rand.Rand, visit func(dealt []int)) (exact bool) {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	dealt := all[:k]
	if choices(n, k, limit) > limit {
		for range limit {
			for i := range dealt {
				j := i + rng.IntN(n-i)
				all[i], all[j] = all[j], all[i]
			}
			visit(dealt)
		}
		return false
	}
	for {
		visit(dealt)
		last := k - 1
		for last >= 0 && dealt[last] == n-k+last {
			last--
		}
		if last < 0 {
			return true
		}
		dealt[last]++
		for i := last + 1; i < k; i++ {
			dealt[i] = dealt[i-1] + 1
		}
	}
}

// choices is the binomial coefficient of n over k, or some number above limit.
func choices(n, k, limit int) int {
	ways := 1
	for i := range min(k, n-k) {
		ways = ways * (n - i) / (i + 1)
		if ways > limit {
			break
		}
	}
	return ways
}
