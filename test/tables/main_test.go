package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
)

func ran() report.Input {
	return report.Input{
		Experiment: experiment.Experiment{Name: "two"},
		Provenance: report.Provenance{
			Started: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), Commit: "0123456789abcdef", Seed: 7, Cores: 2, Kernel: "Linux 6.1", Backend: "netem",
		},
		Results: []report.Result{{PerRepetition: make([]measure.Summary, 3)}, {PerRepetition: make([]measure.Summary, 2)}},
		Claims: []claim.Judgement{
			{Name: "first", Statement: "p50: a | b", Paper: "CRT §3", Result: claim.Holds, Effect: "1.5 [1.4, 1.6]"},
			{Name: "second", Statement: "p99 below 1ms", Result: claim.Inconclusive, Effect: "0.9 ms"},
		},
	}
}

func TestFill(t *testing.T) {
	page := "before\n<!-- table one -->\nleft alone\n<!-- end one -->\n<!-- table two -->\nold\n<!-- end two -->\nafter\n"
	want := `before
<!-- table one -->
left alone
<!-- end one -->
<!-- table two -->
2 to 3 repetitions of 2 cells on 21 November 2026, commit 0123456, seed 7, 2 cores, Linux 6.1, links by netem:

| claim | says | verdict | seen |
|---|---|---|---|
| first | p50: a \| b (CRT §3) | holds | 1.5 [1.4, 1.6] |
| second | p99 below 1ms | inconclusive | 0.9 ms |
<!-- end two -->
after
`
	got, err := fill(page, ran())
	if err != nil || got != want {
		t.Errorf("%v:\n%s", err, got)
	}
	if again, err := fill(got, ran()); err != nil || again != want {
		t.Errorf("filled again, %v:\n%s", err, again)
	}
	if _, err := fill("<!-- table two -->\nwithout an end", ran()); err == nil || !strings.Contains(err.Error(), "no place for two") {
		t.Errorf("a page without a place: %v", err)
	}
}

// Cells that were rejected, or not run, have no say in how often the others were.
func TestRepetitions(t *testing.T) {
	ten := report.Result{PerRepetition: make([]measure.Summary, 10)}
	if least, most := repetitions([]report.Result{{Rejected: "late"}, ten, {Lacks: "4 cores"}}); least != 10 || most != 10 {
		t.Errorf("%d to %d repetitions, want 10", least, most)
	}
	if _, most := repetitions([]report.Result{{Lacks: "4 cores"}}); most != 0 {
		t.Errorf("%d repetitions of a cell that was not run", most)
	}
}

// Whoever has the page open reads the old one whole.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	if err := replace(page, "new and longer"); err != nil {
		t.Fatal(err)
	}
	old, err := io.ReadAll(open)
	if err != nil || string(old) != "old" {
		t.Errorf("the old page is %q, %v", old, err)
	}
	got, err := os.ReadFile(page)
	info, statErr := os.Stat(page)
	if err := errors.Join(err, statErr); err != nil || string(got) != "new and longer" || info.Mode().Perm() != 0o640 {
		t.Errorf("the page is %q, %v, %v", got, info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left beside the page: %v, %v", entries, err)
	}
	if err := replace(filepath.Join(dir, "nowhere.md"), "new"); err == nil {
		t.Error("a page that is not there was replaced")
	}
}

// A run that cannot be read leaves the page as it was.
func TestWriteAllOrNothing(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "<!-- table two -->\n<!-- end two -->\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write([]string{page, t.TempDir()}); err == nil {
		t.Error("a folder that holds no run was taken")
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("the page is now %q, %v", got, err)
	}
	if err := write([]string{page}); err == nil {
		t.Error("no run was taken")
	}
}

// What was simulated at several delays has a line for each case.
func TestSimulated(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	text := `[{"case": "8:0:0:0", "delayNs": 3000000, "policies": {"cost": {"goodputPerSecond": 2043.4}}},
		{"case": "8:0:0:0", "delayNs": 10000000, "policies": {"cost": {"goodputPerSecond": 1500}}}]`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	page, err := fillSimulated("a\n<!-- table simulated -->\nold\n<!-- end simulated -->\nb\n", path)
	want := "a\n<!-- table simulated -->\n| W1:W2:W3:W4 | random | rap | rap-100ms | ewma | cost | oracle |\n|---|---|---|---|---|---|---|\n" +
		"| 8:0:0:0 | 0 / 0 | 0 / 0 | 0 / 0 | 0 / 0 | 2043 / 1500 | 0 / 0 |\n<!-- end simulated -->\nb\n"
	if err != nil || page != want {
		t.Errorf("%v\n%s", err, page)
	}
}
