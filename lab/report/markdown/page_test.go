package markdown

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/oracle"
	"skerry.dev/skerry/lab/report"
)

func TestPut(t *testing.T) {
	old := "a\n<!-- table one -->\nold\n<!-- end one -->\nb\n"
	page, err := Put(old, "one", "new\n")
	if want := "a\n<!-- table one -->\nnew\n<!-- end one -->\nb\n"; err != nil || page != want {
		t.Errorf("%v:\n%s", err, page)
	}
	if table, err := Table(page, "one"); err != nil || table != "new\n" {
		t.Errorf("the table is %q, %v", table, err)
	}
	if _, err := Put(old, "two", ""); err == nil || !strings.Contains(err.Error(), "no place for two") {
		t.Errorf("a page without a place: %v", err)
	}
	if _, err := Table("<!-- table one -->\nwithout an end", "one"); err == nil {
		t.Error("a table without an end is one")
	}
}

// result is of a cell of a closed loop in which so many requests were answered a second.
func result(scenario, system, ratio string, answered float64) report.Result {
	return report.Result{
		Cell: experiment.Cell{
			Scenario: experiment.Scenario{Name: scenario}, System: system,
			Sender: experiment.Sender{Ratio: ratio}, OpenLoop: experiment.OpenLoop{Duration: quantity.Duration(time.Second)},
		},
		Summary: measure.Summary{Requests: 9, N: 9}, Observed: oracle.Observed{Rate: answered},
	}
}

// What is written is read again as it was, but for what rounding takes.
func TestRates(t *testing.T) {
	rejected := result("near", "ewma", "1:0", 999)
	rejected.Rejected = "its link drifted"
	rates := RatesOf([]report.Result{
		result("near", "kube-proxy", "1:1", 90), result("near", "cost", "1:1", 100.26),
		result("near", "cost", "1:0", 50), result("near", "rap", "1:0", 51), rejected,
		result("far", "cost", "1:1", 10), // alone
		result("wide", "rap", "1:1", 10), result("wide", "ewma", "1:1", 9),
		result("same", "cost", "1:1", 10), result("same", "rap", "1:1", 10),
	})
	want := `| answered a second | kube-proxy | cost | rap | ewma |
| --- | --: | --: | --: | --: |
| near, ratio 1:1 | 90.0 | 100.3 | – | – |
| near, ratio 1:0 | – | 50.0 | 51.0 | – |
| far, ratio 1:1 | – | 10.0 | – | – |
| wide, ratio 1:1 | – | – | 10.0 | 9.0 |
| same, ratio 1:1 | – | 10.0 | 10.0 | – |
`
	if got := rates.String(); got != want {
		t.Errorf("got\n%s", got)
	}
	read, err := RatesIn("above\n\n" + want + "below | it |\n")
	if err != nil {
		t.Fatal(err)
	}
	if read.String() != want {
		t.Errorf("read again:\n%s", read)
	}
	for _, r := range []Rates{rates, read} {
		if best, of := r.Best("cost"); best != 1 || of != 3 {
			t.Errorf("cost is the best in %d of %d, want 1 of 3", best, of)
		}
	}
}

func TestRatesOfNothingToCompare(t *testing.T) {
	alone, open, other := result("near", "cost", "1:1", 9), result("near", "cost", "1:1", 9), result("near", "rap", "1:1", 9)
	open.Cell.Rate, other.Cell.Rate = 300, 300
	for _, results := range [][]report.Result{nil, {alone}, {open, other}} {
		if got := RatesOf(results).String(); got != "" {
			t.Errorf("%d results have a table:\n%s", len(results), got)
		}
	}
}

func TestRatesInRefuses(t *testing.T) {
	refused := map[string]string{
		"| claim | says |\n|---|---|\n":                                          "no table",
		"| answered a second | a | b |\n| --- | --: | --: |\n| near | 9 | ? |\n": `near, b: "?"`,
	}
	for _, text := range slices.Sorted(maps.Keys(refused)) {
		if _, err := RatesIn(text); err == nil || !strings.Contains(err.Error(), refused[text]) {
			t.Errorf("%q: %v, want %s", text, err, refused[text])
		}
	}
}
