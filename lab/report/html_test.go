package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/topology"
)

func TestPageNeedsNothingElse(t *testing.T) {
	page := render(t, wan())
	walk(parse(t, page), func(n *html.Node) {
		if slices.Contains([]string{"script", "link", "iframe", "object", "embed", "img", "image", "base", "form"}, n.Data) {
			t.Errorf("the page has a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || a.Key == "srcset" || strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "url(") {
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
	in := wan()
	root := parse(t, render(t, in))
	var rows []string
	walk(root, func(n *html.Node) {
		if n.Data == "tr" {
			rows = append(rows, strings.Join(cellsOf(n), "|"))
		}
	})
	for _, r := range in.Results {
		start := strings.Join([]string{r.Cell.Scenario.Name, r.Cell.System, r.Cell.Size.String(), ""}, "|")
		want := start + milliseconds(r.Summary.Times.Median, 3) + "|"
		if word := r.missing(); word != "" {
			want = start + word + "|"
		}
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, want) }) {
			t.Errorf("no row begins with %s", want)
		}
	}
	text := textOf(root)
	for _, want := range []string{
		"36 cells: 33 measured, 1 rejected, 1 not run, 1 no answer; 1 of 2 objectives missed.",
		"probed 5.31 ms after the cell", "5 (0.50%) of 1000 requests failed: 5 timeout", "40 connection refused",
		"14 March 2026, 09:26:53 UTC", "6.12.9-amd64", "20260314", "cubic", "4f1c2d9",
		"✓ met", "✗ missed", "edge ↔ cloud", "delay 10ms, loss 0.08%, rate 1gbit, queue 2500KB",
		"edge/gateway ──(5ms, loss 0.04%)── cloud/gateway", "1.240",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestPageIsAccessible(t *testing.T) {
	root := parse(t, render(t, wan()))
	ids, labels, panels := map[string]bool{}, []string{}, 0
	walk(root, func(n *html.Node) {
		switch n.Data {
		case "table":
			if find(n, "caption") == nil {
				t.Errorf("a table has no caption: %.80s", textOf(n))
			}
		case "svg":
			panels++
			if find(n, "title") == nil || find(n, "desc") == nil {
				t.Error("a figure has no title or description")
			}
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("id %q appears twice", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			case a.Key == "aria-labelledby":
				labels = append(labels, strings.Fields(a.Val)...)
			}
		}
	})
	for _, l := range labels {
		if !ids[l] {
			t.Errorf("label %q is nowhere", l)
		}
	}
	if panels != 9 {
		t.Errorf("%d panels, want one for each of 3 sizes and 3 scenarios", panels)
	}
}

func TestFiguresAreWellFormedAndFollowThePagesColour(t *testing.T) {
	all, err := figures(wan().Results)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, p := range f.Panels {
			d := xml.NewDecoder(strings.NewReader(string(p.SVG)))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s, %s: %v", f.Title, p.Title, err)
				}
			}
			if svg := string(p.SVG); strings.Contains(svg, "#000000") || strings.Contains(svg, "#FFFFFF") {
				t.Errorf("%s, %s has black or white of its own", f.Title, p.Title)
			}
		}
	}
}

func TestFiguresAreDescribedInWords(t *testing.T) {
	results := small().Results
	want := "direct median 10.25, half of all between 10.20 and 10.40; skupper rejected."
	if got := describe([]Result{results[0], results[2]}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHostileTextStaysText(t *testing.T) {
	const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>]]>&amp;`
	c := experiment.Cell{Scenario: experiment.Scenario{Name: evil}, System: evil, Workload: evil, Connection: evil}
	answered := result(c, 0, newRand())
	answered.HopMap, answered.Summary.Errors = evil, 1
	answered.Summary.ErrorClasses = []measure.ErrorClass{{Name: evil, Count: 1}}
	answered.Links = []Link{{Asked: impair.Direction{Name: evil}}}
	in := Input{
		Experiment: experiment.Experiment{
			Name: evil, Description: evil, Scenarios: []experiment.Scenario{{Name: evil, Links: []experiment.Link{{From: evil, To: evil}}}},
			Topology: topology.Topology{Clusters: []topology.Cluster{{Name: evil, Nodes: []string{evil}}}},
		},
		Provenance: Provenance{Commit: evil, Kernel: evil, Processor: evil},
		Results:    []Result{answered, {Cell: c, Rejected: evil}},
		Verdicts:   []Verdict{{Objective: experiment.Objective{Metric: evil, Below: evil}, Seen: evil}},
	}
	root := parse(t, render(t, in))
	walk(root, func(n *html.Node) {
		if n.Data == "script" || n.Data == "img" {
			t.Errorf("<%s> has become an element inside <%s>", n.Data, n.Parent.Data)
		}
	})
	if n := strings.Count(textOf(root), evil); n < 15 {
		t.Errorf("the text appears %d times as it is, want 15 or more", n)
	}
}

func TestPageOfNothingSaysSo(t *testing.T) {
	text := textOf(parse(t, render(t, Input{Experiment: experiment.Experiment{Name: "idle"}})))
	for _, want := range []string{"No cell was run.", "nothing to show", "How to read this"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestPageOfCellsWithoutFigures(t *testing.T) {
	in := small()
	in.Results = in.Results[2:]
	text := textOf(parse(t, render(t, in)))
	for _, want := range []string{"2 cells: 0 measured, 1 rejected, 1 no answer", "skupper rejected.", "skupper no answer."} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestPageOfTwoHundredCellsIsSmall(t *testing.T) {
	in, rng := Input{Experiment: experiment.Experiment{Name: "large"}}, newRand()
	for i := range 200 {
		c := experiment.Cell{
			Scenario: scenario(fmt.Sprintf("wan%d", i/20), ms, 0.001), System: fmt.Sprintf("system%d", i%4),
			Workload: "payload-echo", Threads: 1 + i/4%5, Iterations: 500, Connection: "kept",
		}
		in.Results = append(in.Results, result(c, i%4, rng))
	}
	page := render(t, in)
	if limit := 5_000_000; len(page) > limit {
		t.Errorf("%d bytes, want at most %d", len(page), limit)
	}
	if n := strings.Count(page, "<svg"); n != 50 {
		t.Errorf("%d panels, want 50", n)
	}
}

func render(t *testing.T, in Input) string {
	t.Helper()
	var out bytes.Buffer
	if err := HTML(&out, in); err != nil {
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

func cellsOf(row *html.Node) []string {
	var cells []string
	for c := range row.ChildNodes() {
		if c.Type == html.ElementNode {
			cells = append(cells, textOf(c))
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
