package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/topology"
)

// byRatio is two cells of ratios, the second with the rates of its entries.
func byRatio() Input {
	in := small()
	in.Results = in.Results[:2]
	for i, ratio := range []string{"4:0:0", "1:0:3"} {
		r := &in.Results[i]
		r.Cell.Ratio, r.Cell.Threads, r.Cell.Iterations, r.Cell.Duration = ratio, 4, 0, quantity.Duration(20*time.Second)
		r.Observed.Rate = 1234.4
	}
	in.Experiment.Topology.Entries = []topology.Ref{"c1/a", "c1/b", "c1/c"}
	in.Results[1].Entries = []Entry{{"c1/a", 1, 300.4}, {Node: "c1/b"}, {"c1/c", 3, 934}}
	return in
}

// A ratio stands where threads would, and beside it what was answered a second.
func TestRatioInTheTable(t *testing.T) {
	got := printed(t, byRatio(), false)
	for _, want := range []string{
		"all cells: payload-echo, 1KB, think 0s, protocol http/1.1, connection kept, duration 20s, warmup 0, timeout 30s, unit packet\n",
		"scenario  system  ratio  median ms  95% interval ms  p99 ms  first ms  per second     errors   n\n",
		"edg10     direct  4:0:0      10.25   [10.20, 10.30]   12.00     30.00        1234          0  99\n",
		"edg10, direct, ratio 1:0:3: errors: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := Labels(byRatio().Results); got[1] != "edg10, direct, ratio 1:0:3" {
		t.Errorf("labels %q", got)
	}
}

func TestRatioAsData(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, byRatio()); err != nil {
		t.Fatal(err)
	}
	var got document
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	c := got.Cells[1]
	if c.Ratio != "1:0:3" || c.Threads != 4 || c.DurationMs != 20_000 || c.Rate != "" || c.Oracle.Rate != 1234.4 {
		t.Errorf("cell %+v", c)
	}
	if want := []entry{{"c1/a", 1, 300.4}, {Node: "c1/b"}, {"c1/c", 3, 934}}; !reflect.DeepEqual(c.Entries, want) || got.Cells[0].Entries != nil {
		t.Errorf("entries %+v, want %+v", c.Entries, want)
	}
	out.Reset()
	if err := CellsCSV(&out, byRatio()); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, ",threads,ratio,think_ms,") || !strings.Contains(text, ",4,1:0:3,0,") {
		t.Errorf("got %s", text)
	}
	page := factsOf(byRatio())
	for _, want := range []Fact{{Name: "entries", Value: "c1/a, c1/b, c1/c"}, {Name: "ratio", Value: "4:0:0, 1:0:3"}} {
		found := false
		for _, f := range page {
			found = found || reflect.DeepEqual(f, want)
		}
		if !found {
			t.Errorf("the page lacks %+v in %+v", want, page)
		}
	}
}
