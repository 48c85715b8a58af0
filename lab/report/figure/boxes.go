package figure

import (
	"fmt"
	"strings"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"skerry.dev/skerry/lab/measure"
)

// Box is one row of Boxes.
type Box struct {
	System System
	// Box of the response times, in ns.
	Box measure.Box
	// Slowest response time: its value is written where it lies off the axis.
	Slowest time.Duration
	// Missing is a word instead of a box, such as "rejected"; else empty.
	Missing string
}

// Boxes draws box plots of response times, one row for each, the first on top.
// Whiskers and outliers are as measure.Box has them.
func Boxes(t Text, boxes []Box) Figure {
	return boxPlots(t.or("Box plots of response times in ms, one row for each system.", words(boxes)), "response time, ms", boxes)
}

// Jitter draws box plots of how much later packets arrive than a cycle after the one
// before each.
func Jitter(t Text, boxes []Box) Figure {
	return boxPlots(t.or("Box plots of jitter in ms, one row for each system.", words(boxes)), "arrival less (the one before + a cycle), ms", boxes)
}

func words(boxes []Box) []string {
	all := make([]string, len(boxes))
	for i, b := range boxes {
		all[i] = b.words()
	}
	return all
}

func boxPlots(t Text, axis string, boxes []Box) Figure {
	names := make([]string, len(boxes))
	for i, b := range boxes {
		names[i] = b.System.Name
	}
	r := rowsOf(names)
	return Figure{
		text:  t,
		width: pageWidth, height: r.height(),
		paint: func(p pen) {
			s := boxSpan(boxes, r.room())
			f := r.draw(p, s.scale, axisName(axis, s.scale, s.zoomed))
			for i, b := range boxes {
				b.draw(p, f, f.y(float64(i)), s)
			}
		},
	}
}

func (b Box) missing() string {
	if b.Missing == "" && !(finite(b.Box.Low) && finite(b.Box.Q1) && finite(b.Box.Median) && finite(b.Box.Q3) && finite(b.Box.High)) {
		return noValue
	}
	return b.Missing
}

func (b Box) words() string {
	if word := b.missing(); word != "" {
		return b.System.Name + ": " + word
	}
	return fmt.Sprintf("%s: median %s, half of all between %s and %s", b.System.Name,
		number(b.Box.Median/1e6), number(b.Box.Q1/1e6), number(b.Box.Q3/1e6))
}

// boxScale is the axis of Boxes.
type boxScale struct {
	scale
	zoomed bool
	// dots ends the part where outliers are drawn; slower ones are named.
	dots float64
}

// Shape of the axis of Boxes.
const (
	// stretchMax: outliers may stretch the axis to this multiple of the part
	// that the whiskers need; slower ones are named in the margin.
	stretchMax = 2.0
	// margin is left of the axis' length for dots and names.
	margin      = 0.04
	marginNames = 0.22
)

func boxSpan(boxes []Box, room vg.Length) boxScale {
	var ends, outliers []float64
	for _, b := range boxes {
		if b.missing() != "" {
			continue
		}
		ends = append(ends, b.Box.Low/1e6, b.Box.High/1e6)
		for _, v := range append(b.Box.Outliers, float64(b.Slowest)) {
			outliers = append(outliers, v/1e6)
		}
	}
	low, whisker, found := extent(ends...)
	if !found || whisker < tiny {
		return boxScale{scale: linear(0, 1, room), dots: 1}
	}
	s := boxScale{dots: whisker, zoomed: low > zoomShare*whisker}
	var from float64
	if s.zoomed || low < 0 {
		from = low
	}
	bound := from + stretchMax*max(whisker-from, margin*whisker)
	spare := margin
	for _, v := range outliers {
		switch {
		case !finite(v) || v < whisker:
		case v <= bound:
			s.dots = max(s.dots, v)
		default:
			spare = marginNames
		}
	}
	length := max(s.dots-from, margin*whisker)
	switch {
	case s.zoomed:
		from = max(from-margin*length, 0)
	case low < 0:
		from -= margin * length
	}
	s.scale = linear(from, s.dots+spare*length, room)
	return s
}

const boxHalf vg.Length = 6.5

func (b Box) draw(p pen, f frame, y vg.Length, s boxScale) {
	if word := b.missing(); word != "" {
		p.write(word, at(f.area.Min.X+4, y), text.XLeft, text.YCenter)
		return
	}
	x := func(ns float64) vg.Length { return f.x(s.clamp(ns / 1e6)) }
	low, q1, median, q3, high := x(b.Box.Low), x(b.Box.Q1), x(b.Box.Median), x(b.Box.Q3), x(b.Box.High)
	hue := Hue(b.System.Index)
	thin := stroke{color: hue, width: 1.2}
	p.fill(faded(hue, 0x58), rectangle(q1, y-boxHalf, q3, y+boxHalf))
	p.stroke(thin, rectangle(q1, y-boxHalf, q3, y+boxHalf))
	var whiskers, dots vg.Path
	for _, ends := range [][2]vg.Length{{low, q1}, {high, q3}} {
		whiskers = append(whiskers, pathOf([]vg.Point{at(ends[0], y-boxHalf/2), at(ends[0], y+boxHalf/2)})...)
		whiskers = append(whiskers, pathOf([]vg.Point{at(ends[0], y), at(ends[1], y)})...)
	}
	p.stroke(thin, whiskers)
	for _, v := range b.Box.Outliers {
		if v /= 1e6; finite(v) && s.inside(v) && v <= s.dots {
			dots = append(dots, diamond(at(f.x(v), y), 1.9)...)
		}
	}
	if len(dots) > 0 {
		p.fill(hue, dots)
	}
	p.line(stroke{color: ink(0xff), width: 2}, at(median, y-boxHalf), at(median, y+boxHalf))
	if slowest := float64(b.Slowest) / 1e6; slowest > s.dots {
		end := f.area.Max.X + 6
		p.fill(ink(0xff), arrowhead(at(end, y), 1, 0))
		p.write(number(slowest), at(end-9, y), text.XRight, text.YCenter)
	}
}

// noValue stands where a row has neither figures nor a word of its own.
const noValue = "no value"

// or completes a text without a description: what the figure is, then a clause
// for each part of the data, of which it says no more than fit in a paragraph.
func (t Text) or(kind string, parts []string) Text {
	if t.Description != "" {
		return t
	}
	const most = 24
	t.Description = kind
	if len(parts) > most {
		parts = append(parts[:most:most], fmt.Sprintf("and %d more", len(parts)-most))
	}
	if len(parts) > 0 {
		t.Description += " " + strings.Join(parts, "; ") + "."
	}
	return t
}
