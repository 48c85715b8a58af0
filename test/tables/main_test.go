package main

import (
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
