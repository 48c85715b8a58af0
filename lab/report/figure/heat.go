package figure

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Grid is a table of shares.
type Grid struct {
	// Rows are conditions, Columns systems or scenarios.
	Rows, Columns []string
	// Cells by row, then by column. What lacks is not run.
	Cells [][]Share
}

// Share of the physical limit that a cell reaches.
type Share struct {
	// Value is 1 at the limit.
	Value float64
	// Missing is a word instead of a value, such as "rejected"; else empty.
	Missing string
}

// notRun is the word for a cell that the grid does not have.
const notRun = "not run"

const (
	cellHeight vg.Length = 24
	cellLeast  vg.Length = 27 // "100" and a margin
)

// Heat draws a grid whose cells are the darker the nearer they are to the
// limit, with the per cent in each. Cells without a value hold their word; where
// it is too wide they are hatched, a hatch for each word.
func Heat(t Text, g Grid) Figure {
	l := g.layout()
	return Figure{
		text:  t.or("Share of the physical limit in per cent, one row for each condition.", g.wordsOf()),
		width: l.width, height: l.height(g),
		paint: func(p pen) { g.draw(p, l) },
	}
}

// layout of a grid.
type layout struct {
	rows        rows
	cell, width vg.Length
	// slanted column names are head high, else one line.
	slanted bool
	head    vg.Length
	// words of cells without a value that do not fit into one: the i-th has
	// hatch i.
	hatched []string
	keys    [][]entry
}

func (g Grid) layout() layout {
	l := layout{rows: rowsOf(g.Rows), width: pageWidth, head: lineStep + 4}
	if l.rows.above {
		l.rows.step = lineStep + cellHeight + 4
		l.rows.left = edge
	} else {
		l.rows.step = cellHeight
	}
	n := vg.Length(max(len(g.Columns), 1))
	var widest vg.Length
	for _, c := range g.Columns {
		widest = max(widest, widthOf(fit(c, columnMax)))
	}
	l.cell = (pageWidth - l.rows.left - edge) / n
	if l.slanted = widest+4 > l.cell; l.slanted {
		lean := widest*slope + 6
		l.head = lean + 8
		l.cell = max((pageWidth-l.rows.left-edge-lean)/(n-0.5), cellLeast)
		l.width = max(pageWidth, l.rows.left+(n-0.5)*l.cell+lean+edge)
	}
	l.cell = min(l.cell, 104)
	fits := true
	for r := range g.Rows {
		for c := range g.Columns {
			if s := g.at(r, c); s.Missing != "" {
				fits = fits && widthOf(printable(s.Missing))+4 <= l.cell
				if !slices.Contains(l.hatched, s.Missing) {
					l.hatched = append(l.hatched, s.Missing)
				}
			}
		}
	}
	if fits {
		l.hatched = nil
	}
	l.keys = wrap(l.entries())
	return l
}

// Names of columns lean by 45° where they are wider than the cells.
const (
	columnMax vg.Length = 110
	slope               = math.Sqrt2 / 2
)

func (l layout) height(g Grid) vg.Length {
	return 4*edge + l.head + l.rows.step*vg.Length(max(len(g.Rows), 1)) + lineStep*vg.Length(len(l.keys)+1)
}

func (l layout) entries() []entry {
	var all []entry
	for i, word := range l.hatched {
		all = append(all, entry{word, func(p pen, c vg.Point) {
			p.hatch(i, vg.Rectangle{Min: at(c.X-9, c.Y-6), Max: at(c.X+9, c.Y+6)})
		}})
	}
	return all
}

// at is a cell, with its word where it has no value.
func (g Grid) at(row, column int) Share {
	if row >= len(g.Cells) || column >= len(g.Cells[row]) {
		return Share{Missing: notRun}
	}
	s := g.Cells[row][column]
	if s.Missing == "" && !finite(s.Value) {
		s.Missing = noValue
	}
	return s
}

func (g Grid) draw(p pen, l layout) {
	top := l.height(g) - edge
	for c, name := range g.Columns {
		x := l.rows.left + l.cell*(vg.Length(c)+0.5)
		if !l.slanted {
			p.write(name, at(x, top-l.head+5), text.XCenter, text.YBottom)
			continue
		}
		style := textStyle()
		style.Rotation = math.Pi / 4
		style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
		p.FillText(style, at(x, top-l.head+6), fit(name, columnMax))
	}
	for r, name := range g.Rows {
		y := top - l.head - l.rows.step*vg.Length(r+1)
		if l.rows.above {
			p.write(fit(name, l.width-2*edge), at(edge, y+cellHeight+4), text.XLeft, text.YBottom)
		} else {
			p.write(name, at(l.rows.left-6, y+cellHeight/2), text.XRight, text.YCenter)
		}
		for c := range g.Columns {
			x := l.rows.left + l.cell*vg.Length(c)
			p.share(g.at(r, c), l.hatched, vg.Rectangle{Min: at(x+1, y+1), Max: at(x+l.cell-1, y+cellHeight-1)})
		}
	}
	p.write("per cent of the physical limit", at(edge, edge+lineStep*vg.Length(len(l.keys)+1)), text.XLeft, text.YTop)
	p.legend(l.keys, edge+lineStep*vg.Length(len(l.keys)))
}

func (p pen) share(s Share, hatched []string, box vg.Rectangle) {
	center := at((box.Min.X+box.Max.X)/2, (box.Min.Y+box.Max.Y)/2)
	outline := rectangle(box.Min.X, box.Min.Y, box.Max.X, box.Max.Y)
	if s.Missing == "" {
		c := shade(s.Value)
		p.fill(c, outline)
		p.writeIn(over(c), percent(s.Value), center, text.XCenter, text.YCenter)
		return
	}
	if i := slices.Index(hatched, s.Missing); i >= 0 {
		p.hatch(i, box)
		return
	}
	p.stroke(stroke{color: ink(0x50), width: 0.6}, outline)
	p.write(s.Missing, center, text.XCenter, text.YCenter)
}

// percent of a share without its sign: of more than a tenth without decimals.
func percent(share float64) string {
	if v := share * 100; v >= 10 || v <= 0 {
		return fmt.Sprintf("%.0f", min(max(v, -999), 9999))
	}
	return number(math.Round(share*1000) / 10)
}

// shade goes from pale to dark blue, evenly in lightness: the share can be
// read in grey and by the colour-blind.
func shade(share float64) color.NRGBA {
	stops := [...]color.NRGBA{
		{0xe8, 0xf1, 0xfa, 0xff}, {0xb5, 0xd4, 0xe9, 0xff}, {0x6d, 0xae, 0xd5, 0xff},
		{0x2f, 0x7e, 0xbc, 0xff}, {0x0b, 0x3c, 0x78, 0xff},
	}
	where := min(max(share, 0), 1) * float64(len(stops)-1)
	i := min(int(where), len(stops)-2)
	part := where - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + part*(float64(b)-float64(a)) + 0.5) }
	a, b := stops[i], stops[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}

// over is black or white, whichever stands out more on a colour. It is not the
// page's text colour: the cell is the same on a dark page.
func over(c color.NRGBA) color.Color {
	if l := luminance(c); (l+0.05)/0.05 > 1.05/(l+0.05) {
		return color.NRGBA{1, 1, 1, 0xff} // not the black that a page replaces
	}
	return color.White
}

// luminance of WCAG 2.2, from 0 for black to 1.
func luminance(c color.NRGBA) float64 {
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// hatch fills a box with lines: rising, falling, level.
func (p pen) hatch(i int, box vg.Rectangle) {
	const gap = 5
	size := box.Size()
	var path vg.Path
	for d := vg.Length(gap) - size.Y; d < size.X; d += gap {
		x0, x1 := max(d, 0), min(d+size.Y, size.X)
		y0, y1 := x0-d, x1-d
		if modulo(i, 3) == 1 {
			y0, y1 = size.Y-y0, size.Y-y1
		}
		path = append(path, pathOf([]vg.Point{at(box.Min.X+x0, box.Min.Y+y0), at(box.Min.X+x1, box.Min.Y+y1)})...)
	}
	if modulo(i, 3) == 2 {
		path = nil
		for y := vg.Length(gap) / 2; y < size.Y; y += gap {
			path = append(path, pathOf([]vg.Point{at(box.Min.X, box.Min.Y+y), at(box.Max.X, box.Min.Y+y)})...)
		}
	}
	thin := stroke{color: ink(0x60), width: 0.6}
	p.stroke(thin, path)
	p.stroke(thin, rectangle(box.Min.X, box.Min.Y, box.Max.X, box.Max.Y))
}

func (g Grid) wordsOf() []string {
	var all []string
	for r, row := range g.Rows {
		var cells []string
		for c, column := range g.Columns {
			s := g.at(r, c)
			if s.Missing != "" {
				cells = append(cells, column+" "+s.Missing)
			} else {
				cells = append(cells, column+" "+percent(s.Value))
			}
		}
		all = append(all, row+": "+strings.Join(cells, ", "))
	}
	return all
}
