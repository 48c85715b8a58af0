package reporttest

import (
	"math"
	"math/rand/v2"
	"slices"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/report"
)

const wireBytes = 1448 // of a segment

// proven gives the cell links that did what was asked of them, one try for each
// repetition.
func proven(r *report.Result, rng *rand.Rand) {
	directions := r.Cell.Scenario.Directions()
	packets := uint64(110 * (2 + int64(r.Cell.Size)/wireBytes))
	for n := range repetitions {
		t := report.Try{Repetition: n + 1, Number: 1}
		t.Host.GapMaxNs = 40_000
		for _, d := range directions {
			lost := float64(packets) * float64(d.Loss)
			seen := impair.Counters{Packets: packets, Bytes: packets * 900, Lost: uint64(max(0, lost+math.Sqrt(lost)*rng.NormFloat64()))}
			t.Directions = append(t.Directions, proof.Direction{
				Name: d.Name(), Unit: d.Unit, Asked: d.Impairment, Seen: seen,
				Before: probe(d.Impairment, rng), After: probe(d.Impairment, rng),
			})
		}
		r.Proofs = append(r.Proofs, t)
	}
	for i, d := range directions {
		link := report.Link{Asked: impair.Direction{Name: string(d.From + " → " + d.To), Unit: d.Unit, Impairment: d.Impairment}}
		for _, t := range r.Proofs {
			link.Seen = link.Seen.Plus(t.Directions[i].Seen)
		}
		r.Links = append(r.Links, link)
	}
	if len(r.Links) > 0 && r.Cell.System == "submariner" {
		r.Links[0].Seen.Late, r.Links[0].Seen.LateMaxNs = 3, 1_240_000
	}
}

func probe(asked impair.Impairment, rng *rand.Rand) proof.Probe {
	expected := 0.98 * float64(asked.Rate)
	return proof.Probe{
		Sent: 40, Received: 40, DelayNs: int64(asked.Delay) + 8000 + rng.Int64N(20_000),
		Rate: expected * (0.995 + 0.01*rng.Float64()), RateExpected: expected,
	}
}

// drifted is the proofs of a cell whose fourth repetition was tried three times
// in vain.
func drifted(r report.Result) []report.Try {
	tries := slices.Clone(r.Proofs[:4])
	tries[3].Directions = slices.Clone(tries[3].Directions)
	tries[3].Directions[0].After.DelayNs = 5_310_000
	tries[3].Reasons = []string{"edge>cloud: delay 5.31ms after the load, asked 5ms ± 100µs; steal 0s, longest gap 40µs"}
	for number := 2; number <= 3; number++ {
		again := tries[3]
		again.Number = number
		tries = append(tries, again)
	}
	return tries
}
