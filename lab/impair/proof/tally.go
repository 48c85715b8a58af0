package proof

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"

	"skerry.dev/skerry/lab/impair"
)

// tally is a count of packets that a link chose at random, and what chose them.
type tally struct {
	// word is "lost".
	word string
	// count of those chosen, of the packets that entered the link.
	count, packets uint64
	// chains are the stages that choose, each from a number of packets in of.
	chains []chain
	of     span
	asked  float64
}

// tallies of a direction. Behind a stage there are fewer packets than entered the
// link, by those that were dropped, and more by the copies; how many came to each
// is between the two.
func (d Direction) tallies() []tally {
	c, stages := d.Seen, d.stages()
	if c.Packets == 0 || d.LossUnknown {
		return nil
	}
	asked := stages.Together()
	passed := span{least(c.Packets, c.Lost+c.Overflowed), least(c.Packets, c.Lost) + c.Duplicated}
	every := span{c.Packets, c.Packets + c.Duplicated}
	chosen := passed // once each, so that a copy is not copied
	if len(stages) == 1 {
		chosen.most = least(c.Packets, c.Lost)
	} else {
		every.least = passed.least
	}
	lost := tally{"lost", c.Lost, c.Packets, nil, every, asked.MeanLoss()}
	duplicated := tally{"duplicated", c.Duplicated, c.Packets, nil, chosen, float64(asked.Duplicate)}
	corrupted := tally{"corrupted", c.Corrupted, c.Packets, nil, passed, float64(asked.Corrupt)}
	reordered := tally{"reordered", c.Reordered, c.Packets, nil, passed, float64(asked.Reorder)}
	for _, s := range stages {
		lost.chains = append(lost.chains, losses(s))
		duplicated.chains = append(duplicated.chains, independent(float64(s.Duplicate)))
		corrupted.chains = append(corrupted.chains, independent(float64(s.Corrupt)))
		reordered.chains = append(reordered.chains, independent(float64(s.Reorder)))
	}
	if d.CopiesUnknown {
		return []tally{lost, reordered}
	}
	return []tally{lost, duplicated, corrupted, reordered}
}

// least is n - k, and 0 where k is more.
func least(n, k uint64) uint64 { return n - min(n, k) }

// judge says what is wrong with the count at the level alpha, if anything is.
func (t tally) judge(alpha float64) string {
	if chance(t.chains, t.of, t.count) >= alpha {
		return ""
	}
	return fmt.Sprintf("%s %d of %d packets (%s), asked %s", t.word, t.count, t.packets, percent(share(t.count, t.packets)), percent(t.asked))
}

// silence bounds the probability that none of n probes arrives whole. Of stages
// with bursts one is taken as it is, the others as if they were always in their
// worse state.
func silence(stages impair.Stages, n int) float64 {
	arrives, bursts := 1.0, chain{}
	for _, s := range stages {
		arrives *= 1 - float64(s.Corrupt)
		l := losses(s)
		switch {
		case l.enter == 0:
			arrives *= 1 - l.good
		case bursts.enter == 0:
			bursts = l
		default:
			arrives *= 1 - max(l.good, l.bad)
		}
	}
	bursts.good = 1 - (1-bursts.good)*arrives
	bursts.bad = 1 - (1-bursts.bad)*arrives
	return math.Exp(bursts.all(float64(n)))
}

// twoSided is the probability that a binomial(n, p) lies at least as far out as
// k: twice the smaller of the two tails, exactly.
func twoSided(n, k uint64, p float64) float64 {
	if k > n {
		return 0
	}
	switch p {
	case 0:
		return indicator(k == 0)
	case 1:
		return indicator(k == n)
	}
	lower, upper := 1.0, 1.0
	if k < n {
		lower = mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
	}
	if k > 0 {
		upper = mathext.RegIncBeta(float64(k), float64(n-k+1), p)
	}
	return min(1, 2*min(lower, upper))
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
