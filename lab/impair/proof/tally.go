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
	// loads are the stages that choose.
	loads []load
	asked float64
}

// tallies of a direction.
func (d Direction) tallies() []tally {
	c, stages := d.Seen, d.stages()
	if c.Packets == 0 || d.LossUnknown {
		return nil
	}
	asked := stages.Together()
	lost := tally{"lost", c.Lost, c.Packets, nil, asked.MeanLoss()}
	duplicated := tally{"duplicated", c.Duplicated, c.Packets, nil, float64(asked.Duplicate)}
	corrupted := tally{"corrupted", c.Corrupted, c.Packets, nil, float64(asked.Corrupt)}
	reordered := tally{"reordered", c.Reordered, c.Packets, nil, float64(asked.Reorder)}
	for i, s := range stages {
		every, passed, once := d.met(i)
		lost.loads = append(lost.loads, load{losses(s), every})
		duplicated.loads = append(duplicated.loads, load{independent(float64(s.Duplicate)), once})
		corrupted.loads = append(corrupted.loads, load{independent(float64(s.Corrupt)), passed})
		reordered.loads = append(reordered.loads, load{independent(float64(s.Reorder)), passed})
	}
	if d.CopiesUnknown {
		return []tally{lost, reordered}
	}
	return []tally{lost, duplicated, corrupted, reordered}
}

// met says how many packets a stage has decided about: of all, whether they are
// lost; of those that it did not lose, whether they are altered; of these but the
// copies, since each is copied once, whether they are copied. Where it is not known
// how many came to a further stage, there were fewer than entered the link, by
// those that were dropped, and more by the copies.
func (d Direction) met(stage int) (every, passed, once span) {
	c := d.Seen
	passed = span{least(c.Packets, c.Lost+c.Overflowed), least(c.Packets, c.Lost) + c.Duplicated}
	switch {
	case len(d.Then) == 0:
		return span{c.Packets, c.Packets + c.Duplicated}, passed, span{passed.least, least(c.Packets, c.Lost)}
	case d.CopiesUnknown:
		return span{passed.least, c.Packets + c.Duplicated}, passed, passed
	}
	came := c.Packets
	if stage > 0 {
		came = c.Came[stage-1]
	}
	passed = span{least(came, c.Lost+c.Overflowed), came}
	return exactly(came), passed, passed
}

// least is n - k, and 0 where k is more.
func least(n, k uint64) uint64 { return n - min(n, k) }

// judge says what is wrong with the count at the level alpha, if anything is.
func (t tally) judge(alpha float64) string {
	if chance(t.loads, t.count) >= alpha {
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
