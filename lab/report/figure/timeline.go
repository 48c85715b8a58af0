package figure

import (
	"fmt"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"skerry.dev/skerry/lab/measure"
)

// Bounds of Timelines.
const (
	connectionsMax = 8
	// momentsMax bounds the points of all lines together.
	momentsMax = 1600
	// marksMax bounds the events, marksNamed those that are named below.
	marksMax, marksNamed = 100, 8
)

// Mark is an event on the time of a figure, from the first request on.
type Mark struct {
	Name string
	// From when it was in force, and Until when; 0 where it had no end.
	From, Until time.Duration
}

// Heights in Timelines: of all strips together, of one at least, and of the name
// above it.
const (
	stripsHeight vg.Length = 170
	stripLeast   vg.Length = 36
	stripName    vg.Length = 21
)

// Timelines draws response times over the time of a repetition: one strip below
// the other for at most 8 connections, all with the same axes, or the median
// within a band from low to high where all are together. Of a line with many
// points, the lowest and highest of each part of the time are kept, so that no
// peak is lost. More than 8 connections are counted in a note. Marks lie behind all
// lines, and are named below them.
func Timelines(t Text, given []measure.Timeline, marks ...Mark) Figure {
	lines := given[:min(len(given), connectionsMax)]
	marks = marks[:min(len(marks), marksMax)]
	names := markNames(marks)
	strip := stripName + max(stripLeast, stripsHeight/vg.Length(max(len(lines), 1)))
	bottom := edge + nameHeight + tickHeight
	if more := len(given) - len(lines); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	bottom += lineStep * vg.Length(len(names))
	height := edge + strip*vg.Length(max(len(lines), 1)) + bottom
	return Figure{
		text:  t.or("Response time in ms over the time of a repetition.", append(timelineWords(given), markWords(marks)...)),
		width: pageWidth, height: height,
		paint: func(p pen) {
			x, y, zoomed := moments(lines, marks, strip-stripName)
			name := axisName("response time, ms", y, zoomed)
			if len(lines) > 0 {
				name = fit(name, pageWidth-6*edge-widthOf(timelineName(lines[0])))
			}
			p.write(name, at(edge, height-edge-1), text.XLeft, text.YTop)
			for i, name := range names {
				p.write(fit(name, pageWidth-2*edge), at(edge, edge+lineStep*vg.Length(len(names)-1-i)), text.XLeft, text.YBottom)
			}
			if len(lines) == 0 {
				p.chart(x, y, vg.Rectangle{Min: at(edge, bottom-tickHeight), Max: at(pageWidth-4*edge, height-stripName-edge)})
			}
			bare := x
			bare.ticks = nil
			for i, l := range lines {
				s := scales{bare, y}
				if i == len(lines)-1 {
					s.x = x
				}
				top := height - edge - strip*vg.Length(i)
				p.timeline(l, i, s, marks, vg.Rectangle{
					Min: at(edge, top-strip), Max: at(pageWidth-4*edge, top)})
			}
			p.write("time since the first request, s", at(pageWidth/2, bottom-tickHeight-nameHeight+2), text.XCenter, text.YBottom)
		},
	}
}

// scales of a strip: only that of the last one labels the time below it.
type scales struct{ x, y scale }

func (p pen) timeline(l measure.Timeline, i int, s scales, marks []Mark, strip vg.Rectangle) {
	p.write(timelineName(l), at(strip.Max.X, strip.Max.Y-1), text.XRight, text.YTop)
	strip.Max.Y -= stripName
	if len(s.x.ticks) > 0 {
		strip.Min.Y -= tickHeight
	}
	f := p.chart(s.x, s.y, strip)
	for _, m := range marks {
		p.mark(m, f, s.x)
	}
	drawTimeline(p, f, thinned(l.Points, momentsMax/connectionsMax), i)
}

// mark draws an event over the height of a strip: a line where it begins, and grey
// until it ends.
func (p pen) mark(m Mark, f frame, x scale) {
	low, high := f.area.Min.Y, f.area.Max.Y
	from, until := f.x(x.clamp(m.From.Seconds())), f.x(x.clamp(m.Until.Seconds()))
	if m.Until > m.From && until > from {
		p.fill(ink(28), rectangle(from, low, until, high))
	}
	if x.inside(m.From.Seconds()) {
		p.line(stroke{color: ink(160), width: 0.8, dash: dashOf(1)}, at(from, low), at(from, high))
	}
}

// markNames are what stands below the lines: of each event when and what.
func markNames(marks []Mark) (all []string) {
	for i, words := range markWords(marks) {
		if i == marksNamed {
			return append(all, fmt.Sprintf("and %d events more", len(marks)-i))
		}
		all = append(all, words)
	}
	return all
}

func markWords(marks []Mark) (all []string) {
	for _, m := range marks {
		words := fmt.Sprintf("%s s: %s", number(m.From.Seconds()), m.Name)
		if m.Until > m.From {
			words = fmt.Sprintf("%s s to %s s: %s", number(m.From.Seconds()), number(m.Until.Seconds()), m.Name)
		}
		all = append(all, words)
	}
	return all
}

func timelineName(l measure.Timeline) string {
	if l.Connection < 0 {
		return "median of all, from lowest to highest"
	}
	return fmt.Sprintf("thread %d, connection %d", l.Thread, l.Connection)
}

func timelineWords(lines []measure.Timeline) []string {
	all := make([]string, len(lines))
	for i, l := range lines {
		var values []float64
		for _, m := range l.Points {
			values = append(values, ms(m.Low), ms(m.High))
		}
		low, high, found := extent(values...)
		if all[i] = timelineName(l) + ": " + noValue; found {
			all[i] = fmt.Sprintf("%s: between %s and %s", timelineName(l), number(low), number(high))
		}
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// moments are the axes for all lines and marks: after the last answer something may
// have happened that says why there was none.
func moments(lines []measure.Timeline, marks []Mark, tall vg.Length) (x, y scale, zoomed bool) {
	var xs, ys []float64
	for _, l := range lines {
		for _, m := range l.Points {
			xs, ys = append(xs, m.At.Seconds()), append(ys, ms(m.Low), ms(m.High))
		}
	}
	low, high, found := extent(xs...)
	for _, m := range marks {
		high = max(high, m.From.Seconds(), m.Until.Seconds())
	}
	if !found {
		return linear(0, 1, pageWidth-60), linear(0, 1, tall), false
	}
	x = linear(min(low, 0), max(high, 1e-6), pageWidth-60)
	low, high, _ = extent(ys...)
	y, zoomed = span(low, high, tall*1.6)
	return x, y, zoomed
}

// thinned keeps about n points: of each part of the line its first, its lowest
// and its highest.
func thinned(points []measure.Point, n int) []measure.Point {
	if len(points) <= n {
		return points
	}
	parts := n / 3
	kept := make([]measure.Point, 0, n)
	for i := range parts {
		part := points[i*len(points)/parts : (i+1)*len(points)/parts]
		low, high := 0, 0
		for j, m := range part {
			if m.Low < part[low].Low {
				low = j
			}
			if m.High > part[high].High {
				high = j
			}
		}
		for j, m := range part {
			if j == 0 || j == low || j == high {
				kept = append(kept, m)
			}
		}
	}
	return kept
}

func drawTimeline(p pen, f frame, points []measure.Point, i int) {
	if len(points) == 0 {
		return
	}
	var upper, lower, middle []vg.Point
	band := false
	for _, m := range points {
		x := f.x(m.At.Seconds())
		upper, lower = append(upper, at(x, f.y(ms(m.High)))), append(lower, at(x, f.y(ms(m.Low))))
		middle = append(middle, at(x, f.y(ms(m.Median))))
		band = band || m.Low < m.High
	}
	if len(points) == 1 {
		p.fill(Hue(i), markOf(i, middle[0], 3))
	}
	if band {
		for j := len(lower) - 1; j >= 0; j-- {
			upper = append(upper, lower[j])
		}
		p.fill(faded(Hue(i), 0x50), polygon(upper...))
	}
	p.line(stroke{color: Hue(i), width: 1.1}, middle...)
}
