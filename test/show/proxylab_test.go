package main

import (
	"slices"
	"testing"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
)

// result is of a cell that so many requests were answered in.
func result(scenario, system, ratio string, answered int) report.Result {
	return report.Result{
		Cell: experiment.Cell{
			Scenario: experiment.Scenario{Name: scenario}, System: system, Sender: experiment.Sender{Ratio: ratio},
		},
		Summary: measure.Summary{Requests: answered + 3, Errors: 3},
	}
}

func TestServed(t *testing.T) {
	rejected, open := result("near", "kube-proxy", "1:0", 999), result("near", "ewma", "1:0", 999)
	rejected.Rejected, open.Cell.Rate = "its link drifted", 300
	got := served([]report.Result{
		result("near", "kube-proxy", "1:1", 90), result("near", costSystem, "1:1", 100),
		result("near", costSystem, "1:0", 50), result("near", "rap", "1:0", 51), rejected, open,
		result("far", costSystem, "1:1", 10), // alone
		result("wide", "rap", "1:1", 10),     // without cost
	})
	if want := []contested{{"near 1:1", costSystem}, {"near 1:0", "rap"}}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
