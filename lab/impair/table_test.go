package impair_test

import (
	"math"
	"testing"

	"skerry.dev/skerry/lab/impair"
)

func TestNewTable(t *testing.T) {
	table, mean, deviation, err := impair.NewTable([]float64{9, 1, 5, 5})
	if err != nil || mean != 5 || deviation != math.Sqrt(8) {
		t.Fatalf("%g ± %g, %v, want 5 ± %g", mean, deviation, err, math.Sqrt(8))
	}
	// Each value is that of its share of all packets, the repeated one of two.
	for _, c := range []struct{ p, want float64 }{
		{0, 1}, {0.2499, 1}, {0.25, 5}, {0.5, 5}, {0.7499, 5}, {0.75, 9}, {1, 9},
	} {
		if got := mean + deviation*table.Quantile(c.p); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("quantile %g is %g, want %g", c.p, got, c.want)
		}
	}
	many := make([]float64, 100_000)
	for i := range many {
		many[len(many)-1-i] = float64(i)
	}
	if table, mean, deviation, err = impair.NewTable(many); err != nil {
		t.Fatal(err)
	}
	for _, p := range []float64{0.01, 0.3, 0.5, 0.999} {
		if got := mean + deviation*table.Quantile(p); math.Abs(got/1e5-p) > 1./4096 {
			t.Errorf("of 0 to 99999, quantile %g is %g", p, got)
		}
	}
}

func TestTablesOfNothing(t *testing.T) {
	for _, values := range [][]float64{nil, {3}, {3, 3}, {math.Inf(1), 3}, {math.NaN(), 3}} {
		if table, _, _, err := impair.NewTable(values); err == nil || table != nil {
			t.Errorf("%v make a table", values)
		}
	}
	for _, values := range [][]float64{nil, {3}, {3, 3}} {
		if table, err := impair.ScaledTable(values); err == nil || table != nil {
			t.Errorf("%v make a table", values)
		}
	}
}

// A file's jitter follows its table, and reaches as far as that.
func TestQuantileOfAFile(t *testing.T) {
	table, err := impair.ScaledTable([]float64{-1, 0, 0, 5})
	if err != nil {
		t.Fatal(err)
	}
	i := impair.Impairment{Delay: 5 * ms, Jitter: 2 * ms, Distribution: "wan.csv", Table: table}
	if i.Quantile(0.1) != -1 || i.Quantile(0.5) != 0 || i.Quantile(0.8) != 5 || i.Reach() != 10*ms {
		t.Errorf("quantiles %g, %g, %g, reach %s", i.Quantile(0.1), i.Quantile(0.5), i.Quantile(0.8), i.Reach())
	}
	i.Table = nil
	if i.Quantile(0.8) != impair.Uniform.Quantile(0.8) || i.Reach() != 2*ms {
		t.Errorf("not read its quantile is %g, its reach %s", i.Quantile(0.8), i.Reach())
	}
	i.Table, i.Distribution = table, impair.Normal
	if i.Quantile(0.5) != impair.Normal.Quantile(0.5) || i.Reach() != 8*ms {
		t.Errorf("another distribution follows the table")
	}
	together := impair.Stages{{Delay: ms}, {Delay: ms, Jitter: ms, Distribution: "wan.csv", Table: table}}.Together()
	if together.Table != table || together.Distribution != "wan.csv" {
		t.Errorf("together they are %+v", together)
	}
}
