package figure

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// Verdict on a pair of cells.
type Verdict int

// Verdicts; the zero one is that nothing could be told.
const (
	Undecided Verdict = iota
	Unchanged
	Better
	Worse
)

// String is the word for a verdict.
func (v Verdict) String() string {
	switch v {
	case Unchanged:
		return "unchanged"
	case Better:
		return "better"
	case Worse:
		return "worse"
	}
	return "undecided"
}

// Ratio is one row of Forest: B over A with its 95 % interval.
type Ratio struct {
	Name             string
	Value, Low, High float64
	// Floor is the change that noise alone may make: 0.05 shades 0.95 to 1.05.
	Floor   float64
	Verdict Verdict
	// Missing is a word instead of figures; else empty.
	Missing string
}

// Comparison of two runs.
type Comparison struct {
	// Metric that was divided, such as "median response time, B ÷ A".
	Metric string
	Rows   []Ratio
}

// Forest draws ratios with their intervals around a line at 1, one row for each,
// coloured and shaped by verdict, the floor of noise shaded behind.
func Forest(t Text, c Comparison) Figure {
	names := make([]string, len(c.Rows))
	words := make([]string, len(c.Rows))
	var present [Worse + 1]bool
	list := make([]Ratio, len(c.Rows))
	for i, r := range c.Rows {
		r = r.sound()
		list[i], names[i], words[i] = r, r.Name, r.words()
		if r.Missing == "" {
			present[r.Verdict] = true
		}
	}
	rs := rows{names: names, above: true, left: 4 * edge, step: aboveStep}
	keys := wrap(forestEntries(present, list))
	height := rs.height() + lineStep*vg.Length(len(keys)) + edge
	return Figure{
		text:  t.or("Ratios with their 95 % intervals, one row for each pair of cells.", words),
		width: pageWidth, height: height,
		paint: func(p pen) {
			p.legend(keys, height-edge)
			x := ratioScale(list, rs.room())
			name := c.Metric
			if x.log {
				name += " (log)"
			}
			f := rs.draw(p, x, fit(name, pageWidth-2*edge))
			for i, r := range list {
				r.draw(p, f, x, f.y(float64(i)))
			}
		},
	}
}

// endless stands for the end of an interval that has none, as that of a ratio to what
// may be 0.
const endless = 1e9

// sound makes a row without a positive ratio one without figures, and takes an
// interval that is none for the value alone.
func (r Ratio) sound() Ratio {
	if r.Missing == "" && (!finite(r.Value) || r.Value <= 0) {
		r.Missing = noValue
	}
	if math.IsInf(r.High, 1) {
		r.High = endless
	}
	if !finite(r.Low) || !finite(r.High) || r.Low > r.Value || r.High < r.Value {
		r.Low, r.High = r.Value, r.Value
	}
	if !finite(r.Floor) || r.Floor < 0 {
		r.Floor = 0
	}
	if r.Verdict < Undecided || r.Verdict > Worse {
		r.Verdict = Undecided
	}
	return r
}

func (r Ratio) words() string {
	if r.Missing != "" {
		return r.Name + ": " + r.Missing
	}
	high := number(r.High)
	if r.High == endless {
		high = "no end"
	}
	return fmt.Sprintf("%s: %s, from %s to %s, %s", r.Name, number(r.Value), number(r.Low), high, r.Verdict)
}

// Bounds of the axis of ratios. What lies beyond is drawn at its end, with an
// arrow.
const (
	ratioLeast = 0.02
	ratioMost  = 50.0
	ratioLog   = 3.0 // from this factor between the ends on, logarithmic
)

// noiseHalf is half the height of the shade of noise.
const noiseHalf vg.Length = 8

func ratioScale(list []Ratio, room vg.Length) scale {
	values := []float64{0.98, 1.02}
	for _, r := range list {
		if r.Missing == "" {
			floor := min(r.Floor, 1)
			values = append(values, r.Low, r.Value, r.High, 1-floor*1.1, 1+floor*1.1)
		}
	}
	low, high, _ := extent(values...)
	low, high = max(low, ratioLeast), min(high, ratioMost)
	if high > ratioLog*low {
		return logarithmic(low/1.08, high*1.08, room)
	}
	side := (high - low) * 0.06
	return linear(low-side, high+side, room)
}

func verdictColor(v Verdict) color.Color {
	switch v {
	case Better:
		return Hue(2)
	case Worse:
		return Hue(1)
	}
	return ink(0xd0)
}

func verdictMark(v Verdict, c vg.Point) vg.Path {
	switch v {
	case Better:
		return markOf(4, c, 4.2)
	case Worse:
		return markOf(2, c, 4.2)
	}
	return circle(c, 3.8)
}

func forestEntries(present [Worse + 1]bool, list []Ratio) []entry {
	var all []entry
	for _, v := range []Verdict{Worse, Better, Unchanged, Undecided} {
		if present[v] {
			all = append(all, entry{v.String(), func(p pen, c vg.Point) { p.verdict(v, c) }})
		}
	}
	for _, r := range list {
		if r.Floor > 0 && r.Missing == "" {
			return append(all, dotEntry("noise", ink(0x22), func(c vg.Point) vg.Path {
				return rectangle(c.X-signWidth/2, c.Y-6, c.X+signWidth/2, c.Y+6)
			}))
		}
	}
	return all
}

// verdict draws its marker, hollow where nothing was decided.
func (p pen) verdict(v Verdict, c vg.Point) {
	if v == Undecided {
		p.stroke(stroke{color: verdictColor(v), width: 1.3}, verdictMark(v, c))
		return
	}
	p.fill(verdictColor(v), verdictMark(v, c))
}

func (r Ratio) draw(p pen, f frame, x scale, y vg.Length) {
	if r.Missing != "" {
		p.write(r.Missing, at(f.area.Min.X+4, y), text.XLeft, text.YCenter)
		return
	}
	if r.Floor > 0 {
		p.fill(ink(0x22), rectangle(f.x(x.clamp(1-min(r.Floor, 1))), y-noiseHalf, f.x(x.clamp(1+r.Floor)), y+noiseHalf))
	}
	p.line(stroke{color: ink(0xc0), width: 1}, at(f.x(1), y-noiseHalf-1), at(f.x(1), y+noiseHalf+1))
	s := stroke{color: verdictColor(r.Verdict), width: 1.6}
	low, high, value := f.x(x.clamp(r.Low)), f.x(x.clamp(r.High)), f.x(x.clamp(r.Value))
	gap := vg.Length(0)
	if r.Verdict == Undecided {
		gap = 3.8 // the marker is hollow
	}
	if value-gap > low {
		p.line(s, at(low, y), at(value-gap, y))
	}
	if value+gap < high {
		p.line(s, at(value+gap, y), at(high, y))
	}
	r.end(p, s, x, at(low, y), -1)
	r.end(p, s, x, at(high, y), 1)
	p.verdict(r.Verdict, at(value, y))
	switch {
	case r.Value > x.max:
		p.write(number(r.Value), at(value-8, y), text.XRight, text.YCenter)
	case r.Value < x.min:
		p.write(number(r.Value), at(value+8, y), text.XLeft, text.YCenter)
	}
}

// end of the interval, to the left for −1 and to the right for 1: a bar, or an
// arrow where it lies beyond the axis.
func (r Ratio) end(p pen, s stroke, x scale, q vg.Point, side vg.Length) {
	v := r.Low
	if side > 0 {
		v = r.High
	}
	switch {
	case v < x.min && side < 0, v > x.max && side > 0:
		p.fill(s.color, arrowhead(at(q.X+side*12, q.Y), side, 0))
	case v != r.Value && x.inside(v):
		p.line(s, at(q.X, q.Y-4), at(q.X, q.Y+4))
	}
}
