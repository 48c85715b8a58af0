package figure

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// FirstRequest is one row of First.
type FirstRequest struct {
	System System
	// First are the response times of connections' first requests, in ms; Later
	// is the median of all others, in ms.
	First []float64
	Later float64
	// Missing is a word instead of figures; else empty.
	Missing string
}

// firstMax bounds the marks of a row; of more first requests, so many are
// drawn that lie evenly among their ranks.
const firstMax = 60

// First draws first requests apart from later ones, one row for each system: a
// bar from the median of later ones to that of first ones, and each first
// request as a hollow mark.
func First(t Text, given []FirstRequest) Figure {
	names := make([]string, len(given))
	words := make([]string, len(given))
	list := make([]FirstRequest, len(given))
	var all []float64
	for i, r := range given {
		r = r.sound()
		list[i], names[i], words[i] = r, r.System.Name, r.words()
		if r.Missing == "" {
			all = append(append(all, r.First...), r.Later)
		}
	}
	rs := rowsOf(names)
	keys := wrap(firstEntries())
	height := rs.height() + lineStep*vg.Length(len(keys)) + edge
	return Figure{
		text:  t.or("First requests of connections beside later ones, response time in ms.", words),
		width: pageWidth, height: height,
		paint: func(p pen) {
			p.legend(keys, height-edge)
			low, high, found := extent(all...)
			x, zoomed := linear(0, 1, rs.room()), false
			if found {
				x, zoomed = span(low, high, rs.room())
			}
			f := rs.draw(p, x, axisName("response time, ms", x, zoomed))
			for i, r := range list {
				r.draw(p, f, f.y(float64(i)))
			}
		},
	}
}

// sound keeps finite values, in order, few enough to draw.
func (r FirstRequest) sound() FirstRequest {
	r.First = slices.DeleteFunc(slices.Clone(r.First), func(v float64) bool { return !finite(v) || v < 0 })
	slices.SortFunc(r.First, compare)
	if n := len(r.First); n > firstMax {
		kept := make([]float64, firstMax)
		for i := range kept {
			kept[i] = r.First[i*(n-1)/(firstMax-1)]
		}
		r.First = kept
	}
	if r.Missing == "" && (len(r.First) == 0 || !finite(r.Later) || r.Later < 0) {
		r.Missing = noValue
	}
	return r
}

// middle is the first requests' median.
func (r FirstRequest) middle() float64 {
	n := len(r.First)
	return (r.First[(n-1)/2] + r.First[n/2]) / 2
}

func (r FirstRequest) words() string {
	if r.Missing != "" {
		return r.System.Name + ": " + r.Missing
	}
	return fmt.Sprintf("%s: first %s, later %s", r.System.Name, number(r.middle()), number(r.Later))
}

func firstEntries() []entry {
	grey := ink(0xc0)
	return []entry{
		dotEntry("median of later requests", grey, func(c vg.Point) vg.Path { return circle(c, 3.6) }),
		{"first requests, median", func(p pen, c vg.Point) {
			p.stroke(stroke{color: grey, width: 1}, diamond(c.Add(at(-7, 0)), 3.6))
			p.line(stroke{color: grey, width: 2.2}, at(c.X+5, c.Y-6), at(c.X+5, c.Y+6))
		}},
	}
}

func (r FirstRequest) draw(p pen, f frame, y vg.Length) {
	if r.Missing != "" {
		p.write(r.Missing, at(f.area.Min.X+4, y), text.XLeft, text.YCenter)
		return
	}
	hue := Hue(r.System.Index)
	later, first := f.x(r.Later), f.x(r.middle())
	p.line(stroke{color: faded(hue, 0x70), width: 5}, at(later, y), at(first, y))
	var marks vg.Path
	for _, v := range r.First {
		marks = append(marks, diamond(at(f.x(v), y), 3.6)...)
	}
	p.stroke(stroke{color: hue, width: 1}, marks)
	p.line(stroke{color: hue, width: 2.2}, at(first, y-7), at(first, y+7))
	p.fill(hue, circle(at(later, y), 3.6))
}
