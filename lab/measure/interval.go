package measure

// confidence is the least probability with which an Interval holds the median.
const confidence = 0.95

// MedianInterval is a distribution-free interval of the median from two order
// statistics: low is the value of rank k and high that of rank n+1−k (from 1),
// with the largest k for which
//
//	coverage = P(k ≤ B ≤ n−k) ≥ 0.95,  B ~ Binomial(n, 1/2),
//
// because B, the number of values below the median, decides on which side of
// it rank k falls. The coverage is exact for independent values from one
// continuous distribution, and a lower bound where values tie. Fewer than six
// values have no such interval: ok is false. Source: Le Boudec, Performance
// Evaluation of Computer and Communication Systems (2010), theorem 2.1.
func (s Sorted) MedianInterval() (low, high, coverage float64, ok bool) {
	k, coverage := medianRank(len(s))
	if k == 0 {
		return 0, 0, 0, false
	}
	return s[k-1], s[len(s)-k], coverage, true
}

// negligible is a term, relative to the middle one, that changes no sum of a
// float64 even a million times over.
const negligible = 1e-30

// medianRank is k and its coverage, or 0 where no k suffices. It sums the
// binomial's terms from the middle outwards, each relative to the middle one
// (P(B = j−1) / P(B = j) = j / (n−j+1)), so that nothing overflows. The
// coverage is right to ten digits for n up to 1e6.
func medianRank(n int) (k int, coverage float64) {
	middle := float64(1 + n%2) // an odd n has two middle terms
	total := middle
	for j, term := n/2, 1.0; j > 0 && term > negligible; j-- {
		term *= float64(j) / float64(n-j+1)
		total += 2 * term
	}
	covered, term := middle, 1.0
	for k = n / 2; k > 0 && covered < confidence*total; k-- {
		term *= float64(k) / float64(n-k+1)
		covered += 2 * term
	}
	return k, covered / total
}
