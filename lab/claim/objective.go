// Package claim judges a run's figures against what its experiment asks:
// objectives, which compare figures as they are, and claims, which compare
// intervals. It is pure and reads no sample: figures come from lab/measure.
// Start at Judge and Objective.
package claim

import (
	"fmt"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
)

const errorsMetric = "errors"

// Figures are what one cell amounts to.
type Figures struct {
	Cell    experiment.Cell
	Summary measure.Summary
}

// Verdict on an objective.
type Verdict struct {
	Met bool
	// Seen is the worst figure of the cells selected, and its cell.
	Seen string
}

// Objective judges the cells that the objective selects by the worst of them. A
// cell without a figure misses every objective: no answer is no good answer.
func Objective(o experiment.Objective, figures []Figures) (Verdict, error) {
	response, share, err := o.Bound()
	if err != nil {
		return Verdict{}, fmt.Errorf("objective %s: %w", o.Metric, err)
	}
	bound := max(float64(response), float64(share))
	verdict, worst, judged := Verdict{Met: true}, -1.0, false
	for _, f := range figures {
		if !o.Selects(f.Cell) {
			continue
		}
		judged = true
		value, ok := metric(o.Metric, f.Summary)
		if !ok {
			return Verdict{Seen: fmt.Sprintf("no figure in %s", f.Cell)}, nil
		}
		if value > worst {
			worst = value
			verdict.Seen = fmt.Sprintf("%s in %s", measured(experiment.MetricUnit(o.Metric), value), f.Cell)
		}
		verdict.Met = verdict.Met && value < bound
	}
	if !judged {
		return Verdict{Seen: "no cell was run"}, nil
	}
	return verdict, nil
}

// metric is a figure in ns, or for errors a share; ok is false where the cell
// has none.
func metric(name string, s measure.Summary) (value float64, ok bool) {
	switch name {
	case errorsMetric:
		return s.ErrorShare(), s.Requests > 0
	case "first":
		return float64(s.First), s.FirstN > 0
	}
	times := map[string]time.Duration{
		"p50": s.Times.Median, "p90": s.Times.P90, "p99": s.Times.P99, "mean": s.Times.Mean, "max": s.Times.Max,
	}
	t, known := times[name]
	return float64(t), known && s.N > 0
}
