package run

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/sample"
)

// TestTools drives the example by the tools that Debian has beside Skerry's own:
// one that keeps requests and one that does not.
func TestTools(t *testing.T) {
	for _, tool := range []string{"ab", "wrk"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	o, _ := realRun(t, func(o *Options) {
		o.Tools = map[string]program.Program{}
		for _, tool := range []string{"ab", "wrk"} {
			p, err := program.Find(t.Context(), tool, nil)
			if err != nil {
				t.Fatal(err)
			}
			o.Tools[tool] = p
		}
		o.Experiment.Load = experiment.Load{Tool: []string{"skerry", "ab", "wrk"}, Threads: []int{2}, Iterations: 20}
		o.Experiment.Claims = []experiment.Claim{{
			Name: "alike", Kind: experiment.KindRatio, Of: &experiment.Selector{Tool: []string{"wrk"}},
			To: &experiment.Selector{Tool: []string{"skerry"}}, Range: experiment.Range{Above: "0.1"},
		}}
	})
	record, err := ReadRecord(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"ab", "wrk"} {
		i := slices.IndexFunc(record.Programs, func(p Program) bool { return p.Name == tool })
		if i < 0 || record.Programs[i].Version != o.Tools[tool].Version || record.Programs[i].SHA256 == "" {
			t.Errorf("programs %+v do not tell of %s", record.Programs, tool)
		}
	}
	input, err := Collect(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	checkCells(t, o, input)
	for _, name := range []string{"ab, first cell", "wrk, first cell", o.Tools["ab"].File} {
		if !slices.ContainsFunc(input.Provenance.Facts, func(f report.Fact) bool { return f.Name == name && f.Value != "" }) {
			t.Errorf("the page lacks %q: %v", name, input.Provenance.Facts)
		}
	}
	if j := input.Claims[0]; j.Result != claim.Inconclusive || !strings.HasSuffix(j.Why, "wrk keeps no requests, and its total cannot be resampled") {
		t.Errorf("the claim: %+v", j)
	}
	if status, err := Look(o.Dir); err != nil || status.Requests < 240 || status.Errors != 0 || status.State != Complete {
		t.Errorf("status %+v, %v", status, err)
	}
}

// checkCells looks at the figures of the tools, and at what they left.
func checkCells(t *testing.T, o Options, input report.Input) {
	t.Helper()
	for i, want := range []struct {
		n, first int
		total    bool
		file     string
	}{{76, 4, false, histogramFile}, {76, 4, false, "ab.tsv"}, {80, 0, true, "wrk.out"}} {
		r := input.Results[i]
		// wrk counts an answer that came with the last, too.
		if n := r.Summary.N; n < want.n || n > want.n+2 || r.Summary.Errors != 0 || r.Summary.FirstN != want.first || r.Total != want.total {
			t.Errorf("%s: %+v, total %t", r.Cell, r.Summary, r.Total)
		}
		if m := r.Summary.Times.Median; m < 1500*time.Microsecond || m > 200*time.Millisecond || (r.Median.N == 0) != want.total {
			t.Errorf("%s: median %v over 2 ms of round trip, %+v", r.Cell, m, r.Median)
		}
		if r.Observed.Rate <= 0 || strings.Contains(strings.Join(r.Oracle.Notes, " "), "Little") || (len(r.Timelines) > 0) != (i == 0) {
			t.Errorf("%s: observed %+v, notes %q, %d timelines", r.Cell, r.Observed, r.Oracle.Notes, len(r.Timelines))
		}
		turn := Turn{Cell: r.Cell, Repetition: 1}
		if _, err := os.Stat(filepath.Join(store{o.Dir}.turnDir(turn), want.file)); err != nil {
			t.Error(err)
		}
		repetition, err := store{o.Dir}.last(turn)
		if err != nil || (len(repetition.Command) > 0) != (i > 0) {
			t.Errorf("%s: command %q, %v", r.Cell, repetition.Command, err)
		}
		if i > 0 && (repetition.Command[0] != o.Tools[r.Cell.Tool].File || !strings.Contains(strings.Join(repetition.Command, " "), "http://10.1.0.1:8080/")) {
			t.Errorf("%s: command %q", r.Cell, repetition.Command)
		}
	}
}

// A tool that fails ends the run with what it said, and leaves its folder.
func TestToolFails(t *testing.T) {
	e := &ToolError{Tool: "ab", Err: errors.New("exit status 22"), Said: lastLines("one\ntwo\n\nthree\nfour\n")}
	if got, want := e.Error(), "load by ab: exit status 22: two; three; four"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if e := (&ToolError{Tool: "ab", Err: errLong}); e.Error() != "load by ab: it took longer than every request together may" || !errors.Is(e, errLong) {
		t.Errorf("got %q", e)
	}
	const second = quantity.Duration(time.Second)
	c := experiment.Cell{Iterations: 8, Warmup: 1, Timeout: 3 * second, Think: second, Ramp: 5 * second}
	if got, want := toolMost(c), 105*time.Second; got != want {
		t.Errorf("a tool may take %v, want %v", got, want)
	}
}

func TestOutputBytes(t *testing.T) {
	const requests = 8
	for tool, file := range map[string]string{"ab": "ab.tsv", "hey": "hey.csv", "jmeter": "jmeter.csv", "k6": "k6.csv"} {
		info, err := os.Stat(filepath.Join("../adapter/testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if each := float64(info.Size()) / requests; outputBytes(tool) < each || outputBytes(tool) > 2*each {
			t.Errorf("%s takes %.0f bytes a request, the estimate is %.0f", tool, each, outputBytes(tool))
		}
	}
}

// Samples that were taken elsewhere are a run like others.
func TestImport(t *testing.T) {
	rows := func(n int32, threads int32) (all []sample.Request) {
		for i := range n {
			for thread := range threads {
				begin := int64(1e18) + int64(i)*1e7
				all = append(all, sample.Request{Thread: thread, Connection: 1, Index: i + 1, ScheduledNs: begin, LastByteNs: begin + 2e6, Status: 200})
			}
		}
		return all
	}
	began := time.Unix(1e9, 0)
	dir := filepath.Join(t.TempDir(), "run")
	i := Imported{
		Scenario: "edg10", System: "theirs", Tool: experiment.ToolJMeter, Began: began, Command: []string{"skerry", "import"},
		Workloads: map[string][][]sample.Request{"small one": {rows(10, 2), rows(8, 2)}, "large": {rows(5, 1)}},
	}
	if err := Import(dir, i); err != nil {
		t.Fatal(err)
	}
	// One label is in one file of two: there is nothing to resume for that.
	if status, err := Look(dir); err != nil || status.State != Complete || status.Requests != 41 {
		t.Errorf("status %+v, %v", status, err)
	}
	if err := Resume(t.Context(), Options{Dir: dir}); err != nil {
		t.Errorf("resumed: %v", err)
	}
	input, err := Collect(dir)
	if err != nil {
		t.Fatal(err)
	}
	large, small := input.Results[0], input.Results[1]
	if large.Cell.Workload != "large" || large.Summary.N != 4 || len(large.PerRepetition) != 1 {
		t.Errorf("large: %s %+v", large.Cell, large.Summary)
	}
	c := small.Cell
	if c.Workload != "small one" || c.System != "theirs" || c.Scenario.Name != "edg10" || c.Tool != "jmeter" || c.Threads != 2 || c.Iterations != 0 || c.Connection != "kept" {
		t.Errorf("cell %+v", c)
	}
	if small.Summary.N != 32 || small.Summary.FirstN != 4 || small.Summary.Times.Median != 2*time.Millisecond || len(small.PerRepetition) != 2 {
		t.Errorf("small one: %+v", small.Summary)
	}
	if !input.Provenance.Started.Equal(began) {
		t.Errorf("provenance %+v", input.Provenance)
	}
	seen := 0
	err = Each(dir, func(_ experiment.Cell, _ int, rows []sample.Request) error { seen += len(rows); return nil })
	if err != nil || seen != 41 {
		t.Errorf("%d rows to export, %v", seen, err)
	}
	if err := Import(dir, i); !errors.Is(err, ErrDirExists) {
		t.Errorf("again into the same folder: %v", err)
	}
}

// An import that fails leaves nothing, so that the next may have its name.
func TestImportFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	rows := []sample.Request{{Connection: 1, Index: 1, LastByteNs: 2e6, Status: 200}}
	i := Imported{Scenario: "a", System: "b", Tool: experiment.ToolJMeter, Workloads: map[string][][]sample.Request{"c": {rows, rows}}}
	broken := i
	broken.Began = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) // JSON has no such year
	if err := Import(dir, broken); err == nil {
		t.Fatal("it is kept")
	}
	if err := Import(dir, i); err != nil {
		t.Errorf("again: %v", err)
	}
}
