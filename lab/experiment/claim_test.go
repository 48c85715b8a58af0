package experiment_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

// TestMembers shows what every claim of two files compares: every key, and
// what the papers claim.
func TestMembers(t *testing.T) {
	var out strings.Builder
	for _, file := range []string{"testdata/every-key.yaml", "testdata/claims.yaml"} {
		e := read(t, file)
		cells := e.Cells()
		for _, c := range e.Claims {
			members, more := c.Members(cells)
			if more {
				t.Errorf("%s: more than can be", c.Name)
			}
			_, _ = fmt.Fprintf(&out, "%s\n", c.Name)
			for _, m := range members {
				var points []string
				for _, p := range m.Points {
					text := p.Of.Metric + " of " + cells[p.Of.Cell].String()
					if p.To.Cell >= 0 {
						text += " with " + p.To.Metric + " of " + cells[p.To.Cell].String()
					}
					points = append(points, text)
				}
				_, _ = fmt.Fprintf(&out, "  %s\n", strings.Join(points, "\n    "))
			}
		}
	}
	golden(t, "testdata/claims.txt", out.String())
}

func TestLimits(t *testing.T) {
	low, high := math.Inf(-1), math.Inf(1)
	minus, rate := &experiment.Selector{}, &experiment.Selector{Metric: "rate"}
	between := func(a, b experiment.Bound) experiment.Range {
		return experiment.Range{Between: []experiment.Bound{a, b}}
	}
	for _, c := range []struct {
		claim     experiment.Claim
		low, high float64
	}{
		{experiment.Claim{Kind: "order"}, low, high},
		{experiment.Claim{Kind: "ratio", Range: between("0.9", "1.1")}, 0.9, 1.1},
		{experiment.Claim{Kind: "slope", Over: "rtt", Range: between("-0.5", "-.25")}, -0.5, -0.25},
		{experiment.Claim{Kind: "crossing", Over: "rtt", Range: experiment.Range{Below: "10ms"}}, low, 1e7},
		{experiment.Claim{Kind: "crossing", Over: "size", Range: experiment.Range{Above: "1KiB"}}, 1024, high},
		{experiment.Claim{Kind: "crossing", Over: "threads", Range: between("2", "4")}, 2, 4},
		{experiment.Claim{Kind: "crossing", Over: "rate", Range: between("0.5/s", "4/s")}, 0.5, 4},
		{experiment.Claim{Kind: "crossing", Over: "rtt", Never: true}, low, high},
		{experiment.Claim{Kind: "bound", Range: experiment.Range{Below: "1ms"}}, low, 1e6},
		{experiment.Claim{Kind: "bound", Minus: minus, Range: between("-1.5ms", "-500us")}, -1.5e6, -5e5},
		{experiment.Claim{Kind: "bound", Metric: "errors", Range: experiment.Range{Above: "2%"}}, 0.02, high},
		{experiment.Claim{Kind: "bound", Of: rate, Range: experiment.Range{Above: "200/s"}}, 200, high},
	} {
		gotLow, gotHigh, err := c.claim.Limits()
		if err != nil || gotLow != c.low || gotHigh != c.high {
			t.Errorf("%+v: got %v to %v, %v; want %v to %v", c.claim, gotLow, gotHigh, err, c.low, c.high)
		}
	}
	for _, c := range []experiment.Claim{
		{Kind: "ratio", Range: experiment.Range{Above: "-1"}},
		{Kind: "ratio", Range: experiment.Range{Above: "1e3"}},
		{Kind: "slope", Range: experiment.Range{Above: "Inf"}},
		{Kind: "bound", Range: experiment.Range{Above: "-1ms"}},
		{Kind: "bound", Minus: minus, Range: experiment.Range{Above: "--1ms"}},
		{Kind: "bound", Range: between("2ms", "1ms")},
	} {
		if low, high, err := c.Limits(); err == nil {
			t.Errorf("%+v: %v to %v", c, low, high)
		}
	}
}

func TestRTT(t *testing.T) {
	e := read(t, "testdata/every-key.yaml")
	m := e.Scenarios[0].HopMap([]topology.Ref{"site-b/n3", "site-b/n1", "site-a/n2", "site-a/n1"})
	// n3 to n1 takes 1 ms and 2 ms each way, by stages, n1 to n2 of the other site 3 ms.
	if got, want := e.Scenarios[0].RTT(m), 12*time.Millisecond; got != want {
		t.Errorf("the round trip is %v, want %v", got, want)
	}
	m = e.Scenarios[0].HopMap([]topology.Ref{"site-b/n3", "site-a/n1"})
	if got, want := e.Scenarios[0].RTT(m), 20250*time.Microsecond; got != want {
		t.Errorf("between the sites it is %v, want %v: each direction by itself", got, want)
	}
}

func TestX(t *testing.T) {
	cell := experiment.Cell{Size: 1000, Time: 5, Threads: 3, Think: 7, OpenLoop: experiment.OpenLoop{Rate: 2.5}}
	want := map[string]float64{"rtt": 9, "size": 1000, "time": 5, "threads": 3, "think": 7, "rate": 2.5}
	for _, over := range experiment.Overs() {
		if got := (experiment.Claim{Over: over}).X(cell, 9); got != want[over] {
			t.Errorf("over %s the cell lies at %v, want %v", over, got, want[over])
		}
	}
}

func TestSlopeUnit(t *testing.T) {
	for over, want := range map[string]string{"rtt": "ms per ms", "size": "ms per KB", "threads": "ms per thread", "rate": "ms per 1/s"} {
		figure, factor := experiment.Claim{Kind: "slope", Over: over}.SlopeUnit()
		if got := figure + " per " + factor; got != want {
			t.Errorf("over %s: got %s, want %s", over, got, want)
		}
	}
	if figure, _ := (experiment.Claim{Kind: "slope", Over: "size", Metric: "rate"}).SlopeUnit(); figure != "requests/s" {
		t.Errorf("a rate grows by %s", figure)
	}
}

// TestClaimsAreRecorded holds that claims are the same after a way through
// run.json, which resuming and reporting take.
func TestClaimsAreRecorded(t *testing.T) {
	e := read(t, "testdata/every-key.yaml")
	text, err := json.Marshal(e.Claims)
	if err != nil {
		t.Fatal(err)
	}
	var again []experiment.Claim
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, e.Claims) {
		t.Errorf("got %+v, %v\nwant %+v", again, err, e.Claims)
	}
}

func TestKindsAndMetricsAreInTheSchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/experiment.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range slices.Concat(experiment.Kinds(), experiment.ClaimMetrics(), experiment.Overs()) {
		if !strings.Contains(string(text), `"`+word+`"`) {
			t.Errorf("the schema does not know %s", word)
		}
	}
}
