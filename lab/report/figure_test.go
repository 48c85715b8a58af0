package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/measure"
)

// The axis in ms for boxes given in ms: whiskers, then outliers.
func TestAxisSpan(t *testing.T) {
	for _, c := range []struct {
		name  string
		boxes []measure.Box
		want  span
	}{
		{"fast cells start at 0", []measure.Box{{Low: 0.1, High: 1}, {Low: 0.4, High: 2}}, span{0, 2.08, 2}},
		{"close cells leave 0 out", []measure.Box{{Low: 40, High: 42}, {Low: 41, High: 50}}, span{39.6, 50.4, 50}},
		{"near outliers are drawn", []measure.Box{{Low: 0.1, High: 1, Outliers: []float64{1.5, 2.5}}}, span{0, 2.6, 2.5}},
		{"far outliers are named", []measure.Box{{Low: 0.1, High: 1, Outliers: []float64{2, 200}}}, span{0, 2.36, 2}},
		{"equal values have a width", []measure.Box{{Low: 10, High: 10}}, span{9.984, 10.016, 10}},
		{"no cell", nil, span{0, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := spanOf(resultsWith(c.boxes))
			for _, v := range [][2]float64{{got.min, c.want.min}, {got.max, c.want.max}, {got.dotsMax, c.want.dotsMax}} {
				if math.Abs(v[0]-v[1]) > 1e-9 {
					t.Fatalf("got %+v, want %+v", got, c.want)
				}
			}
		})
	}
}

func resultsWith(boxes []measure.Box) []Result {
	var results []Result
	for _, b := range boxes {
		b.Low, b.High = b.Low*1e6, b.High*1e6
		var outliers []float64
		for _, v := range b.Outliers {
			outliers = append(outliers, v*1e6)
		}
		b.Outliers = outliers
		results = append(results, Result{Summary: measure.Summary{Requests: 9, N: 9, Times: measure.Times{Box: b}}})
	}
	return results
}

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1.6, "0.0 0.5 1.0 1.5"},
		{9.98, 11.02, "10.0 10.2 10.4 10.6 10.8 11.0"},
		{0, 100, "0 20 40 60 80 100"},
		{0, 0.00035, "0.0000 0.0001 0.0002 0.0003"},
		{62.8, 83.4, "65 70 75 80"},
		{0, 42_000, "0 10000 20000 30000 40000"},
	} {
		var labels []string
		for _, tick := range ticks(c.low, c.high) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%v to %v: got %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

func TestSlowestRequestOffTheAxisIsNamed(t *testing.T) {
	r := small().Results[0]
	r.Summary.Times.Max = 214_300_000
	r.Summary.Times.Box.Outliers = []float64{214.3e6}
	svg, err := drawBoxes([]Result{r}, []string{"direct"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(svg, "→ 214.3<") || !strings.Contains(svg, "axis does not start at 0") {
		t.Errorf("the chart names neither the outlier nor its axis:\n%s", svg)
	}
}

// gonum computes quartiles and outliers by rules of its own; the box must show ours.
func TestBoxShowsItsOwnFigures(t *testing.T) {
	b := measure.Box{Low: 1e6, Q1: 2e6, Median: 3e6, Q3: 4e6, High: 5e6, Outliers: []float64{0.2e6, 9e6, 300e6}}
	p, err := newBox(b, 0, span{min: 0, max: 12, dotsMax: 10})
	if err != nil {
		t.Fatal(err)
	}
	got := []float64{p.AdjLow, p.Quartile1, p.Median, p.Quartile3, p.AdjHigh}
	if !slices.Equal(got, []float64{1, 2, 3, 4, 5}) {
		t.Errorf("drawn at %v, want 1 to 5 ms", got)
	}
	var dots []float64
	for _, i := range p.Outside {
		dots = append(dots, p.Value(i))
	}
	if !slices.Equal(dots, []float64{0.2, 9}) {
		t.Errorf("dots at %v, want 0.2 and 9 ms, and none off the axis", dots)
	}
}
