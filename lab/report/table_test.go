package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
)

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
			Interval: measure.Interval{Low: 10_200 * time.Microsecond, High: 10_300 * time.Microsecond, Coverage: 0.954},
			Box:      measure.Box{Low: 10.1e6, Q1: 10.2e6, Median: 10.25e6, Q3: 10.4e6, High: 10.7e6, OutlierCount: 1, Outliers: []float64{13e6}},
		},
	}
	few := answered
	few.Requests, few.N, few.Errors = 8, 5, 2
	few.ErrorClasses = []measure.ErrorClass{{Name: "timeout", Count: 1}, {Name: "status 503", Count: 1}}
	few.Times.Interval = measure.Interval{}
	return Input{
		Experiment: experiment.Experiment{Name: "small"},
		Results: []Result{
			{Cell: with("direct", 1), Summary: answered},
			{Cell: with("direct", 8), Summary: few},
			{Cell: with("skupper", 1), Summary: answered, Rejected: "link a>b fell behind"},
			{Cell: with("skupper", 8), Summary: measure.Summary{
				Requests: 4, Errors: 4, ErrorClasses: []measure.ErrorClass{{Name: "refused", Count: 4}},
			}},
		},
		Verdicts: []Verdict{{
			Objective: experiment.Objective{Metric: "p99", Below: "12ms", Systems: []string{"direct"}, Scenarios: []string{"edg10"}},
			Seen:      "12.00 ms (edg10, direct, threads 1)",
		}},
	}
}

const smallTable = `small: response time in ms, median with its 95% interval
all cells: payload-echo, 1KB, think 0s, connection kept, iterations 100, warmup 0, timeout 30s, unit packet

scenario  system   threads  median ms  95% interval ms  p99 ms  first ms      errors   n
edg10     direct   1            10.25   [10.20, 10.30]   12.00     30.00           0  99
edg10     direct   8            10.25            n < 6   12.00     30.00   2 (25.0%)   5
edg10     skupper  1         rejected                –       –         –           –   –
edg10     skupper  8        no answer                –       –         –  4 (100.0%)   0

edg10, direct, threads 8: errors: 1 timeout, 1 status 503
edg10, skupper, threads 1: rejected: link a>b fell behind
edg10, skupper, threads 8: errors: 4 refused

objective missed: p99 below 12ms (system direct; scenario edg10); 12.00 ms (edg10, direct, threads 1)
`

func TestTable(t *testing.T) {
	if got := table(t, small(), false); got != smallTable {
		t.Errorf("got:\n%s\nwant:\n%s", got, smallTable)
	}
}

func TestTableInColourSaysTheSame(t *testing.T) {
	got := table(t, small(), true)
	if !strings.Contains(got, ansiYellow+"edg10     skupper  1         rejected") {
		t.Errorf("the rejected cell does not stand out:\n%q", got)
	}
	if plain := strings.NewReplacer(ansiBold, "", ansiYellow, "", ansiReset, "").Replace(got); plain != smallTable {
		t.Errorf("without its colours:\n%s", plain)
	}
}

func TestTableKeepsMicrosecondsOfFastCells(t *testing.T) {
	in := small()
	in.Results[0].Summary.Times.Median = 149_400 * time.Nanosecond
	got := table(t, in, false)
	for _, want := range []string{" 0.149 ", " 10.250 "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestTableOfNothing(t *testing.T) {
	got := table(t, Input{Experiment: experiment.Experiment{Name: "idle"}}, false)
	if want := "idle: response time in ms, median with its 95% interval\nno cell was run\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTableDoesNotLetServersSteerTheTerminal(t *testing.T) {
	in := small()
	in.Results[1].Summary.ErrorClasses[0].Name = "\x1b[2J\x1b]0;owned\a\r\nforged line"
	got := table(t, in, false)
	if strings.ContainsAny(got, "\x1b\a\r") || strings.Contains(got, "\nforged") {
		t.Errorf("control characters reach the terminal: %q", got)
	}
}

func table(t *testing.T, in Input, colour bool) string {
	t.Helper()
	var out bytes.Buffer
	if err := Table(&out, in, colour); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestJSONMirrorsTheTable(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, small()); err != nil {
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
	measured, few, rejected, silent := got.Cells[0], got.Cells[1], got.Cells[2], got.Cells[3]
	if measured.Times == nil || measured.Times.MedianMs != 10.25 || *measured.Times.Interval != (interval{10.2, 10.3, 0.954}) || *measured.FirstMs != 30 {
		t.Errorf("measured cell: %+v", measured)
	}
	if few.Times.Interval != nil || few.Errors != 2 || few.Classes[1] != (errorClass{"status 503", 1}) || few.Threads != 8 {
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
