package reporttest_test

import (
	"bytes"
	"testing"

	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/report/reporttest"
)

// The run must have what it promises, or tests that rest on it prove nothing.
func TestWAN(t *testing.T) {
	in := reporttest.WAN(1, 1)
	if len(in.Results) != 36 || len(in.Experiment.Cells()) != 36 {
		t.Fatalf("%d results of %d cells", len(in.Results), len(in.Experiment.Cells()))
	}
	special := map[int]string{reporttest.Rejected: "rejected", reporttest.NoAnswer: "no answer", reporttest.NotRun: "not run"}
	for i, r := range in.Results {
		if r.Cell.ID() != in.Experiment.Cells()[i].ID() {
			t.Errorf("result %d is not of cell %d", i, i)
		}
		if r.Missing() != special[i] {
			t.Errorf("%s: %q, want %q", r.Cell, r.Missing(), special[i])
		}
	}
	again, other := reporttest.WAN(1, 1), reporttest.WAN(2, 1)
	if page(t, again) != page(t, in) || page(t, other) == page(t, in) {
		t.Error("the seed does not decide the run")
	}
	const clusterlink = 3
	slower := reporttest.WAN(1, 1.5).Results[clusterlink].Summary.Times.Median
	if ratio := float64(slower) / float64(in.Results[clusterlink].Summary.Times.Median); ratio < 1.45 || ratio > 1.55 {
		t.Errorf("slower by %v, want 1.5", ratio)
	}
}

func page(t *testing.T, in report.Input) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.HTML(&out, in); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
