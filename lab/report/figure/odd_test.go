package figure

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/measure"
)

// everyKind is a figure of every kind in which every text is the same.
func everyKind(name string, s System) map[string]Figure {
	text := Text{Title: name}
	node := name + "/" + name
	return map[string]Figure{
		"boxes":     Boxes(text, []Box{{System: s, Missing: name}, box(s, times(9, 1, 1))}),
		"cdf":       CDF(text, []Distribution{{s, times(9, 1, 1)}}),
		"lines":     Lines(text, Curves{Axis{name, name}, Axis{name, name}, []Curve{{s, []Level{{1, 2, 1, 3}}}}, []Level{{X: 1, Value: 1}}}),
		"heat":      Heat(text, Grid{[]string{name}, []string{name, name}, [][]Share{{{Missing: name}, {Value: 1}}}}),
		"first":     First(text, []FirstRequest{{System: s, Missing: name}, {System: s, First: []float64{2}, Later: 1}}),
		"timelines": Timelines(text, connections(1, 3)),
		"topology":  Topology(text, Map{[]Cluster{{name, []Node{{name, name}, {"b", ""}}}}, []Hop{{node, name + "/b", name}}}),
		"resources": Resources(text, Uses{name, []Use{{s, name, name, 1, 1}}}),
		"forest":    Forest(text, Comparison{name, []Ratio{{Name: name, Missing: name}, {Name: name, Value: 1, Low: 1, High: 1}}}),
	}
}

var odd = []float64{
	0, 1, -1, 1e-9, 1e-300, 5e-324, 1e9, 1e14, 1e15, 1e300, -1e300, math.MaxFloat64,
	math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 20.000000001, 20,
}

// TestOddInput: whatever the data, a figure is drawn and all of it lies inside.
func TestOddInput(t *testing.T) {
	s := System{"a", -7}
	text := Text{Title: "t"}
	figures := map[string]Figure{
		"boxes of nothing":     Boxes(text, nil),
		"cdf of nothing":       CDF(text, nil),
		"cdf of no values":     CDF(text, []Distribution{{s, nil}}),
		"lines of nothing":     Lines(text, Curves{}),
		"lines without levels": Lines(text, Curves{Lines: []Curve{{System: s}}}),
		"only an oracle":       Lines(text, Curves{Oracle: []Level{{X: 1, Value: 1}}}),
		"heat of nothing":      Heat(text, Grid{}),
		"rows without columns": Heat(text, Grid{Rows: []string{"a"}}),
		"columns without rows": Heat(text, Grid{Columns: []string{"a"}}),
		"heat without cells":   Heat(text, Grid{Rows: []string{"a", "b"}, Columns: []string{"a", "b"}}),
		"first of nothing":     First(text, nil),
		"first without any":    First(text, []FirstRequest{{System: s, Later: 1}}),
		"no timeline":          Timelines(text, nil),
		"timeline of nothing":  Timelines(text, make([]measure.Timeline, 3)),
		"no topology":          Topology(text, Map{}),
		"no nodes":             Topology(text, Map{Clusters: make([]Cluster, 3)}),
		"unknown nodes":        Topology(text, Map{[]Cluster{{"a", []Node{{"b", ""}}}}, []Hop{{"a/b", "x/y", "1ms"}, {"a/b", "a/b", ""}}}),
		"resources of nothing": Resources(text, Uses{}),
		"forest of nothing":    Forest(text, Comparison{}),
	}
	for i, v := range odd {
		w := odd[(i+1)%len(odd)]
		name := fmt.Sprintf(" %g %g", v, w)
		d := time.Duration(math.Min(math.Max(v, -1e18), 1e18))
		figures["boxes"+name] = Boxes(text, []Box{{System: s, Slowest: d,
			Box: measure.Box{Low: v, Q1: v, Median: v, Q3: w, High: w, Outliers: []float64{v, w}}}})
		figures["cdf"+name] = CDF(text, []Distribution{{s, measure.Sort([]float64{v})}, {s, measure.Sort([]float64{v, w})}})
		figures["lines"+name] = Lines(text, Curves{Lines: []Curve{{s, []Level{{v, w, v, w}, {w, v, w, v}, {1, v, v, v}}}}})
		figures["heat"+name] = Heat(text, Grid{[]string{"a"}, []string{"a"}, [][]Share{{{Value: v}}, {{Value: w}, {}}}})
		figures["first"+name] = First(text, []FirstRequest{{System: s, First: []float64{v, w}, Later: v}})
		figures["timelines"+name] = Timelines(text, []measure.Timeline{{Points: []measure.Point{{At: d, Low: d, Median: d, High: d}}}})
		figures["resources"+name] = Resources(text, Uses{Rows: []Use{{s, "a", "", v, w}, {s, "b", "", w, v}}})
		figures["forest"+name] = Forest(text, Comparison{Rows: []Ratio{{Value: v, Low: w, High: v, Floor: w, Verdict: Verdict(i)}, {Value: 1, Low: v, High: w}}})
	}
	for name, f := range figures {
		t.Run(name, func(t *testing.T) { inline(t, f).check(t) })
	}
}

// TestOddPDF: the PDF library panics more easily than the one for SVG.
func TestOddPDF(t *testing.T) {
	for kind, f := range everyKind("日本語 → €", System{"日本語", 3}) {
		var pdf bytes.Buffer
		if err := f.WritePDF(&pdf); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestAnyTopology draws labs and ways at random.
func TestAnyTopology(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var m Map
		var nodes []string
		for i := range 1 + rng.IntN(5) {
			c := Cluster{Name: strings.Repeat("c", 1+rng.IntN(15)) + fmt.Sprint(i)}
			for j := range rng.IntN(8) {
				n := Node{Name: fmt.Sprintf("%s%d", strings.Repeat("n", 1+rng.IntN(13)), j)}
				if rng.IntN(4) == 0 {
					n.Role = "service"
				}
				c.Nodes = append(c.Nodes, n)
				nodes = append(nodes, c.Name+"/"+n.Name)
			}
			m.Clusters = append(m.Clusters, c)
		}
		for range rng.IntN(9) {
			if len(nodes) > 0 {
				m.Hops = append(m.Hops, Hop{nodes[rng.IntN(len(nodes))], nodes[rng.IntN(len(nodes))], strings.Repeat("9ms ", rng.IntN(20))})
			}
		}
		d := inline(t, Topology(Text{Title: "t"}, m))
		d.check(t)
		arrows := 0
		for _, h := range m.Hops {
			if h.From != h.To {
				arrows++
			}
		}
		if have := strings.Count(d.structure(), "fill #0072B2"); arrows > 0 && have == 0 {
			t.Errorf("no arrow of %v", m)
		}
	}
}
