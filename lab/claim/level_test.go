package claim_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
)

// TestLevel holds how often a claim over many comparisons is decided by chance: whether
// what it says is enough of one or must be so of every one.
func TestLevel(t *testing.T) {
	const runs, many, repetitions, spread = 100, 6, 4, 0.03
	at := func(c experiment.Claim, how string) experiment.Claim { c.At = how; return c }
	below := experiment.Claim{Kind: "bound", Metric: "rate", Range: experiment.Range{Below: "100/s"}}
	for name, c := range map[string]struct {
		claim experiment.Claim
		// worst is one comparison's rate in truth, and others that of all others.
		worst, others float64
		result        claim.Result
		least, most   float64
	}{
		"holds of every but one, which lies at the bound": {below, 100, 50, claim.Holds, 0, 0.05},
		"holds of every": {below, 85, 85, claim.Holds, 0.95, 1},
		"all lie at the bound, and one seems to fail":     {below, 100, 100, claim.Fails, 0, 0.05},
		"fails of every but one, which lies at the bound": {at(below, "some"), 100, 200, claim.Fails, 0, 0.05},
		"fails of every": {at(below, "some"), 118, 118, claim.Fails, 0.95, 1},
		"all lie at the bound, and one seems to hold": {at(below, "some"), 100, 100, claim.Holds, 0, 0.05},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		decided := 0.0
		for range runs {
			var cells []claim.Cell
			for i := range many {
				truth := c.others
				if i == 0 {
					truth = c.worst
				}
				one := claim.Cell{Cell: cell("edg"+strconv.Itoa(i), "a"), Values: measure.Repeat(nil), First: measure.Repeat(nil)}
				for range repetitions {
					one.Rates = append(one.Rates, truth*math.Exp(spread*rng.NormFloat64()))
				}
				cells = append(cells, one)
			}
			got, err := claim.Judge([]experiment.Claim{c.claim}, cells)
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Result == c.result {
				decided++
			}
		}
		if share := decided / runs; share < c.least || share > c.most {
			t.Errorf("%s: %s in %.1f %% of runs, want %.0f to %.0f", name, c.result, 100*share, 100*c.least, 100*c.most)
		} else {
			t.Logf("%s: %s in %.1f %% of runs", name, c.result, 100*share)
		}
	}
}
