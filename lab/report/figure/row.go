package figure

import (
	"math"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// rows is a chart with one row for each name, the first on top.
type rows struct {
	names []string
	// above says that the names are too long for a column of their own: each is
	// written over its row.
	above bool
	left  vg.Length
	step  vg.Length
}

const (
	// sideMax is how wide names may be that stand beside their rows.
	sideMax vg.Length = 92
	// aboveStep is the height of a row below its name, aboveName and aboveMiddle
	// where both are in it.
	aboveStep   vg.Length = 38
	aboveName   vg.Length = 9
	aboveMiddle vg.Length = 26
)

func rowsOf(names []string) rows {
	r := rows{names: names, left: 4 * edge, step: 26}
	var widest vg.Length
	for _, n := range names {
		widest = max(widest, widthOf(printable(n)))
	}
	if widest > sideMax {
		r.above, r.step = true, aboveStep
	} else if widest > 0 {
		r.left = widest + edge + 8
	}
	return r
}

// Heights below the rows: ticks, then the axis' name.
const (
	tickHeight vg.Length = 18
	nameHeight vg.Length = 14
)

// height of the chart without what is above it.
func (r rows) height() vg.Length {
	return r.step*vg.Length(max(len(r.names), 1)) + tickHeight + nameHeight + edge
}

// room is the length of the axis.
func (r rows) room() vg.Length { return pageWidth - r.left - 2*edge - 6 }

// draw draws axis and names; y of the frame takes the row's number, from 0.
func (r rows) draw(p pen, x scale, name string) frame {
	n := float64(max(len(r.names), 1))
	f := p.chart(x, scale{min: 0, max: n}, vg.Rectangle{
		Min: at(r.left, edge+nameHeight),
		Max: at(pageWidth-2*edge-6, r.height()),
	})
	p.nameX(f, edge, name)
	top, step := f.area.Max.Y, f.area.Size().Y/vg.Length(n)
	middle := step / 2
	if r.above {
		middle = aboveMiddle
	}
	f.y = func(i float64) vg.Length { return top - step*vg.Length(i) - middle }
	for i, name := range r.names {
		if r.above {
			p.write(fit(name, pageWidth-2*edge), at(edge, top-step*vg.Length(i)-aboveName), text.XLeft, text.YCenter)
		} else {
			p.write(name, at(r.left-6, f.y(float64(i))), text.XRight, text.YCenter)
		}
	}
	return f
}

// span chooses an axis of times for values that need to be seen; zoomed leaves
// 0 out where all lie in the upper half, and logarithmic axes are for values
// that differ much.
func span(low, high float64, room vg.Length) (s scale, zoomed bool) {
	switch {
	case high < tiny && low > -tiny:
		return linear(0, 1, room), false
	case low > tiny*high && high > logFrom*low:
		return logarithmic(low/1.15, high*1.15, room), false
	case low > zoomShare*high && high > 0:
		margin := math.Max((high-low)*0.06, high*0.01)
		return linear(max(low-margin, 0), high+margin, room), true
	}
	return linear(min(low, 0), max(high*1.04, 0), room), false
}

// zoomShare: an axis leaves 0 out where everything lies in its upper part from
// here on, since overheads would be invisible otherwise.
const zoomShare = 0.5

// axisName says what an axis shows and what a reader must know of it.
func axisName(name string, s scale, zoomed bool) string {
	switch {
	case s.log:
		return name + " (log)"
	case zoomed:
		return name + " (axis not from 0)"
	}
	return name
}
