package figure

import (
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// draw draws a copy of the plan, whose ports it uses up.
func (g *plan) draw(p pen) {
	own := *g
	own.spots = maps.Clone(g.spots)
	for _, b := range own.boxes {
		p.stroke(stroke{color: ink(0x70), width: 0.8}, own.rounded(b.box, 5))
		p.write(fit(b.name, clusterMax), own.down(at(b.box.Min.X+clusterPad, b.middle)), text.XLeft, text.YCenter)
	}
	for _, key := range slices.Sorted(maps.Keys(own.spots)) {
		own.node(p, own.spots[key])
	}
	ways := make([]way, len(own.routes))
	for i, r := range own.routes {
		ways[i] = own.way(r, i)
		own.arrow(p, ways[i])
	}
	for i, r := range own.routes {
		own.label(p, r.Link, ways, i)
	}
}

// down turns a distance from the top into a point of the drawing.
func (g *plan) down(q vg.Point) vg.Point { return at(q.X, g.height-q.Y) }

func (g *plan) node(p pen, s spot) {
	box := g.rounded(s.box, 3)
	if s.crossed {
		p.fill(faded(Hue(0), 0x38), box)
		p.stroke(stroke{color: Hue(0), width: 1.2}, box)
	} else {
		p.stroke(stroke{color: ink(0x60), width: 0.6}, box)
	}
	center := at((s.box.Min.X+s.box.Max.X)/2, (s.box.Min.Y+s.box.Max.Y)/2)
	room := s.box.Size().X - 6
	if s.role == "" {
		p.write(fit(s.name, room), g.down(center), text.XCenter, text.YCenter)
		return
	}
	p.write(fit(s.name, room), g.down(at(center.X, center.Y-7)), text.XCenter, text.YCenter)
	p.write(fit(s.role, room), g.down(at(center.X, center.Y+7)), text.XCenter, text.YCenter)
}

// rounded is a box whose corners have a radius.
func (g *plan) rounded(b vg.Rectangle, r vg.Length) vg.Path {
	x0, x1 := b.Min.X, b.Max.X
	y0, y1 := g.height-b.Max.Y, g.height-b.Min.Y
	var path vg.Path
	path.Move(rounded(at(x0+r, y0)))
	for _, q := range [][3]vg.Point{
		{at(x1-r, y0), at(x1, y0), at(x1, y0+r)},
		{at(x1, y1-r), at(x1, y1), at(x1-r, y1)},
		{at(x0+r, y1), at(x0, y1), at(x0, y1-r)},
		{at(x0, y0+r), at(x0, y0), at(x0+r, y0)},
	} {
		path.Line(rounded(q[0]))
		path.QuadTo(rounded(q[1]), rounded(q[2]))
	}
	path.Close()
	return path
}

// way is the corners of an arrow, its first and last point included; direct
// ones have two.
type way []vg.Point

func (g *plan) way(r route, i int) way {
	if r.direct {
		from, to := g.spots[r.From].box, g.spots[r.To].box
		y := (from.Min.Y + from.Max.Y) / 2
		if from.Min.X < to.Min.X {
			return way{at(from.Max.X, y), at(to.Min.X, y)}
		}
		return way{at(from.Min.X, y), at(to.Max.X, y)}
	}
	start, end := g.port(r.From, r.leaves), g.port(r.To, r.arrives)
	lane, last := g.laneY(r.out, r.outLane), g.laneY(r.in, r.inLane)
	w := way{start, at(start.X, lane)}
	if r.in != r.out {
		// Each arrow has its own line in the gutter, as far as there is room.
		turn := pageWidth - gutterRoom + vg.Length(i%4)*4
		w = append(w, at(turn, lane), at(turn, last))
	}
	return append(w, at(end.X, last), end)
}

func (g *plan) arrow(p pen, w way) {
	tip, before := w[len(w)-1], w[len(w)-2]
	dx, dy := direction(tip.X-before.X), direction(tip.Y-before.Y)
	points := make([]vg.Point, len(w))
	for i, q := range w {
		points[i] = g.down(q)
	}
	points[len(points)-1] = g.down(at(tip.X-4*dx, tip.Y-4*dy))
	p.line(stroke{color: Hue(0), width: 1.5}, points...)
	p.fill(Hue(0), arrowhead(g.down(tip), dx, -dy))
}

func direction(d vg.Length) vg.Length {
	switch {
	case d > 0:
		return 1
	case d < 0:
		return -1
	}
	return 0
}

// label writes what the i-th way's packets meet beside the line of its lane, or
// on it: there where the fewest other lines cross it.
func (g *plan) label(p pen, s string, ways []way, i int) {
	if s == "" {
		return
	}
	const gap = 6
	least, most := edge+1, pageWidth-gutterRoom-edge-1
	s = fit(s, most-least)
	width := widthOf(s)
	a, b, lane := ways[i][1].X, ways[i][2].X, ways[i][1].Y
	left, right := min(a, b), max(a, b)
	best, crossed := vg.Rectangle{}, len(ways)*4
	for _, q := range []vg.Point{
		{X: right + gap, Y: lane - 3},
		{X: left - gap - width, Y: lane - 3},
		{X: (left + right - width) / 2, Y: lane - 9},
		{X: left + gap, Y: lane - 9},
		{X: right - gap - width, Y: lane - 9},
		{X: most - width, Y: lane - 9},
		{X: least, Y: lane - 9},
	} {
		if q.X < least || q.X+width > most {
			continue
		}
		box := vg.Rectangle{Min: at(q.X-2, q.Y-6), Max: at(q.X+width+2, q.Y+6)}
		if n := crossings(ways, box); n < crossed {
			best, crossed = box, n
		}
	}
	p.write(s, g.down(at(best.Min.X+2, (best.Min.Y+best.Max.Y)/2)), text.XLeft, text.YCenter)
}

// crossings counts the lines that touch a box.
func crossings(ways []way, box vg.Rectangle) int {
	n := 0
	for _, w := range ways {
		for i := 1; i < len(w); i++ {
			a, b := w[i-1], w[i]
			if min(a.X, b.X) < box.Max.X && max(a.X, b.X) > box.Min.X &&
				min(a.Y, b.Y) < box.Max.Y && max(a.Y, b.Y) > box.Min.Y {
				n++
			}
		}
	}
	return n
}

func (m Map) words() []string {
	all := make([]string, len(m.Hops))
	for i, h := range m.Hops {
		if all[i] = fmt.Sprintf("%s to %s", h.From, h.To); h.Link != "" {
			all[i] += ", " + h.Link
		}
	}
	return all
}
