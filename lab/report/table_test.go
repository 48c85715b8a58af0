package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report/terminal"
	"skerry.dev/skerry/lab/topology"
)

const ms = quantity.Duration(time.Millisecond)

// small is four cells with figures that a reader can follow.
func small() Input {
	c := experiment.Cell{
		Scenario: experiment.Scenario{Name: "edg10"}, System: "direct", Workload: "payload-echo", Size: 1000,
		Threads: 8, Iterations: 100, Connection: "kept", Timeout: 30_000 * ms,
	}
	with := func(system string, threads int) experiment.Cell {
		c.System, c.Threads = system, threads
		return c
	}
	answered := measure.Summary{
		Requests: 100, N: 99, First: 30 * time.Millisecond, FirstN: 1,
		Times: measure.Times{
			Median: 10_250 * time.Microsecond, P90: 11 * time.Millisecond, P99: 12_004 * time.Microsecond,
			Mean: 10_300 * time.Microsecond, IQRMean: 10_260 * time.Microsecond, Max: 13 * time.Millisecond,
			Box: measure.Box{Low: 10.1e6, Q1: 10.2e6, Median: 10.25e6, Q3: 10.4e6, High: 10.7e6, OutlierCount: 1, Outliers: []float64{13e6}},
		},
	}
	few := answered
	few.Requests, few.N, few.Errors = 8, 5, 2
	few.ErrorClasses = []measure.ErrorClass{{Name: "timeout", Count: 1}, {Name: "status 503", Count: 1}}
	estimate := measure.Estimate{Value: 10.25e6, Low: 10.2e6, High: 10.3e6, N: 99, Repetitions: 10}
	alone := measure.Estimate{Value: 10.25e6, Low: 10.1e6, High: 10.9e6, N: 5, Repetitions: 1, RequestsOnly: true}
	return Input{
		Experiment: experiment.Experiment{Name: "small"},
		Results: []Result{
			{Cell: with("direct", 1), Summary: answered, Median: estimate},
			{Cell: with("direct", 8), Summary: few, Median: alone},
			{Cell: with("skupper", 1), Summary: answered, Rejected: "link a>b fell behind"},
			{Cell: with("skupper", 8), Summary: measure.Summary{
				Requests: 4, Errors: 4, ErrorClasses: []measure.ErrorClass{{Name: "refused", Count: 4}},
			}},
		},
		Claims: []claim.Judgement{
			{Name: "direct-first", Statement: "direct < skupper", Kind: "ORDER", Result: claim.Holds, Effect: "0.9 [0.8, 0.95]"},
			{Name: "by-threads", Statement: "skupper at 8 threads below 1s", Kind: "BOUND", Result: claim.Inconclusive, Why: "no answer"},
		},
		Verdicts: []Verdict{{
			Objective: experiment.Objective{Metric: "p99", Below: "12ms", Systems: []string{"direct"}, Scenarios: []string{"edg10"}},
			Seen:      "12.00 ms (edg10, direct, threads 1)",
		}},
	}
}

const smallTable = `small: response time in ms, median with its 95% interval over repetitions
all cells: payload-echo, 1KB, think 0s, protocol http/1.1, connection kept, iterations 100, warmup 0, timeout 30s, unit packet

scenario  system   threads  median ms  95% interval ms  p99 ms  first ms      errors   n
edg10     direct   1            10.25   [10.20, 10.30]   12.00     30.00           0  99
edg10     direct   8            10.25  [10.10, 10.90]*   12.00     30.00   2 (25.0%)   5
edg10     skupper  1         rejected                –       –         –           –   –
edg10     skupper  8        no answer                –       –         –  4 (100.0%)   0

* one repetition: the interval knows how requests differ, not how repetitions do

edg10, direct, threads 8: errors: 1 timeout, 1 status 503
edg10, skupper, threads 1: rejected: link a>b fell behind
edg10, skupper, threads 8: errors: 4 refused

claim direct-first holds: direct < skupper; 0.9 [0.8, 0.95]
claim by-threads inconclusive: skupper at 8 threads below 1s
  no answer
objective missed: p99 below 12ms (system direct; scenario edg10); 12.00 ms (edg10, direct, threads 1)
`

func TestTable(t *testing.T) {
	if got := printed(t, small(), false); got != smallTable {
		t.Errorf("got:\n%s\nwant:\n%s", got, smallTable)
	}
}

func TestFewRepetitionsAreMarked(t *testing.T) {
	in := small()
	in.Results[0].Median.Repetitions = 9
	got := printed(t, in, false)
	for _, want := range []string{" [10.20, 10.30]† ", "\n† fewer than 10 repetitions: the interval is the wider for it\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A tool's total has no interval, and says why; the tools of a run are told apart.
func TestTotalIsMarked(t *testing.T) {
	in := small()
	in.Results = in.Results[:2]
	in.Results[1].Cell.Threads, in.Results[1].Cell.Tool = 1, experiment.ToolWrk
	in.Results[1].Total, in.Results[1].Median = true, measure.Estimate{}
	in.Results[1].Summary.FirstN, in.Results[1].Summary.Times.IQRMean = 0, 0
	got := printed(t, in, false)
	for _, want := range []string{
		"scenario  system  tool    median ms  95% interval ms  p99 ms  first ms     errors   n\n",
		"edg10     direct  skerry      10.25   [10.20, 10.30]   12.00     30.00          0  99\n",
		"edg10     direct  wrk         10.25               –‡   12.00         –  2 (25.0%)   5\n",
		"\n‡ a total of the load's tool, which keeps no requests: medians of its figures over repetitions, without an interval\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if row := rowOf(in.Results[1], 2); row.IQRMean != noFigure || row.Mean == noFigure {
		t.Errorf("mean %s, of the middle half %s", row.Mean, row.IQRMean)
	}
	var csv, document strings.Builder
	if err := errors.Join(CellsCSV(&csv, in), JSON(&document, in)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{",skerry,http/1.1,kept,0,100,0,99,10.25,10.2,10.3,", ",wrk,http/1.1,kept,0,8,2,5,10.25,,,11,12.004,13,10.3,,,"} {
		if !strings.Contains(csv.String(), want) {
			t.Errorf("no %q in\n%s", want, csv.String())
		}
	}
	if n := strings.Count(document.String(), `"total": true`); n != 1 || strings.Count(document.String(), "iqr_mean_ms") != 1 || !strings.Contains(document.String(), `"tool": "wrk"`) {
		t.Errorf("%d totals in\n%s", n, document.String())
	}
	figures, _ := Figures(in)
	for _, f := range figures {
		var svg strings.Builder
		if err := f.WriteSVG(&svg); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if total := strings.HasSuffix(f.Name, "wrk"); f.Kind == KindBoxes && strings.Contains(svg.String(), wordTotal) != total {
			t.Errorf("%s: box of a total: %t", f.Name, !total)
		}
	}
}

func TestWhatIsWrongStandsOut(t *testing.T) {
	got := printed(t, small(), true)
	for _, want := range []string{"edg10     skupper  1         rejected", "claim by-threads inconclusive", "objective missed"} {
		if !strings.Contains(got, string(terminal.Marked)+want) {
			t.Errorf("%q does not stand out:\n%q", want, got)
		}
	}
	if strings.Contains(got, string(terminal.Marked)+"claim direct-first") {
		t.Errorf("a claim that holds stands out:\n%q", got)
	}
}

func TestTableKeepsMicrosecondsOfFastCells(t *testing.T) {
	in := small()
	in.Results[0].Summary.Times.Median = 149_400 * time.Nanosecond
	got := printed(t, in, false)
	for _, want := range []string{" 0.149 ", " 10.250 "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestTableOfNothing(t *testing.T) {
	got := printed(t, Input{Experiment: experiment.Experiment{Name: "idle"}}, false)
	if want := "idle: response time in ms, median with its 95% interval over repetitions\nno cell was run\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func printed(t *testing.T, in Input, colour bool) string {
	t.Helper()
	var out bytes.Buffer
	if err := Table(&out, in, colour); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestJSONMirrorsTheTable(t *testing.T) {
	var out bytes.Buffer
	in := small()
	in.Experiment.Topology.Clusters = []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}}
	if err := JSON(&out, in); err != nil {
		t.Fatal(err)
	}
	var got document
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Cells) != 4 || len(got.Objectives) != 1 || got.Objectives[0].Met || got.Provenance.Congestion != "cubic" {
		t.Fatalf("got %+v", got)
	}
	if len(got.Claims) != 2 || got.Claims[1].Result != claim.Inconclusive || got.Claims[0].Kind != "ORDER" {
		t.Errorf("claims: %+v", got.Claims)
	}
	measured, few, rejected, silent := got.Cells[0], got.Cells[1], got.Cells[2], got.Cells[3]
	if measured.Times == nil || measured.Times.MedianMs != 10.25 || *measured.Times.Interval != (interval{10.2, 10.3, 10, false}) || *measured.FirstMs != 30 {
		t.Errorf("measured cell: %+v", measured)
	}
	if !few.Times.Interval.RequestsOnly || few.Errors != 2 || few.Classes[1] != (errorClass{"status 503", 1}) || few.Threads != 8 {
		t.Errorf("cell of five requests: %+v", few)
	}
	if rejected.Rejected != "link a>b fell behind" || rejected.Times != nil || rejected.N != 0 || rejected.FirstMs != nil {
		t.Errorf("figures of a rejected cell are shown: %+v", rejected)
	}
	if silent.Times != nil || silent.FirstMs != nil || silent.Errors != 4 || silent.Requests != 4 {
		t.Errorf("cell without an answer: %+v", silent)
	}
}

func TestJSONOfNothingHasAnEmptyList(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, Input{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"cells": []`) {
		t.Errorf("got %s", out.String())
	}
}

func TestPercentKeepsTwoDigits(t *testing.T) {
	for share, want := range map[float64]string{0: "0.0%", 0.0008: "0.080%", 0.0151: "1.5%", 0.5: "50.0%", 1: "100.0%", 1e-12: "0.000000%"} {
		if got := percent(share); got != want {
			t.Errorf("%v: got %s, want %s", share, got, want)
		}
	}
}

func TestCellThatThisMachineCannotRun(t *testing.T) {
	in := small()
	in.Results = []Result{{Cell: in.Results[0].Cell, Lacks: "6 cores, 2 are here"}}
	got := printed(t, in, false)
	for _, want := range []string{" not runnable here ", "edg10, direct: not runnable here: 6 cores, 2 are here\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
