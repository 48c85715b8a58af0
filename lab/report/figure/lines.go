package figure

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// Axis is what a number means: a Name and a Unit, which may be empty.
type Axis struct{ Name, Unit string }

// Curves is a metric at the levels of a factor.
type Curves struct {
	Factor, Metric Axis
	Lines          []Curve
	// Oracle is what physics would allow, dashed; its Low and High are not used.
	Oracle []Level
}

// Curve is one system's line.
type Curve struct {
	System System
	Levels []Level
}

// Level is a figure at X with its 95 % interval, in the units of the axes. Low
// and High that are NaN or equal Value draw no interval.
type Level struct{ X, Value, Low, High float64 }

const (
	linesArea = vg.Length(180)
	// labelMax is how wide a label may be that stands at its line's end.
	labelMax vg.Length = 84
)

// Lines draws curves with their intervals. An axis whose levels are positive
// and differ by more than a factor of 20 is logarithmic. Systems stand side by
// side at a level, up to 3 points apart, so that their intervals can be told
// apart.
func Lines(t Text, c Curves) Figure {
	c = c.sound()
	x, y := c.scales()
	labels := c.labels(y)
	var keys [][]entry
	right := 4 * edge
	if labels == nil {
		keys = wrap(c.entries())
	} else {
		right = labelMax + 4*edge
	}
	x.ticks = spread(x.ticks, func(v float64) vg.Length { return x.along(v) * (pageWidth - 44 - right) })
	top := lineStep*vg.Length(len(keys)+1) + 2*edge
	height := top + linesArea + tickHeight + nameHeight + edge
	return Figure{
		text:  t.or(fmt.Sprintf("%s by %s, one line for each system.", c.Metric, c.Factor), c.words()),
		width: pageWidth, height: height,
		paint: func(p pen) {
			p.legend(keys, height-edge)
			p.write(fit(axisName(c.Metric.String(), y, y.min > 0), pageWidth-2*edge), at(edge, height-top+edge), text.XLeft, text.YBottom)
			f := p.chart(x, y, vg.Rectangle{
				Min: at(edge, edge+nameHeight), Max: at(pageWidth-right, height-top)})
			p.nameX(f, edge, fit(axisName(c.Factor.String(), x, false), pageWidth-2*edge))
			p.line(oracleStroke(), places(f, c.Oracle, 0)...)
			for i, l := range c.Lines {
				l.draw(p, f, dodge(i, len(c.Lines)))
			}
			for _, l := range labels {
				p.write(l.name, at(f.area.Max.X+9, f.y(l.value)), text.XLeft, text.YCenter)
			}
		},
	}
}

func oracleStroke() stroke {
	return stroke{color: ink(0xb0), width: 1.1, dash: []vg.Length{2, 2}}
}

// oracleName is the label of the dashed line.
const oracleName = "oracle"

// sound leaves out what is not a number and orders the levels by X.
func (c Curves) sound() Curves {
	clean := func(levels []Level) []Level {
		levels = slices.DeleteFunc(slices.Clone(levels), func(l Level) bool { return !finite(l.X) || !finite(l.Value) })
		slices.SortStableFunc(levels, func(a, b Level) int { return compare(a.X, b.X) })
		for i, l := range levels {
			if !finite(l.Low) || !finite(l.High) {
				levels[i].Low, levels[i].High = l.Value, l.Value
			}
		}
		return levels
	}
	lines := make([]Curve, len(c.Lines))
	for i, l := range c.Lines {
		lines[i] = Curve{l.System, clean(l.Levels)}
	}
	c.Lines, c.Oracle = lines, clean(c.Oracle)
	return c
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (c Curves) scales() (x, y scale) {
	var xs, ys []float64
	for _, l := range c.Lines {
		for _, v := range l.Levels {
			xs, ys = append(xs, v.X), append(ys, v.Value, v.Low, v.High)
		}
	}
	for _, v := range c.Oracle {
		xs, ys = append(xs, v.X), append(ys, v.Value)
	}
	low, high, found := extent(xs...)
	switch {
	case !found:
		x = linear(0, 1, pageWidth)
	case low > tiny*high && high > logFrom*low:
		x = logarithmic(low, high, pageWidth)
	default:
		x = linear(low, high, pageWidth)
	}
	if found {
		x.ticks = levelTicks(xs)
	}
	low, high, _ = extent(ys...)
	if y, _ = span(low, high, linesArea*1.6); !found {
		y = linear(0, 1, linesArea)
	}
	return x, y
}

// levelTicks are the levels themselves: there is nothing between them.
func levelTicks(xs []float64) []plot.Tick {
	xs = slices.Clone(xs)
	slices.SortFunc(xs, compare)
	var all []plot.Tick
	for _, v := range slices.Compact(xs) {
		all = append(all, plot.Tick{Value: v, Label: number(v)})
	}
	return all
}

// along is where a value lies on the axis, from 0 to 1.
func (s scale) along(v float64) vg.Length {
	if s.log {
		return vg.Length(math.Log(v/s.min) / math.Log(s.max/s.min))
	}
	return vg.Length((v - s.min) / (s.max - s.min))
}

func (c Curves) entries() []entry {
	var all []entry
	for _, l := range c.Lines {
		all = append(all, systemEntry(l.System))
	}
	if len(c.Oracle) > 0 {
		all = append(all, entry{oracleName, func(p pen, q vg.Point) {
			p.line(oracleStroke(), at(q.X-signWidth/2, q.Y), at(q.X+signWidth/2, q.Y))
		}})
	}
	return all
}

// endLabel is a name beside the value that a line ends at.
type endLabel struct {
	name  string
	value float64
}

// labels at the ends of lines; none where they would touch, are too wide or
// belong to lines that end early: a legend serves then.
func (c Curves) labels(y scale) []endLabel {
	var all []endLabel
	_, last := c.ends()
	add := func(name string, levels []Level) bool {
		if len(levels) == 0 || levels[len(levels)-1].X < last || widthOf(printable(name)) > labelMax {
			return false
		}
		all = append(all, endLabel{printable(name), levels[len(levels)-1].Value})
		return true
	}
	for _, l := range c.Lines {
		if !add(l.System.Name, l.Levels) {
			return nil
		}
	}
	if len(c.Oracle) > 0 && !add(oracleName, c.Oracle) {
		return nil
	}
	slices.SortStableFunc(all, func(a, b endLabel) int { return compare(a.value, b.value) })
	if len(all) > 0 && y.along(all[0].value)*linesArea < lineStep/2 {
		return nil // it would touch the axis' labels
	}
	for i := 1; i < len(all); i++ {
		if linesArea*(y.along(all[i].value)-y.along(all[i-1].value)) < lineStep {
			return nil
		}
	}
	return all
}

func (c Curves) ends() (low, high float64) {
	var xs []float64
	for _, l := range c.Lines {
		for _, v := range l.Levels {
			xs = append(xs, v.X)
		}
	}
	low, high, _ = extent(xs...)
	return low, high
}

// dodge is how far line i of n stands to the side.
func dodge(i, n int) vg.Length {
	return (vg.Length(i) - vg.Length(n-1)/2) * min(3, 8/vg.Length(max(n-1, 1)))
}

func places(f frame, levels []Level, aside vg.Length) []vg.Point {
	points := make([]vg.Point, len(levels))
	for i, l := range levels {
		points[i] = at(f.x(l.X)+aside, f.y(l.Value))
	}
	return points
}

func (l Curve) draw(p pen, f frame, aside vg.Length) {
	points := places(f, l.Levels, aside)
	p.line(lineOf(l.System.Index), points...)
	var bars, marks vg.Path
	for i, v := range l.Levels {
		marks = append(marks, markOf(l.System.Index, points[i], 3)...)
		if v.Low >= v.High {
			continue
		}
		x, low, high := points[i].X, f.y(v.Low), f.y(v.High)
		bars = append(bars, pathOf([]vg.Point{at(x-3, low), at(x+3, low)})...)
		bars = append(bars, pathOf([]vg.Point{at(x, low), at(x, high)})...)
		bars = append(bars, pathOf([]vg.Point{at(x-3, high), at(x+3, high)})...)
	}
	p.stroke(stroke{color: Hue(l.System.Index), width: 1}, bars)
	if len(marks) > 0 {
		p.fill(Hue(l.System.Index), marks)
	}
}

func (c Curves) words() []string {
	all := make([]string, len(c.Lines))
	for i, l := range c.Lines {
		if len(l.Levels) == 0 {
			all[i] = l.System.Name + ": " + noValue
			continue
		}
		first, last := l.Levels[0], l.Levels[len(l.Levels)-1]
		all[i] = fmt.Sprintf("%s: %s at %s, %s at %s", l.System.Name,
			number(first.Value), number(first.X), number(last.Value), number(last.X))
	}
	return all
}
