package measure

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts a family of p-values so that rejecting those that are at most α
// rejects a true hypothesis with probability α at most, however they depend on
// one another: with p₍₁₎ ≤ … ≤ p₍ₘ₎,
//
//	adjusted₍ᵢ₎ = min(1, max over j ≤ i of (m−j+1)·p₍ⱼ₎).
//
// The order is kept. A NaN is no test: it stays, and m does not count it.
// Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure (1979).
func Holm(p []float64) []float64 {
	adjusted := slices.Clone(p)
	var order []int
	for i := range p {
		if !math.IsNaN(p[i]) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	least := 0.0
	for i, at := range order {
		least = min(1, max(least, float64(len(order)-i)*p[at]))
		adjusted[at] = least
	}
	return adjusted
}
