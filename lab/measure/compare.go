package measure

import (
	"math"
	"math/rand/v2"
)

// Verdict of comparing a cell of two runs.
type Verdict string

// Verdicts.
const (
	Same   Verdict = "same"
	Slower Verdict = "slower"
	Faster Verdict = "faster"
	// TooFew says that no difference, however large, could be called by so few
	// repetitions in a family of so many cells.
	TooFew Verdict = "too few repetitions"
	// NotComparable says that there is no ratio: the median of a repetition is 0.
	NotComparable Verdict = "not comparable"
	// MoreErrors says that requests fail in B that were answered in A: how long the
	// others take says little of such a cell.
	MoreErrors Verdict = "more errors"
)

// Pair is one cell in two runs.
type Pair struct{ A, B *Repetitions }

// Rule says when a difference is called.
type Rule struct {
	// Alpha bounds the probability with which any is called between two runs that
	// do not differ.
	Alpha float64
	// Resolution in ns is what medians must differ by at least: the state of a
	// machine (where its processes were placed, what its caches hold) moves all
	// repetitions of a run together, which no test of repetitions can know.
	Resolution float64
}

// Difference is what became of a cell from run A to run B.
type Difference struct {
	// Ratio of the median of B to that of A, and Apart the median of B less that of A
	// in ns, with their bootstrap intervals.
	Ratio, Apart Estimate
	// Jitter is the distance of the quartiles of B less that of A, likewise in ns.
	Jitter Estimate
	// Shift is the Hodges–Lehmann estimate of what Apart is, in ns; Delta is Cliff's.
	Shift, Delta float64
	// P of RatioPValue, and P adjusted for the family by Holm.
	P, Adjusted float64
	// Floor is the noise floor of A as a share: what A differs by from itself.
	// NaN where A has too few repetitions to tell.
	Floor   float64
	Verdict Verdict
	// Needed is how many repetitions each run would need, where they are too few;
	// 0 if the family is too large for any number.
	Needed int
}

// Compare says of each pair whether it differs. A difference is called where
// the p-value, adjusted over all pairs, is at most alpha, the ratio lies beyond
// the noise floor and the medians are further apart than the resolution.
//
// The floor guards against cells whose repetitions' medians differ while the
// median of their requests hardly does. Else it costs nothing: at 1 % the test
// calls no difference of less than about 1.7 standard deviations of ten
// repetitions, and the floor lies at about 1.2.
//
// So often, in per cent, is a slow-down of 5 % called in one of 8 cells of ten
// repetitions, at an alpha of 1 %, by how much the repetitions differ:
//
//	1 %   1.5 %   2 %   3 %
//	100   99      90    40
func Compare(pairs []Pair, rule Rule, rng *rand.Rand) []Difference {
	all := make([]Difference, len(pairs))
	for i, pair := range pairs {
		all[i] = pair.test(rng)
		all[i].estimate(pair, rng)
		all[i].Shift = Shift(pair.B.Pooled(), pair.A.Pooled())
		all[i].Delta = Delta(pair.B.Pooled(), pair.A.Pooled())
	}
	decide(all, pairs, rule)
	return all
}

// FailsMore says whether a larger share of requests fails in B than in A, beyond chance: one
// of so many such tests, of which any is wrong with the probability alpha of the rule. It
// takes two repetitions of each at least, as every interval does.
func FailsMore(a, b []Summary, tests int, rule Rule, rng *rand.Rand) bool {
	by := Alone(rng)
	hitsA, ofA := Failures(a)
	hitsB, ofB := Failures(b)
	atAlpha := min(math.Ceil(float64(tests)*(1-confidence)/rule.Alpha), math.MaxInt32)
	more := Contrast([]Drawn{DrawShare(hitsB, ofB, by), DrawShare(hitsA, ofA, by)}, int(atAlpha), difference)
	return more.Low > 0
}

// estimate gives what A and B differ by its intervals. Both figures of the medians are
// made of the same resamples.
func (d *Difference) estimate(p Pair, rng *rand.Rand) {
	by := Alone(rng) // runs had their repetitions at other times
	medians := []Drawn{p.B.DrawQuantile(0.5, by), p.A.DrawQuantile(0.5, by)}
	d.Ratio = contrast(medians, 1, quotient)
	d.Apart = contrast(medians, 1, difference)
	d.Jitter = contrast([]Drawn{p.B.DrawIQR(by), p.A.DrawIQR(by)}, 1, difference)
}

// quotient and difference are figures of two cells, for contrast.
func quotient(v []float64) (low, high float64)   { return v[0] / v[1], v[0] / v[1] }
func difference(v []float64) (low, high float64) { return v[0] - v[1], v[0] - v[1] }

// test is what of a difference the verdict needs.
func (p Pair) test(rng *rand.Rand) Difference {
	floor, _ := p.A.NoiseFloor(rng)
	a, b := p.A.Pooled().Median(), p.B.Pooled().Median()
	return Difference{Ratio: Estimate{Value: b / a}, Apart: Estimate{Value: b - a}, P: RatioPValue(p.B, p.A, rng), Floor: floor}
}

// decide gives each difference its adjusted p-value and its verdict. Pairs
// without a p-value are no tests.
func decide(all []Difference, pairs []Pair, rule Rule) {
	var tests int
	p := make([]float64, len(all))
	for i, d := range all {
		if p[i] = d.P; !math.IsNaN(d.P) {
			tests++
		}
	}
	for i, adjusted := range Holm(p) {
		d := &all[i]
		d.Adjusted = adjusted
		d.Verdict = d.verdict(rule)
		switch {
		case math.IsNaN(d.P) && pairs[i].A.Len() > 0 && pairs[i].B.Len() > 0:
			d.Verdict = NotComparable
		case d.Verdict == Same && !attainable(pairs[i], rule.Alpha, tests):
			d.Verdict, d.Needed = TooFew, repetitionsFor(rule.Alpha, tests)
		}
	}
}

func (d Difference) verdict(rule Rule) Verdict {
	switch {
	case !(d.Adjusted <= rule.Alpha), math.Abs(d.Ratio.Value-1) <= d.Floor: // either may be NaN
		return Same
	case math.Abs(d.Apart.Value) < rule.Resolution:
		return Same
	case d.Ratio.Value > 1:
		return Slower
	}
	return Faster
}

// attainable says whether the least p-value of a pair could be called a
// difference, were it the smallest of so many tests.
func attainable(p Pair, alpha float64, tests int) bool {
	a, b := p.A.Len(), p.B.Len()
	return a > 0 && b > 0 && float64(tests)*leastP(a, b) <= alpha
}

// leastP is the smallest p-value of RatioPValue: one way to deal the
// repetitions of all, for equal numbers one and its mirror image, and where
// ways are drawn the share that no hit has.
func leastP(a, b int) float64 {
	ways := choices(a+b, a, permutationsMax)
	switch {
	case ways > permutationsMax:
		return 1 / float64(1+permutationsMax)
	case a == b:
		return 2 / float64(ways)
	}
	return 1 / float64(ways)
}

// repetitionsFor is the fewest repetitions of each run with which a difference
// could be called in a family of so many tests, 0 where none suffice: for the
// 1 % of skerry compare from 2000 cells on.
func repetitionsFor(alpha float64, tests int) int {
	for n := 1; ; n++ {
		switch least := leastP(n, n); {
		case float64(max(tests, 1))*least <= alpha:
			return n
		case choices(2*n, n, permutationsMax) > permutationsMax:
			return 0
		}
	}
}
