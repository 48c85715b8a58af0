package compare_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/report/compare"
	"skerry.dev/skerry/lab/report/reporttest"
)

func options() compare.Options { return compare.Options{Rule: measure.Rule{Alpha: 0.01}, Margin: 0.05} }

// few is some cells of an imagined run: those of 1 KB over edg10, one of which
// is rejected.
func few(name string, seed uint64, slower float64) compare.Side {
	in := reporttest.WAN(seed, slower)
	in.Results = slices.DeleteFunc(in.Results, func(r report.Result) bool {
		return r.Cell.Size != 1000 || r.Cell.Scenario.Name != "edg10"
	})
	return compare.Side{Name: name, Input: in}
}

func runs(a, b compare.Side) compare.Comparison {
	return compare.Runs(a, b, options(), rand.New(rand.NewPCG(1, 1)))
}

func verdicts(c compare.Comparison) map[string]measure.Verdict {
	all := map[string]measure.Verdict{}
	for _, cell := range c.Cells {
		all[cell.Label] = cell.Verdict
	}
	return all
}

func TestARunIsTheSameAsItself(t *testing.T) {
	a := few("a", 1, 1)
	c := runs(a, a)
	for label, v := range verdicts(c) {
		want := measure.Same
		if label == "edg10, skupper" {
			want = compare.NotComparable
		}
		if v != want {
			t.Errorf("%s: %s, want %s", label, v, want)
		}
	}
	if len(c.Cells) != 4 || len(c.Slower()) != 0 || len(c.Differing)+len(c.OnlyA)+len(c.OnlyB) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestWhatBecameSlowerIsFound(t *testing.T) {
	a, b := few("a", 1, 1), few("b", 2, 1.08)
	c := runs(a, b)
	v := verdicts(c)
	if v["edg10, clusterlink"] != measure.Slower || v["edg10, direct"] != measure.Same || v["edg10, submariner"] != measure.Same {
		t.Errorf("verdicts %v", v)
	}
	if past := c.Slower(); len(past) != 1 || past[0].Label != "edg10, clusterlink" {
		t.Errorf("past the margin: %v", past)
	}
	back := runs(b, a)
	if v := verdicts(back); v["edg10, clusterlink"] != measure.Faster || len(back.Slower()) != 0 {
		t.Errorf("the other way round: %v, %v", v, back.Slower())
	}
	// What is within the margin is told, and fails no gate.
	o := options()
	o.Margin = 0.1
	c = compare.Runs(a, b, o, rand.New(rand.NewPCG(1, 1)))
	if verdicts(c)["edg10, clusterlink"] != measure.Slower || len(c.Slower()) != 0 {
		t.Errorf("within the margin: %v, %v", verdicts(c), c.Slower())
	}
}

func TestTooFewRepetitionsSayHowManyAreNeeded(t *testing.T) {
	a, b := few("a", 1, 1), few("b", 2, 1.5)
	for _, s := range []compare.Side{a, b} {
		for i := range s.Results {
			s.Results[i].Values = measure.Repeat([][]float64{{1e6, 2e6}, {3e6}})
		}
	}
	c := runs(a, b)
	if cell := c.Cells[0]; cell.Verdict != measure.TooFew || cell.Needed < 5 || len(c.Slower()) != 0 {
		t.Errorf("%s, %d needed", cell.Verdict, cell.Needed)
	}
	if got := text(t, c); !strings.Contains(got, "too few repetitions: 6 needed in each run") {
		t.Errorf("the table does not say how many:\n%s", got)
	}
}

// A tool of whole milliseconds finds 0 ms on a short link: no ratio, so no verdict.
func TestMediansOfNothingAreNotComparable(t *testing.T) {
	a, b := few("a", 1, 1), few("b", 2, 1)
	zero, late := make([][]float64, 10), make([][]float64, 10)
	for i := range zero {
		zero[i], late[i] = []float64{0}, []float64{50e6}
	}
	a.Results[0].Values, b.Results[0].Values = measure.Repeat(zero), measure.Repeat(late)
	a.Results[1].Values, b.Results[1].Values = measure.Repeat(zero), measure.Repeat(zero)
	c := runs(a, b)
	if c.Cells[0].Verdict != compare.NotComparable || c.Cells[1].Verdict != measure.Same || len(c.Slower()) != 0 {
		t.Errorf("0 ms against 50 ms: %s; against itself: %s", c.Cells[0].Verdict, c.Cells[1].Verdict)
	}
	if got := text(t, c); !strings.Contains(got, "not comparable: the median of a repetition is 0 ms, which has no ratio") {
		t.Errorf("the table does not say why:\n%s", got)
	}
	var out bytes.Buffer
	if err := errors.Join(compare.JSON(&out, c), compare.HTML(&out, c)); err != nil {
		t.Error(err)
	}
}

// failing has requests of a cell fail, so many of the 1000 of each repetition. The times of
// the others stay.
func failing(r *report.Result, each ...int) {
	r.PerRepetition, r.Summary = nil, measure.Summary{}
	for _, n := range each {
		r.PerRepetition = append(r.PerRepetition, measure.Summary{Requests: 1000, Errors: n, N: 1000 - n})
		r.Summary.Requests, r.Summary.Errors, r.Summary.N = r.Summary.Requests+1000, r.Summary.Errors+n, r.Summary.N+1000-n
	}
	if r.Summary.N == 0 {
		r.Values = nil
	}
}

// The times of the requests that are answered say nothing of those that are not.
func TestMoreErrorsAreARegression(t *testing.T) {
	a, b := few("a", 1, 1), few("b", 1, 1)
	for i := range a.Results {
		if a.Results[i].Rejected == "" {
			failing(&a.Results[i], 0, 1, 0, 0, 0)
		}
	}
	failing(&b.Results[0], 580, 600, 620, 610, 590)
	failing(&b.Results[1], 1000, 1000, 1000)
	failing(&b.Results[3], 0, 0, 3, 1, 0)
	c := runs(a, b)
	for i, want := range []measure.Verdict{measure.MoreErrors, measure.MoreErrors, compare.NotComparable, measure.Same} {
		if got := c.Cells[i]; got.Verdict != want {
			t.Errorf("%s: %s, want %s", got.Label, got.Verdict, want)
		}
	}
	if len(c.Failing()) != 2 || len(c.Slower()) != 0 || len(runs(b, a).Failing()) != 0 {
		t.Errorf("failing %v, slower %v; the other way round %v", c.Failing(), c.Slower(), runs(b, a).Failing())
	}
	table := text(t, c)
	for _, want := range []string{"0.02% to 60% ", "0.02% to 100% ", "more errors, no answer in B", "2 cells with more errors"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table does not say %q:\n%s", want, table)
		}
	}
	var out, page bytes.Buffer
	if err := errors.Join(compare.JSON(&out, c), compare.HTML(&page, c)); err != nil {
		t.Error(err)
	}
	if got := out.String(); !strings.Contains(got, `"a_errors": 0.0002`) || !strings.Contains(got, `"b_errors": 0.6`) {
		t.Errorf("JSON has no shares:\n%s", got)
	}
	if got := page.String(); !strings.Contains(got, ">0.02% to 60%<") || !strings.Contains(got, `<span class="bad">more errors, no answer in B</span>`) {
		t.Error("the page has no shares")
	}
	once := few("once", 1, 1)
	failing(&once.Results[0], 600)
	if got := runs(a, once).Cells[0].Verdict; got == measure.MoreErrors {
		t.Errorf("one repetition decides: %s", got)
	}
}

func TestWhatElseDiffersIsListed(t *testing.T) {
	a, b := few("a", 1, 1), few("b", 1, 1)
	b.Provenance.Kernel, b.Provenance.Seed = "Linux 6.13", 7
	b.Provenance.Facts = []report.Fact{
		{Name: "CPU governor", Value: "powersave"}, {Name: "turbo", Value: "on"}, {Name: "command", Value: "skerry run", OfRun: true},
	}
	b.Experiment.Topology.Congestion, b.Experiment.Substrate = "bbr", experiment.SubstrateKubernetes
	want := []compare.Differing{
		{What: "substrate", A: "hosts", B: "kubernetes"},
		{What: "kernel", A: "Linux 6.12.9-amd64", B: "Linux 6.13"},
		{What: "congestion control", A: "cubic", B: "bbr"},
		{What: "CPU governor", A: "performance", B: "powersave"},
		{What: "net.ipv4.tcp_rmem", A: "4096 131072 6291456"},
		{What: "turbo", B: "on"},
	}
	if got := runs(a, b).Differing; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// A run on hosts and one on kubernetes: the programs of the clusters are one line, and
// a sentence says what they add. Between two of the latter each program is told.
func TestHostsAgainstKubernetes(t *testing.T) {
	a, b := few("a", 1, 1), few("b", 1, 1)
	b.Experiment.Substrate = experiment.SubstrateKubernetes
	of := func(digest string) []report.Fact {
		return []report.Fact{
			{Name: "/bin/etcd", Value: "v3.6.12, SHA-256 " + digest, Of: "Kubernetes"},
			{Name: "Kubernetes", Value: "v1.36.3", Of: "Kubernetes"}, {Name: "/bin/kubernetes", Value: "v1.36.3, SHA-256 k", Of: "Kubernetes"},
		}
	}
	b.Provenance.Facts = append(slices.Clone(b.Provenance.Facts), of("e")...)
	for i := range b.Results { // 300 µs more, with quartiles as far apart as they were
		if values := b.Results[i].Values; values != nil {
			later := make([][]float64, 10)
			for j, v := range values.Pooled() {
				later[j%len(later)] = append(later[j%len(later)], v+300e3)
			}
			b.Results[i].Values = measure.Repeat(later)
		}
	}
	c := runs(a, b)
	want := []compare.Differing{{What: "substrate", A: "hosts", B: "kubernetes"}, {What: "Kubernetes", A: "none", B: "v1.36.3 and 2 programs of it"}}
	if !slices.Equal(c.Differing, want) {
		t.Errorf("got  %v\nwant %v", c.Differing, want)
	}
	if got := text(t, c); !strings.Contains(got, "\nkubernetes in place of hosts: +300 µs at the median, +0 µs between the quartiles.\n") {
		t.Errorf("the table does not say what Kubernetes adds:\n%s", got)
	}
	if back := runs(b, a).Differing; back[1] != (compare.Differing{What: "Kubernetes", A: "v1.36.3 and 2 programs of it", B: "none"}) {
		t.Errorf("the other way round: %v", back)
	}
	other := b
	other.Provenance.Facts = of("f")
	other.Provenance.Facts = append(slices.Clone(a.Provenance.Facts), other.Provenance.Facts...)
	if got := runs(b, other).Differing; !slices.Equal(got, []compare.Differing{{What: "/bin/etcd", A: "v3.6.12, SHA-256 e", B: "v3.6.12, SHA-256 f"}}) {
		t.Errorf("of two clusters: %v", got)
	}
}

func TestCellsOfOneRunAloneAreListed(t *testing.T) {
	a, b := few("a", 1, 1), few("b", 1, 1)
	a.Results = a.Results[1:]
	b.Results = b.Results[:3]
	c := runs(a, b)
	if len(c.Cells) != 2 || len(c.OnlyA) != 1 || len(c.OnlyB) != 1 || !strings.Contains(c.OnlyA[0], "submariner") || !strings.Contains(c.OnlyB[0], "direct") {
		t.Errorf("%d in both, only in A %v, only in B %v", len(c.Cells), c.OnlyA, c.OnlyB)
	}
	a.Results = nil
	if got := text(t, runs(a, b)); !strings.Contains(got, "The runs have no cell in common.") {
		t.Errorf("nothing in common:\n%s", got)
	}
}

const wantTable = `median response time of B = b against A = a
differs: kernel: Linux 6.12.9-amd64 in A, unknown in B

cell                 A ms    B ms  change     95% interval             apart µs       jitter µs        errors       p  floor  verdict
edg10, direct      10.000  10.020   +0.2%   [-0.1%, +0.5%]       +20 [-10, +50]   +0 [-12, +12]            0%  0.8000  ±0.4%  same
edg10, skupper          –       –       –                –                    –               –       – to 0%       –      –  not comparable: rejected in A
edg10, submariner  10.000  11.000  +10.0%  [+9.0%, +11.0%]  +1000 [+900, +1100]  -250 [-300, –]  0.02% to 60%  0.0003      –  more errors, past the margin
lcl, submariner         –       –       –                –                    –               –    0% to 100%       –      –  more errors, no answer in B

4 cells in both runs: 1 same, 2 more errors, 1 not comparable.
1 cell slower by more than 5%, most of all edg10, submariner: +10.0%.
2 cells with more errors, most of all lcl, submariner: 0% to 100%.
1 cell in one run alone.
only in B: lcl/direct
`

func TestTable(t *testing.T) {
	estimate := func(v float64) measure.Estimate { return measure.Estimate{Value: v} }
	c := compare.Comparison{
		A: "a", B: "b", Options: options(), Differing: []compare.Differing{{What: "kernel", A: "Linux 6.12.9-amd64"}},
		Cells: []compare.Cell{
			{Label: "edg10, direct", A: estimate(10e6), B: estimate(10.02e6), Difference: measure.Difference{
				Ratio: measure.Estimate{Value: 1.002, Low: 0.999, High: 1.005}, Apart: measure.Estimate{Value: 2e4, Low: -1e4, High: 5e4},
				Jitter: measure.Estimate{Value: -400, Low: -12e3, High: 12e3}, Shift: 1e4, Adjusted: 0.8, Floor: 0.004, Verdict: measure.Same,
			}},
			{Label: "edg10, skupper", Why: "rejected in A", ErrorsA: math.NaN(), Difference: measure.Difference{Verdict: compare.NotComparable}},
			{Label: "edg10, submariner", A: estimate(10e6), B: estimate(11e6), Past: true, ErrorsA: 0.0002, ErrorsB: 0.6, Difference: measure.Difference{
				Ratio: measure.Estimate{Value: 1.1, Low: 1.09, High: 1.11}, Apart: measure.Estimate{Value: 1e6, Low: 9e5, High: 1.1e6},
				Jitter: measure.Estimate{Value: -25e4, Low: -3e5, High: math.NaN()}, Shift: 1e6, Adjusted: 0.0003, Verdict: measure.MoreErrors,
			}},
			{Label: "lcl, submariner", Why: "no answer in B", ErrorsB: 1, Difference: measure.Difference{Verdict: measure.MoreErrors}},
		},
		OnlyB: []string{"lcl/direct"},
	}
	if got := text(t, c); got != wantTable {
		t.Errorf("got\n%s\nwant\n%s", got, wantTable)
	}
}

func text(t *testing.T, c compare.Comparison) string {
	t.Helper()
	var out bytes.Buffer
	if err := compare.Table(&out, c, false); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestJSONMirrorsTheTable(t *testing.T) {
	var out bytes.Buffer
	if err := compare.JSON(&out, runs(few("a", 1, 1), few("b", 2, 1.08))); err != nil {
		t.Fatal(err)
	}
	var got struct {
		A     string
		Cells []struct {
			ID, Cell, Verdict, Why string
			Past                   bool `json:"past_margin"`
			Ratio                  *float64
			P                      *float64                            `json:"p_adjusted"`
			Apart                  *struct{ Value, Low, High float64 } `json:"apart_ms"`
			Jitter                 *struct{ Value, Low, High float64 } `json:"jitter_ms"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.A != "a" || len(got.Cells) != 4 {
		t.Fatalf("got %+v", got)
	}
	slower, rejected := got.Cells[1], got.Cells[2]
	if slower.Verdict != "slower" || !slower.Past || slower.Ratio == nil || *slower.Ratio < 1.05 || *slower.P > 0.01 || len(slower.ID) != 12 {
		t.Errorf("slower cell: %+v", slower)
	}
	if a, j := slower.Apart, slower.Jitter; a == nil || j == nil || a.Low <= 0 || a.Value < a.Low || a.High < a.Value || j.High < j.Low {
		t.Errorf("slower cell: apart by %+v, jitter %+v", a, j)
	}
	if rejected.Apart != nil || rejected.Verdict != "not comparable" || rejected.Ratio != nil || rejected.Why != "rejected in A" {
		t.Errorf("rejected cell: %+v", rejected)
	}
}

func TestPage(t *testing.T) {
	const evil = `<script>alert(1)</script>`
	a, b := few(evil, 1, 1), few("b", 2, 1.08)
	b.Provenance.Kernel = evil
	a.Results[0].Cell.Scenario = experiment.Scenario{Name: evil}
	var out bytes.Buffer
	if err := compare.HTML(&out, runs(a, b)); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{
		"What changed from A to B", "past the margin", "apart, µs", "jitter, µs", "&#43;8.", "<svg", "not comparable: rejected in A",
		"skerry compare", "&lt;script&gt;alert(1)&lt;/script&gt;", "most of all edg10, clusterlink",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	for _, bad := range []string{"<script", "http://", "https://", "url(", "ZgotmplZ", "src="} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if _, err := html.Parse(strings.NewReader(page)); err != nil {
		t.Error(err)
	}
}
