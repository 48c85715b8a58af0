package figure

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/measure"
)

// strokes are the lines of a colour with at least so many points.
func (d drawing) strokes(color string, points int) []shape {
	return slices.DeleteFunc(slices.Clone(d.paths), func(s shape) bool {
		return !strings.Contains(s.style, "stroke:"+color) || len(s.points) < points
	})
}

func (d drawing) find(t *testing.T, text string) label {
	t.Helper()
	i := slices.IndexFunc(d.texts, func(l label) bool { return l.text == text })
	if i < 0 {
		t.Fatalf("there is no %q among %q", text, d.words())
	}
	return d.texts[i]
}

func TestBoxesAxis(t *testing.T) {
	even := func(low, high float64, outliers ...float64) Box {
		b := measure.Box{Low: low, Q1: low + (high-low)/4, Median: (low + high) / 2, Q3: high - (high-low)/4, High: high, Outliers: outliers}
		for _, v := range []*float64{&b.Low, &b.Q1, &b.Median, &b.Q3, &b.High} {
			*v *= 1e6
		}
		for i := range b.Outliers {
			b.Outliers[i] *= 1e6
		}
		slowest := b.High
		if n := len(outliers); n > 0 {
			slowest = b.Outliers[n-1]
		}
		return Box{Box: b, Slowest: time.Duration(slowest)}
	}
	for _, c := range []struct {
		name   string
		boxes  []Box
		zoomed bool
		// reach is how far from 0, or from the lowest box, dots are drawn.
		reach float64
	}{
		{"from 0 where a box begins in the lower half", []Box{even(4, 10)}, false, 10},
		{"zoomed where all lie in the upper half", []Box{even(20, 21), even(24, 25)}, true, 25},
		{"a near outlier stretches the axis", []Box{even(4, 10, 18)}, false, 18},
		{"a far outlier does not", []Box{even(4, 10, 18, 90)}, false, 18},
		{"boxes without figures do not count", []Box{even(20, 21), {Missing: "rejected"}}, true, 21},
		{"none at all", nil, false, 1},
	} {
		s := boxSpan(c.boxes, 200)
		if s.zoomed != c.zoomed || math.Abs(s.dots-c.reach) > 1e-9 || s.max <= s.dots && s.max != 1 {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	d := inline(t, Boxes(Text{Title: "t"}, []Box{even(4, 10, 18, 90)}))
	if slow := d.find(t, "90"); slow.x < 0.8*d.width {
		t.Errorf("the slowest is named at %g", slow.x)
	}
}

// TestCDFLines: each system has one line, which rises to the nines that its
// number of values can show, and a tail makes the axis logarithmic.
func TestCDFLines(t *testing.T) {
	d := inline(t, CDF(Text{Title: "t"}, []Distribution{{direct, times(100, 20, 0)}, {mesh, times(10000, 20, 0)}}))
	top := map[string]float64{}
	for _, color := range []string{"#0072B2", "#D55E00"} {
		lines := d.strokes(color, 8)
		if len(lines) != 1 {
			t.Fatalf("%s has %d lines", color, len(lines))
		}
		points := lines[0].points
		for i := 1; i < len(points); i++ {
			if points[i][0] < points[i-1][0]-0.02 || points[i][1] > points[i-1][1]+0.02 {
				t.Errorf("%s falls at %v", color, points[i])
			}
		}
		top[color] = points[len(points)-1][1]
	}
	if middle := (d.find(t, "99").y + d.find(t, "90").y) / 2; top["#0072B2"] > middle || top["#0072B2"] < d.find(t, "99.9").y {
		t.Errorf("a hundred values reach %g", top["#0072B2"])
	}
	if top["#D55E00"] > d.find(t, "99.9").y {
		t.Errorf("ten thousand values reach %g", top["#D55E00"])
	}
	d.find(t, "response time, ms (axis not from 0)")
	inline(t, CDF(Text{Title: "t"}, []Distribution{{direct, times(10000, 1, 60)}})).find(t, "response time, ms (log)")
}

// TestCDFThin: what is straight needs two points.
func TestCDFThin(t *testing.T) {
	same := make(measure.Sorted, 1000)
	for i := range same {
		same[i] = 5e6
	}
	if lines := inline(t, CDF(Text{Title: "t"}, []Distribution{{direct, same}})).strokes("#0072B2", 3); len(lines) > 0 {
		t.Errorf("a vertical line has %d points", len(lines[0].points))
	}
}

func TestLinesAxes(t *testing.T) {
	at := func(xs ...float64) Curve {
		c := Curve{System: direct}
		for _, x := range xs {
			c.Levels = append(c.Levels, Level{x, 10 + x, 9 + x, 11 + x})
		}
		return c
	}
	for _, c := range []struct {
		levels []float64
		want   string
	}{
		{[]float64{1, 2, 20}, "threads"},
		{[]float64{1, 2, 21}, "threads (log)"},
		{[]float64{0, 2, 100}, "threads"},
	} {
		d := inline(t, Lines(Text{Title: "t"}, Curves{Factor: Axis{Name: "threads"}, Lines: []Curve{at(c.levels...)}}))
		d.find(t, c.want)
		for _, x := range c.levels {
			if number(x) != "2" { // has no room beside 1 on a linear axis
				d.find(t, number(x))
			}
		}
	}
	d := inline(t, Lines(Text{Title: "t"}, Curves{Lines: []Curve{at(1, 5, 9)}}))
	bars := slices.DeleteFunc(d.strokes("#0072B2", 6), func(s shape) bool { return len(s.points) != 3*6 })
	if len(bars) != 1 {
		t.Errorf("three levels have no three intervals: %d", len(bars))
	}
}

// TestLinesOrder: levels come in any order and are joined in that of X.
func TestLinesOrder(t *testing.T) {
	mixed := inline(t, Lines(Text{Title: "t"}, Curves{Lines: []Curve{{direct, []Level{{9, 3, 3, 3}, {1, 1, 1, 1}, {5, 2, 2, 2}}}}}))
	for _, line := range mixed.strokes("#0072B2", 3) {
		if !slices.IsSortedFunc(line.points, func(a, b [2]float64) int { return compare(a[0], b[0]) }) {
			t.Errorf("the line goes back: %v", line.points)
		}
	}
}

func TestHeatCells(t *testing.T) {
	d := inline(t, examples()["heat"])
	for _, text := range []string{"98", "7.4", "rejected", "no answer", "not run", "per cent of the physical limit"} {
		d.find(t, text)
	}
	// Of twenty cells three have no value; each word has its hatch.
	filled := 0
	for _, p := range d.paths {
		if strings.Contains(p.style, "fill:#") {
			filled++
		}
	}
	if filled != 17 {
		t.Errorf("%d cells are filled", filled)
	}
	words := inline(t, examples()["heat-long"])
	words.find(t, "rejected")
	for _, p := range words.paths {
		if len(p.points) > 8 {
			t.Error("a cell is hatched whose word fits")
		}
	}
}

// TestThinned: of many points few are kept, and no peak is lost.
func TestThinned(t *testing.T) {
	points := make([]measure.Point, 100000)
	for i := range points {
		points[i] = measure.Point{At: time.Duration(i), Low: 100, Median: 100, High: 100}
	}
	points[77777].High, points[33333].Low = 900, 1
	kept := thinned(points, 200)
	if len(kept) > 200 {
		t.Errorf("%d points are kept", len(kept))
	}
	if !slices.Contains(kept, points[77777]) || !slices.Contains(kept, points[33333]) {
		t.Error("a peak is lost")
	}
	if !slices.IsSortedFunc(kept, func(a, b measure.Point) int { return int(a.At - b.At) }) {
		t.Error("the points are out of order")
	}
	if few := thinned(points[:200], 200); len(few) != 200 {
		t.Errorf("of 200 points %d are kept", len(few))
	}
}

func TestTimelinesBound(t *testing.T) {
	d := inline(t, examples()["timelines8"])
	d.find(t, "thread 3, connection 2")
	d.find(t, "and 3 more")
	if words := d.words(); slices.Contains(words, "thread 4, connection 1") {
		t.Error("a ninth connection is drawn")
	}
}

// Events are named with their times, the first of many and how many more there are.
func TestTimelinesMarks(t *testing.T) {
	d := inline(t, examples()["events"])
	d.find(t, "1 s to 2 s: freeze c1/worker")
	d.find(t, "4 s: links change")
	// Also what happened after the last answer, at 0.6 s.
	inline(t, Timelines(Text{}, connections(1, 30), Mark{From: 10 * time.Second})).find(t, "10")
	many := Timelines(Text{}, connections(1, 30), make([]Mark, 20)...)
	if words := inline(t, many).words(); !slices.Contains(words, "and 12 events more") {
		t.Errorf("of 20 events it says %q", words)
	}
	if !strings.Contains(many.Description(), "0 s: ") {
		t.Errorf("in words it is %q", many.Description())
	}
}

// TestTopologyArrows: an arrow ends at each node that a hop leads to.
func TestTopologyArrows(t *testing.T) {
	m := large()
	g := newPlan(m)
	if len(g.routes) != len(m.Hops) {
		t.Fatalf("%d of %d hops are drawn", len(g.routes), len(m.Hops))
	}
	own := *g
	for i, r := range g.routes {
		w := own.way(r, i)
		from, to := g.spots[r.From].box, g.spots[r.To].box
		start, end := w[0], w[len(w)-1]
		if start.X < from.Min.X || start.X > from.Max.X || start.Y < from.Min.Y || start.Y > from.Max.Y {
			t.Errorf("%s leaves at %v, not at %v", r.From, start, from)
		}
		if end.X < to.Min.X || end.X > to.Max.X || !near(end.Y, to.Min.Y) && !near(end.Y, to.Max.Y) && !r.direct {
			t.Errorf("%s is entered at %v, not at %v", r.To, end, to)
		}
		for j := 1; j < len(w); j++ {
			if !near(w[j].X, w[j-1].X) && !near(w[j].Y, w[j-1].Y) {
				t.Errorf("the way to %s is oblique: %v", r.To, w)
			}
		}
		// No arrow runs over a node.
		for key, s := range g.spots {
			inner := s.box
			inner.Min.X, inner.Min.Y, inner.Max.X, inner.Max.Y = inner.Min.X+1, inner.Min.Y+1, inner.Max.X-1, inner.Max.Y-1
			if crossings([]way{w}, inner) > 0 {
				t.Errorf("the way from %s to %s runs over %s", r.From, r.To, key)
			}
		}
	}
	if g.boxes[0].name != "frankfurt" || g.boxes[3].name != "tokyo" {
		t.Errorf("the clusters are not in the order of the request: %v", g.boxes)
	}
}

// TestTopologyHeads: arrowheads point at what they reach.
func TestTopologyHeads(t *testing.T) {
	var ways []string
	for _, p := range inline(t, examples()["topology"]).paths {
		if len(p.points) != 3 || !strings.Contains(p.style, "fill:#0072B2") {
			continue
		}
		tip, back := p.points[0], [2]float64{(p.points[1][0] + p.points[2][0]) / 2, (p.points[1][1] + p.points[2][1]) / 2}
		switch {
		case tip[0] < back[0]-1:
			ways = append(ways, "left")
		case tip[1] > back[1]+1:
			ways = append(ways, "down")
		case tip[1] < back[1]-1:
			ways = append(ways, "up")
		}
	}
	if !slices.Equal(ways, []string{"left", "down", "up"}) {
		t.Errorf("from the client to the gateway, down to the hub, up into the service: %q", ways)
	}
}

// TestForestMarks: what was decided can be told without colour.
func TestForestMarks(t *testing.T) {
	f := Forest(Text{Title: "t"}, Comparison{Metric: "B ÷ A", Rows: []Ratio{
		{Name: "one", Value: 1.2, Low: 1.1, High: 1.3, Floor: 0.05, Verdict: Worse},
		{Name: "two", Value: 0.8, Low: 0.7, High: 0.9, Floor: 0.05, Verdict: Better},
		{Name: "three", Missing: "rejected"},
	}})
	d := inline(t, f)
	for _, text := range []string{"worse", "better", "noise", "one", "two", "three", "rejected"} {
		d.find(t, text)
	}
	if words := d.words(); slices.Contains(words, "unchanged") || slices.Contains(words, "undecided") {
		t.Errorf("the legend names what is not there: %q", words)
	}
	if want := "one: 1.2, from 1.1 to 1.3, worse; two: 0.8, from 0.7 to 0.9, better; three: rejected."; !strings.HasSuffix(f.Description(), want) {
		t.Errorf("the description is %q", f.Description())
	}
	open := Forest(Text{Title: "t"}, Comparison{Metric: "B ÷ A", Rows: []Ratio{{Name: "one", Value: 2, Low: 1.5, High: math.Inf(1), Verdict: Worse}}})
	if want := "one: 2, from 1.5 to no end, worse."; !strings.HasSuffix(open.Description(), want) {
		t.Errorf("the description of an interval without an end is %q", open.Description())
	}
	far := inline(t, examples()["forest-far"])
	if l := far.find(t, "90"); l.x < far.width/2 {
		t.Errorf("a ratio beyond the axis is written at %g", l.x)
	}
}

// TestBars: bars of a column are as long as their values are large.
func TestBars(t *testing.T) {
	d := inline(t, Resources(Text{Title: "t"}, Uses{CPU: "CPU", Rows: []Use{
		{direct, "a", "n", 3, 8 << 20}, {direct, "b", "n", 12, 2 << 20}, {direct, "c", "n", math.NaN(), 0},
	}}))
	var lengths []float64
	for _, p := range d.paths {
		if strings.Contains(p.style, "fill:#0072B2") {
			lengths = append(lengths, p.points[1][0]-p.points[0][0])
		}
	}
	if len(lengths) != 4 || math.Abs(lengths[1]/lengths[0]-4) > 0.01 || math.Abs(lengths[2]/lengths[3]-4) > 0.01 {
		t.Errorf("the bars of 3, 12, 8 and 2 are %v long", lengths)
	}
	for _, text := range []string{"a on n", "3", "12", "8", "2", "–", "0", "CPU, ms", "peak memory, MiB"} {
		d.find(t, text)
	}
}

func TestDescriptionIsKept(t *testing.T) {
	f := CDF(Text{Title: "t", Description: "Mine."}, []Distribution{{direct, times(10, 1, 1)}})
	if f.Description() != "Mine." {
		t.Errorf("the description is %q", f.Description())
	}
	many := make([]Box, 100)
	for i := range many {
		many[i] = Box{Missing: "not run"}
	}
	if text := Boxes(Text{}, many).Description(); !strings.HasSuffix(text, "and 76 more.") {
		t.Errorf("a hundred rows are described as %q", text)
	}
}
