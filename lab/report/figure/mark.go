package figure

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// markOf is the outline of the i-th system's marker around a point. It repeats
// after six, as Hue does, while dashOf repeats after five.
func markOf(i int, c vg.Point, r vg.Length) vg.Path {
	up, flat := r*1.2, r*0.6
	switch modulo(i, 6) {
	case 1:
		return rectangle(c.X-r*0.9, c.Y-r*0.9, c.X+r*0.9, c.Y+r*0.9)
	case 2:
		return polygon(at(c.X, c.Y+up), at(c.X+up, c.Y-flat-r*0.3), at(c.X-up, c.Y-flat-r*0.3))
	case 3:
		return diamond(c, up)
	case 4:
		return polygon(at(c.X, c.Y-up), at(c.X+up, c.Y+flat+r*0.3), at(c.X-up, c.Y+flat+r*0.3))
	case 5:
		t := r * 0.45
		return polygon(at(c.X-t, c.Y+up), at(c.X+t, c.Y+up), at(c.X+t, c.Y+t), at(c.X+up, c.Y+t),
			at(c.X+up, c.Y-t), at(c.X+t, c.Y-t), at(c.X+t, c.Y-up), at(c.X-t, c.Y-up),
			at(c.X-t, c.Y-t), at(c.X-up, c.Y-t), at(c.X-up, c.Y+t), at(c.X-t, c.Y+t))
	}
	return circle(c, r)
}

func diamond(c vg.Point, r vg.Length) vg.Path {
	return polygon(at(c.X, c.Y+r), at(c.X+r, c.Y), at(c.X, c.Y-r), at(c.X-r, c.Y))
}

// arrowhead points along (dx, dy), one of which is 0 and the other 1 or −1.
func arrowhead(tip vg.Point, dx, dy vg.Length) vg.Path {
	const long, half = 6.5, 3.2
	back := at(tip.X-dx*long, tip.Y-dy*long)
	return polygon(tip, at(back.X-dy*half, back.Y+dx*half), at(back.X+dy*half, back.Y-dx*half))
}

func lineOf(i int) stroke { return stroke{color: Hue(i), width: 1.6, dash: dashOf(i)} }

func faded(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}

// entry of a legend: a sign, drawn around its centre, and what it means.
type entry struct {
	name string
	sign func(p pen, c vg.Point)
}

const (
	signWidth vg.Length = 22
	entryGap  vg.Length = 12
)

// wrap puts as many entries into each line of the legend as fit.
func wrap(entries []entry) [][]entry {
	const from, to = edge, pageWidth - edge
	var lines [][]entry
	x := to
	for _, e := range entries {
		e.name = fit(e.name, to-from-signWidth-4)
		width := signWidth + 4 + widthOf(e.name)
		if x+width > to {
			lines, x = append(lines, nil), from
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], e)
		x += width + entryGap
	}
	return lines
}

// legend draws the lines downward from top.
func (p pen) legend(lines [][]entry, top vg.Length) {
	for _, line := range lines {
		x, y := edge, top-lineStep/2
		for _, e := range line {
			e.sign(p, at(x+signWidth/2, y))
			p.write(e.name, at(x+signWidth+4, y), text.XLeft, text.YCenter)
			x += signWidth + 4 + widthOf(e.name) + entryGap
		}
		top -= lineStep
	}
}

// systemEntry has the system's line with its marker.
func systemEntry(s System) entry {
	return entry{s.Name, func(p pen, c vg.Point) {
		p.line(lineOf(s.Index), at(c.X-signWidth/2, c.Y), at(c.X+signWidth/2, c.Y))
		p.fill(Hue(s.Index), markOf(s.Index, c, 3))
	}}
}

// dotEntry has a filled shape alone.
func dotEntry(name string, c color.Color, shape func(vg.Point) vg.Path) entry {
	return entry{name, func(p pen, at vg.Point) { p.fill(c, shape(at)) }}
}
