package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/oracle"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/report/reporttest"
	"skerry.dev/skerry/lab/topology"
)

func TestPageNeedsNothingElse(t *testing.T) {
	page := render(t, reporttest.WAN(1, 1))
	walk(parse(t, page), func(n *html.Node) {
		if slices.Contains([]string{"script", "link", "iframe", "object", "embed", "img", "image", "base", "form"}, n.Data) {
			t.Errorf("the page has a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			refers := a.Key == "src" || a.Key == "srcset" || a.Key == "href" && !strings.HasPrefix(a.Val, "#")
			if refers || strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "url(") {
				t.Errorf("<%s %s=%q> refers to something else", n.Data, a.Key, a.Val)
			}
		}
	})
	for _, bad := range []string{"http://", "https://", "url(", "@import", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
}

func TestPageShowsEveryCell(t *testing.T) {
	in := reporttest.WAN(1, 1)
	root := parse(t, render(t, in))
	var rows []string
	walk(root, func(n *html.Node) {
		if n.Data == "tr" {
			rows = append(rows, strings.Join(cellsOf(n), "|"))
		}
	})
	for i, r := range in.Results {
		figure := fmt.Sprintf("%.3f", float64(r.Summary.Times.Median)/1e6)
		if word := map[int]string{reporttest.Rejected: "rejected", reporttest.NoAnswer: "no answer", reporttest.NotRun: "not run"}[i]; word != "" {
			figure = word
		}
		want := fmt.Sprintf("%s %s %s|%s|", r.Cell.Scenario.Name, r.Cell.System, r.Cell.Size, figure)
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, want) }) {
			t.Errorf("no row begins with %s", want)
		}
	}
}

// What a reader wants to know stands on the page, in words and figures.
func TestPageSaysWhatHappened(t *testing.T) {
	text := textOf(parse(t, render(t, reporttest.WAN(1, 1))))
	for _, want := range []string{
		// The verdict.
		"36 cells: 33 measured, 1 rejected, 1 not run, 1 no answer.",
		"3 claims: 1 holds, 1 fails (gateway-tax), 1 inconclusive (by-size).", "1 of 2 objectives missed.",
		"In 3 of 226 tried repetitions the links did not do what was asked of them; those count nowhere.",
		"✓ holds", "✗ fails", "? inconclusive", "✓ met", "✗ missed", "12 more repetitions needed",
		// What is wrong.
		"repetition 4, try 3 did not count: edge>cloud: delay 5.31ms after the load, asked 5ms ± 100µs; steal 0s",
		"10 (0.50%) of 2000 requests failed: 10 timeout", "40 connection refused", "✗ not as asked in 3 of 6 tries", "✓ as asked",
		// Provenance and how to go on.
		"14 March 2026, 09:26:53 UTC", "6.12.9-amd64", "20260314", "cubic", "4f1c2d9", "netem", "CPU governor", "4096 131072 6291456",
		"edge ↔ cloud", "delay 10ms, loss 0.08%, rate 1gbit, queue 2500KB", "skerry export DIR --csv", "boxes-edg10-1kb",
		"are files in figures/ alone",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestPageIsAccessible(t *testing.T) {
	root := parse(t, render(t, reporttest.WAN(1, 1)))
	ids, labels, level := map[string]bool{}, []string{}, 0
	walk(root, func(n *html.Node) {
		switch n.Data {
		case "table":
			if find(n, "caption") == nil {
				t.Errorf("a table has no caption: %.80s", textOf(n))
			}
		case "svg":
			if find(n, "title") == nil || find(n, "desc") == nil {
				t.Error("a figure has no title or description")
			}
		case "h1", "h2", "h3":
			next := int(n.Data[1] - '0')
			if next > level+1 {
				t.Errorf("heading %q skips a level", textOf(n))
			}
			level = next
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("id %q appears twice", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			case a.Key == "aria-labelledby":
				labels = append(labels, strings.Fields(a.Val)...)
			case a.Key == "href":
				labels = append(labels, strings.TrimPrefix(a.Val, "#"))
			}
		}
	})
	for _, l := range labels {
		if !ids[l] {
			t.Errorf("label %q is nowhere", l)
		}
	}
}

func TestHostileTextStaysText(t *testing.T) {
	const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>]]>&amp;`
	const ms = quantity.Duration(time.Millisecond)
	c := experiment.Cell{Scenario: experiment.Scenario{Name: evil}, System: evil, Workload: evil, Connection: evil}
	answered := reporttest.WAN(1, 1).Results[reporttest.Rejected+1]
	answered.Cell, answered.HopMap.Start, answered.Summary.Errors = c, evil, 1
	answered.Summary.ErrorClasses = []measure.ErrorClass{{Name: evil, Count: 1}}
	answered.Links = []report.Link{{Asked: impair.Direction{Name: evil, Impairment: impair.Impairment{Delay: ms}}}}
	answered.Uses = []report.Use{{Name: evil, Node: evil}}
	answered.Oracle = oracle.Prediction{Limit: time.Millisecond, Notes: []string{evil}}
	answered.Proofs = []report.Try{{Proof: proof.Proof{Reasons: []string{evil}}}}
	answered.Events = []report.Event{{Repetition: 1, Fault: evil}}
	in := report.Input{
		Experiment: experiment.Experiment{
			Name: evil, Description: evil, Scenarios: []experiment.Scenario{{Name: evil, Links: []experiment.Link{{From: evil, To: evil}}}},
			Topology: topology.Topology{Clusters: []topology.Cluster{{Name: evil, Nodes: []string{evil}}}},
		},
		Provenance: report.Provenance{Commit: evil, Kernel: evil, Processor: evil, Backend: evil, Facts: []report.Fact{{Name: evil, Value: evil}}},
		Results:    []report.Result{answered, {Cell: c, Rejected: evil}},
		Verdicts:   []report.Verdict{{Objective: experiment.Objective{Metric: evil, Below: evil}, Seen: evil}},
		Claims:     []claim.Judgement{{Name: evil, Statement: evil, Paper: evil, Kind: evil, Effect: evil, Why: evil}},
	}
	root := parse(t, render(t, in))
	walk(root, func(n *html.Node) {
		if n.Data == "script" || n.Data == "img" {
			t.Errorf("<%s> has become an element inside <%s>", n.Data, n.Parent.Data)
		}
	})
	if n := strings.Count(textOf(root), evil); n < 35 {
		t.Errorf("the text appears %d times as it is, want 35 or more", n)
	}
}

// Events of a timeline are told with when they were asked for, in force and undone.
func TestPageShowsEvents(t *testing.T) {
	in := reporttest.WAN(1, 1)
	in.Results = in.Results[:1]
	in.Results[0].Events = []report.Event{
		{Repetition: 1, Fault: "freeze cloud/worker", At: 2 * time.Second, Late: 1500 * time.Microsecond, Undone: 4002 * time.Millisecond},
		{Repetition: 1, At: 5 * time.Second},
	}
	var rows []string
	walk(parse(t, render(t, in)), func(n *html.Node) {
		if n.Data == "tr" {
			rows = append(rows, strings.Join(cellsOf(n), "|"))
		}
	})
	for _, want := range []string{"|1|freeze cloud/worker|2.000|1.5|4.002", "|1|links change|5.000|0.0|–"} {
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasSuffix(row, want) }) {
			t.Errorf("no row ends in %q", want)
		}
	}
}

func TestPageOfNothingSaysSo(t *testing.T) {
	text := textOf(parse(t, render(t, report.Input{Experiment: experiment.Experiment{Name: "idle"}})))
	for _, want := range []string{"No cell was run.", "nothing to show", "How to read this"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, not := range []string{"Links, proven", "Events of the timeline", "Rejected and failed", "The way of a request"} {
		if strings.Contains(text, not) {
			t.Errorf("the page has an empty section %q", not)
		}
	}
}

func TestPageOfCellsWithoutFigures(t *testing.T) {
	in := reporttest.WAN(1, 1)
	in.Results = []report.Result{in.Results[reporttest.Rejected], in.Results[reporttest.NoAnswer], in.Results[reporttest.NotRun]}
	text := textOf(parse(t, render(t, in)))
	for _, want := range []string{"3 cells: 0 measured, 1 rejected, 1 not run, 1 no answer.", "skupper: rejected", "submariner: not run"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// A run of 400 cells still makes a page that loads at once, and says what it
// left out.
func TestPageOfManyCellsIsSmall(t *testing.T) {
	wan := reporttest.WAN(1, 1)
	in := report.Input{Experiment: wan.Experiment}
	for i := range 400 {
		r := wan.Results[12+i%6]
		r.Cell.Scenario.Name, r.Cell.Threads = fmt.Sprintf("wan%d", i/40), 1+i/6
		in.Results = append(in.Results, r)
	}
	page := render(t, in)
	if limit := 5_000_000; len(page) > limit {
		t.Errorf("%d bytes, want at most %d", len(page), limit)
	}
	if n := strings.Count(page, "<svg"); n == 0 || n > 60 {
		t.Errorf("%d figures on the page, want at most 60", n)
	}
	text := textOf(parse(t, page))
	for _, want := range []string{"the page has no room for them", "more were not drawn", "more rows are in the output of skerry report DIR --json"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func render(t *testing.T, in report.Input) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.HTML(&out, in); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func parse(t *testing.T, page string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// walk visits the elements of a tree.
func walk(n *html.Node, visit func(*html.Node)) {
	if n.Type == html.ElementNode {
		visit(n)
	}
	for c := range n.ChildNodes() {
		walk(c, visit)
	}
}

func find(n *html.Node, element string) (found *html.Node) {
	walk(n, func(n *html.Node) {
		if n.Data == element {
			found = n
		}
	})
	return found
}

// cellsOf are the texts of a row's cells, spaces made one.
func cellsOf(row *html.Node) []string {
	var cells []string
	for c := range row.ChildNodes() {
		if c.Type == html.ElementNode {
			cells = append(cells, strings.Join(strings.Fields(textOf(c)), " "))
		}
	}
	return cells
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var text strings.Builder
	for c := range n.ChildNodes() {
		text.WriteString(textOf(c))
	}
	return text.String()
}

// How a workload was scaled is told for each repetition, on the page and as JSON; of one
// that was not, nothing is.
func TestScaleOfAWorkload(t *testing.T) {
	in := reporttest.WAN(1, 1)
	if text := textOf(parse(t, render(t, in))); strings.Contains(text, "autoscaled") {
		t.Error("the page tells of an autoscaled workload where there is none")
	}
	in.Results[0].Scales = []report.Scaled{
		{Repetition: 1, Scale: []report.Scale{{Pods: 1}, {At: 17 * time.Second, Pods: 3}}}, {Repetition: 2, Scale: []report.Scale{{Pods: 1}}},
	}
	text := textOf(parse(t, render(t, in)))
	for _, want := range []string{"Pods of an autoscaled workload", "1 pod, 3 from 17.0 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	var out bytes.Buffer
	if err := report.JSON(&out, in); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cells []struct {
			Scales []struct {
				Repetition int
				Pods       []struct {
					AtMs float64 `json:"at_ms"`
					Pods int
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	one := got.Cells[0].Scales
	if len(one) != 2 || one[0].Repetition != 1 || len(one[0].Pods) != 2 || one[0].Pods[1].AtMs != 17_000 || one[0].Pods[1].Pods != 3 || got.Cells[1].Scales != nil {
		t.Errorf("JSON tells %+v", got.Cells[:2])
	}
}
