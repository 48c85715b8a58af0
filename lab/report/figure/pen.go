package figure

import (
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes, in points of a figure's own coordinates. One size of text serves all:
// it is 9 pt high where the figure is 320 px wide.
const (
	pageWidth vg.Length = 320
	textSize  vg.Length = 12
	lineStep  vg.Length = 15 // from one line of text to the next
	edge      vg.Length = 4  // around the drawing
	// capitals is how far the middle of letters lies below that of a line, which
	// has room for descenders.
	capitals vg.Length = 1.1
)

// pen draws on a figure, from the lower left corner up.
type pen struct{ draw.Canvas }

func newPen(c vg.CanvasSizer, encode func(string) string) pen {
	return pen{draw.New(lettered{c, encode})}
}

// lettered is a canvas whose text passes an encoding first.
type lettered struct {
	vg.CanvasSizer
	encode func(string) string
}

// FillString implements vg.Canvas.
func (c lettered) FillString(f font.Face, at vg.Point, s string) {
	c.CanvasSizer.FillString(f, at, c.encode(s))
}

// stroke is how a line looks.
type stroke struct {
	color color.Color
	width vg.Length
	dash  []vg.Length
}

// line draws straight from point to point.
func (p pen) line(s stroke, points ...vg.Point) {
	p.stroke(s, pathOf(points))
}

func (p pen) stroke(s stroke, path vg.Path) {
	if len(path) < 2 {
		return
	}
	p.SetColor(s.color)
	p.SetLineWidth(s.width)
	p.SetLineDash(s.dash, 0)
	p.Stroke(path)
}

func (p pen) fill(c color.Color, path vg.Path) {
	p.SetColor(c)
	p.Fill(path)
}

// write puts one line of text beside a point: x and y say which part of the
// text lies there, as draw.XLeft and draw.YCenter do.
func (p pen) write(s string, at vg.Point, x text.XAlignment, y text.YAlignment) {
	p.writeIn(color.Black, s, at, x, y)
}

func (p pen) writeIn(c color.Color, s string, at vg.Point, x text.XAlignment, y text.YAlignment) {
	style := textStyle()
	style.Color, style.XAlign, style.YAlign = c, x, y
	if y == text.YCenter {
		at.Y += capitals
	}
	p.FillText(style, rounded(at), printable(s))
}

func textStyle() text.Style {
	f := font.From(plot.DefaultFont, textSize)
	f.Variant = "Sans"
	return text.Style{Color: color.Black, Font: f, Handler: plot.DefaultTextHandler}
}

// widthOf is how wide a text is in one line.
func widthOf(s string) vg.Length {
	style := textStyle()
	return style.Width(printable(s))
}

// fit cuts a text so that it is at most that wide.
func fit(s string, width vg.Length) string {
	s = printable(s)
	if widthOf(s) <= width {
		return s
	}
	runes := []rune(s)
	if most := int(width); len(runes) > most { // no letter is narrower than a point
		runes = runes[:max(most, 0)]
	}
	for len(runes) > 0 && widthOf(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// printable is a text in one line that XML can hold.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == unicode.ReplacementChar, r >= 0xfffe && r <= 0xffff:
			return '?'
		}
		return r
	}, s)
}

// westernOf encodes a text in Windows-1252, which the fonts of a PDF use.
func westernOf(s string) string {
	special := []rune("€\x00‚ƒ„…†‡ˆ‰Š‹Œ\x00Ž\x00\x00‘’“”•–—˜™š›œ\x00žŸ") // from 0x80
	var out strings.Builder
	for _, r := range printable(s) {
		if i := slices.Index(special, r); i >= 0 {
			out.WriteByte(byte(0x80 + i))
		} else if r < 0x80 || r >= 0xa0 && r <= 0xff {
			out.WriteByte(byte(r))
		} else {
			out.WriteString(nearest(r))
		}
	}
	return out.String()
}

// nearest stands in a PDF for a character that its fonts lack.
func nearest(r rune) string {
	switch r {
	case '→':
		return "->"
	case '←':
		return "<-"
	case '−':
		return "\x96" // en dash
	case '≤':
		return "<="
	case '≥':
		return ">="
	case '≈':
		return "~"
	case 'μ':
		return "\xb5" // micro sign
	}
	return "?"
}

func at(x, y vg.Length) vg.Point { return vg.Point{X: x, Y: y} }

func pathOf(points []vg.Point) vg.Path {
	var path vg.Path
	for i, q := range points {
		if q = rounded(q); i == 0 {
			path.Move(q)
		} else {
			path.Line(q)
		}
	}
	return path
}

func polygon(points ...vg.Point) vg.Path {
	path := pathOf(points)
	path.Close()
	return path
}

func rectangle(x0, y0, x1, y1 vg.Length) vg.Path {
	return polygon(at(x0, y0), at(x1, y0), at(x1, y1), at(x0, y1))
}

// circle is four curves: an arc has no way into a PDF.
func circle(c vg.Point, r vg.Length) vg.Path {
	k := r * 0.5523
	var path vg.Path
	path.Move(rounded(at(c.X+r, c.Y)))
	for _, q := range [][3]vg.Point{
		{{X: r, Y: k}, {X: k, Y: r}, {X: 0, Y: r}},
		{{X: -k, Y: r}, {X: -r, Y: k}, {X: -r, Y: 0}},
		{{X: -r, Y: -k}, {X: -k, Y: -r}, {X: 0, Y: -r}},
		{{X: k, Y: -r}, {X: r, Y: -k}, {X: r, Y: 0}},
	} {
		path.CubeTo(rounded(c.Add(q[0])), rounded(c.Add(q[1])), rounded(c.Add(q[2])))
	}
	path.Close()
	return path
}

// rounded keeps two decimals, finer than any screen or printer.
func rounded(q vg.Point) vg.Point {
	return at(vg.Length(math.Round(float64(q.X)*100)/100), vg.Length(math.Round(float64(q.Y)*100)/100))
}

// whole is a length without decimals, rounded up.
func whole(l vg.Length) string { return strconv.FormatFloat(math.Ceil(float64(l)), 'f', 0, 64) }
