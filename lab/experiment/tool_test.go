package experiment_test

import (
	"testing"
	"time"

	"skerry.dev/skerry/lab/experiment"
)

// A tool is a factor like others, but that Skerry's own load leaves the cells as
// they were before there were tools.
func TestTools(t *testing.T) {
	e := read(t, "testdata/quickstart.yaml")
	before := e.Cells()
	e.Load.Tool = experiment.Tools()
	cells := e.Cells()
	if len(cells) != 6*len(before) {
		t.Fatalf("%d cells of %d and six tools", len(cells), len(before))
	}
	labels := map[string]bool{}
	for i, c := range cells {
		own, tool := before[i/6], experiment.Tools()[i%6]
		if c.SentBy() != tool || (c.Tool == "") != (tool == experiment.ToolSkerry) || c.Workload != own.Workload {
			t.Fatalf("cell %d is %s by %s, want %s", i, c, c.SentBy(), tool)
		}
		if c.Tool == "" && (c.ID() != own.ID() || c.String() != own.String()) {
			t.Errorf("%s (%s) was %s (%s)", c, c.ID(), own, own.ID())
		}
		labels[c.String()] = true
	}
	if len(labels) != len(cells) {
		t.Errorf("%d labels of %d cells", len(labels), len(cells))
	}
	if got, want := cells[1].String(), "lcl/direct/payload-echo 1KB 1 thread by ab kept"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for tool, want := range map[string]time.Duration{"": 0, "ab": 0, "hey": 0, "wrk": 0, "jmeter": 2 * time.Second, "k6": 500 * time.Millisecond} {
		c := before[0]
		c.Tool = tool
		if got := e.Estimate(c) - e.Estimate(before[0]); got != want {
			t.Errorf("%q takes %v to start, want %v", tool, got, want)
		}
	}
}

// Cells by different tools are compared only where a claim names the tools.
func TestClaimsOfTools(t *testing.T) {
	e := read(t, "testdata/quickstart.yaml")
	e.Load.Tool = []string{"skerry", "wrk"}
	cells := e.Cells()
	own, wrk := &experiment.Selector{Tool: []string{"skerry"}}, &experiment.Selector{Tool: []string{"wrk"}}
	members, _ := experiment.Claim{Kind: experiment.KindRatio, Of: wrk, To: own}.Members(cells)
	if len(members) != len(cells)/2 {
		t.Errorf("%d comparisons of %d cells", len(members), len(cells))
	}
	for _, m := range members {
		of, to := cells[m.Points[0].Of.Cell], cells[m.Points[0].To.Cell]
		if of.Tool != "wrk" || to.Tool != "" || of.System != to.System || of.Size != to.Size {
			t.Errorf("%s is compared with %s", of, to)
		}
	}
	direct, gate := &experiment.Selector{System: []string{"direct"}}, &experiment.Selector{System: []string{"haproxy-mtls"}}
	members, _ = experiment.Claim{Kind: experiment.KindRatio, Of: direct, To: gate}.Members(cells)
	for _, m := range members {
		if of, to := cells[m.Points[0].Of.Cell], cells[m.Points[0].To.Cell]; of.Tool != to.Tool {
			t.Errorf("%s is compared with %s", of, to)
		}
	}
}
