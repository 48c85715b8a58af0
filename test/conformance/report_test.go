package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// reported is a report of ginkgo's, much shortened.
const reported = `[{
  "SuiteDescription": "Kubernetes e2e suite",
  "SpecReports": [
    {"ContainerHierarchyTexts": null, "LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
    {"ContainerHierarchyTexts": ["[sig-network] DNS"], "LeafNodeType": "It", "LeafNodeText": "should  answer [Conformance]", "State": "passed", "RunTime": 2000000000},
    {"ContainerHierarchyTexts": ["[sig-network] Services"], "LeafNodeType": "It", "LeafNodeText": "should serve [Conformance]", "State": "failed", "RunTime": 3000000000,
     "Failure": {"Message": "timed out\n  after 5 minutes"}},
    {"ContainerHierarchyTexts": ["[sig-network] Services"], "LeafNodeType": "It", "LeafNodeText": "should linger [Slow] [Conformance]", "State": "skipped"},
    {"ContainerHierarchyTexts": ["[sig-network] Services"], "LeafNodeType": "It", "LeafNodeText": "should not matter", "State": "skipped"},
    {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "should run [Conformance]", "State": "timedout", "RunTime": 1000000000}
  ]
}]`

func TestReadReport(t *testing.T) {
	const answer, serve, linger, runs = "[sig-network] DNS should answer [Conformance]", "[sig-network] Services should serve [Conformance]",
		"[sig-network] Services should linger [Slow] [Conformance]", "[sig-node] Pods should run [Conformance]"
	for _, c := range []struct {
		list list
		want []ran
	}{
		{wider, []ran{
			{result{pass, answer, ""}, 2 * time.Second},
			{result{fail, serve, "timed out after 5 minutes"}, 3 * time.Second},
			{result{skip, linger, "it waits for minutes"}, 0},
			{result{fail, runs, "it was timedout"}, time.Second},
		}},
		{list{area: "sig-node"}, []ran{{result{fail, runs, "it was timedout"}, time.Second}}},
		{list{area: "sig-network", focus: regexp.MustCompile("DNS")}, []ran{{result{pass, answer, ""}, 2 * time.Second}}},
	} {
		got, err := readReport(strings.NewReader(reported), c.list)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, %v", c.list, got, err)
		}
	}
}

// What is no report of specs is an error, and so is a suite that did not begin.
func TestReadReportRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":   "read the suite's report: EOF",
		"[]": errNoSpecs.Error(),
		`[{"SpecReports": [{"LeafNodeType": "SynchronizedBeforeSuite", "State": "failed", "Failure": {"Message": "no node is ready"}}]}]`: "the suite itself failed at SynchronizedBeforeSuite: no node is ready",
		`[{"SpecialSuiteFailureReasons": ["Interrupted by User"]}]`:                                                                       "the suite itself failed: Interrupted by User",
	} {
		if _, err := readReport(strings.NewReader(text), wider); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine(strings.Repeat("ä ", 1000)); len([]rune(got)) != 161 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d runes", len([]rune(got)))
	}
}

func TestPrintTable(t *testing.T) {
	var out strings.Builder
	if err := printTable(&out, []ran{
		{result{pass, "[sig-b] x", ""}, time.Second}, {result{fail, "[sig-a] y", "r"}, 2 * time.Second}, {result{skip, "[sig-a] z", "r"}, 0}, {result{pass, "[sig-b] v", ""}, 4 * time.Second},
	}); err != nil {
		t.Fatal(err)
	}
	const want = `AREA   PASS  FAIL  NOT RUN  TIME OF ITS SPECS
sig-a  0     1     1        2s
sig-b  2     0     0        5s
all    2     1     1        7s
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestLists(t *testing.T) {
	const network, other, node = "[sig-network] DNS should answer [Conformance]", "[sig-network] DNS should hide", "[sig-node] Pods [Serial] should run [Conformance]"
	for _, c := range []struct {
		list   list
		name   string
		covers bool
	}{{narrow, network, true}, {narrow, other, false}, {narrow, node, false}, {wider, network, true}, {wider, node, true}, {wider, other, false}} {
		if got := c.list.covers(c.name); got != c.covers {
			t.Errorf("%v covers %s: %v", c.list, c.name, got)
		}
	}
	if wider.leavesOut(node) == "" || wider.leavesOut(network) != "" || narrow.leavesOut(network) != "" {
		t.Error("the wider list leaves out what is not serial, or runs what is")
	}
	focused := list{area: "sig-network", focus: regexp.MustCompile("DNS"), without: []exception{{"x", "why"}}}
	if got, want := focused.flags(), []string{"--label-filter=sig-network && Conformance", "--focus=DNS", "--skip=x"}; !slices.Equal(got, want) {
		t.Errorf("flags %q, want %q", got, want)
	}
	if got, want := wider.flags()[0], "--label-filter=Conformance"; got != want {
		t.Errorf("flag %q, want %q", got, want)
	}
}

// Whatever a report holds, reading it ends, in specs of the list or an error.
func FuzzReport(f *testing.F) {
	f.Add(reported)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readReport(strings.NewReader(text), wider)
		if err == nil && len(all) == 0 {
			t.Error("neither specs nor an error")
		}
		for _, r := range all {
			if !wider.covers(r.name) || (r.verdict == pass) != (r.reason == "") {
				t.Errorf("got %v", r)
			}
		}
	})
}
