package claim_test

import (
	"testing"
	"time"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
)

// cell has a label of "SCENARIO/SYSTEM/hello-world 1 thread kept".
func cell(scenario, system string) experiment.Cell {
	return experiment.Cell{
		Scenario: experiment.Scenario{Name: scenario}, System: system, Workload: "hello-world", Threads: 1, Connection: "kept",
	}
}

// answered is a summary of 100 requests, a number of which failed.
func answered(median time.Duration, errors int) measure.Summary {
	return measure.Summary{
		Requests: 100, Errors: errors, N: 100 - errors, First: 3 * median, FirstN: 1,
		Times: measure.Times{Median: median, P90: 2 * median, P99: 4 * median, Mean: median + 1, Max: 9 * median},
	}
}

func TestObjective(t *testing.T) {
	const ms = time.Millisecond
	near := claim.Figures{Cell: cell("lcl", "direct"), Summary: answered(1*ms, 0)}
	far := claim.Figures{Cell: cell("edg10", "direct"), Summary: answered(10*ms, 2)}
	gate := claim.Figures{Cell: cell("edg10", "gate"), Summary: answered(30*ms, 0)}
	silent := claim.Figures{Cell: cell("edg20", "direct"), Summary: measure.Summary{Requests: 100, Errors: 100}}
	absent := claim.Figures{Cell: cell("edg50", "direct")}
	all := []claim.Figures{near, far, gate}
	const label = "/hello-world 1 thread kept"
	cases := []struct {
		name      string
		objective experiment.Objective
		figures   []claim.Figures
		met       bool
		seen      string
	}{
		{"the worst cell is judged", experiment.Objective{Metric: "p50", Below: "31ms"}, all, true, "30ms in edg10/gate" + label},
		{"the bound itself is not below it", experiment.Objective{Metric: "p50", Below: "30ms"}, all, false, "30ms in edg10/gate" + label},
		{"one cell misses", experiment.Objective{Metric: "p50", Below: "20ms"}, []claim.Figures{gate, near}, false, "30ms in edg10/gate" + label},
		{"systems select", experiment.Objective{Metric: "p50", Below: "11ms", Systems: []string{"direct"}}, all, true, "10ms in edg10/direct" + label},
		{"scenarios select", experiment.Objective{Metric: "p50", Below: "2ms", Scenarios: []string{"lcl"}}, all, true, "1ms in lcl/direct" + label},
		{"p90", experiment.Objective{Metric: "p90", Below: "1h"}, []claim.Figures{far}, true, "20ms in edg10/direct" + label},
		{"p99", experiment.Objective{Metric: "p99", Below: "1h"}, []claim.Figures{far}, true, "40ms in edg10/direct" + label},
		{"max", experiment.Objective{Metric: "max", Below: "1h"}, []claim.Figures{far}, true, "90ms in edg10/direct" + label},
		{"mean, in whole microseconds", experiment.Objective{Metric: "mean", Below: "1h"}, []claim.Figures{far}, true, "10ms in edg10/direct" + label},
		{"first", experiment.Objective{Metric: "first", Below: "1h"}, []claim.Figures{far}, true, "30ms in edg10/direct" + label},
		{"errors", experiment.Objective{Metric: "errors", Below: "3%"}, all, true, "2% in edg10/direct" + label},
		{"errors at the bound", experiment.Objective{Metric: "errors", Below: "2%"}, all, false, "2% in edg10/direct" + label},
		{"no errors at all", experiment.Objective{Metric: "errors", Below: "1%"}, []claim.Figures{near}, true, "0% in lcl/direct" + label},
		{"every request failed", experiment.Objective{Metric: "p50", Below: "1h"}, []claim.Figures{near, silent}, false, "no figure in edg20/direct" + label},
		{"every request failed, and errors are judged", experiment.Objective{Metric: "errors", Below: "100%"}, []claim.Figures{silent}, false, "100% in edg20/direct" + label},
		{"a cell that was not run", experiment.Objective{Metric: "errors", Below: "1%"}, []claim.Figures{near, absent}, false, "no figure in edg50/direct" + label},
		{"no first request was answered", experiment.Objective{Metric: "first", Below: "1h"}, []claim.Figures{silent}, false, "no figure in edg20/direct" + label},
		{"nothing selected", experiment.Objective{Metric: "p50", Below: "1h", Systems: []string{"other"}}, all, false, "no cell was run"},
		{"a metric that there is not", experiment.Objective{Metric: "p95", Below: "1h"}, all, false, "no figure in lcl/direct" + label},
	}
	for _, c := range cases {
		got, err := claim.Objective(c.objective, c.figures)
		if err != nil || got.Met != c.met || got.Seen != c.seen {
			t.Errorf("%s: got %v %q, %v; want %v %q", c.name, got.Met, got.Seen, err, c.met, c.seen)
		}
	}
	for _, below := range []string{"", "soon", "0ms", "5%"} {
		if _, err := claim.Objective(experiment.Objective{Metric: "p50", Below: below}, all); err == nil {
			t.Errorf("below %q is taken", below)
		}
	}
}
