package figure

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// drawing is what an SVG holds, in the coordinates of its viewBox.
type drawing struct {
	width, height float64
	title, desc   string
	texts         []label
	paths         []shape
}

// label is a text with its left end on the baseline.
type label struct {
	text    string
	x, y    float64
	rotated bool
	fill    string
}

func (l label) width() float64 { return float64(widthOf(l.text)) }

// shape is a path with its points, control points among them.
type shape struct {
	style  string
	points [][2]float64
}

// matrix is a, b, c, d, e, f as SVG has them.
type matrix [6]float64

func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[2]*n[1], m[1]*n[0] + m[3]*n[1],
		m[0]*n[2] + m[2]*n[3], m[1]*n[2] + m[3]*n[3],
		m[0]*n[4] + m[2]*n[5] + m[4], m[1]*n[4] + m[3]*n[5] + m[5],
	}
}

func (m matrix) apply(x, y float64) (float64, float64) {
	return m[0]*x + m[2]*y + m[4], m[1]*x + m[3]*y + m[5]
}

var (
	transform = regexp.MustCompile(`(scale|translate|rotate)\(([^)]*)\)`)
	numbers   = regexp.MustCompile(`[^\s,MLCQZ]+`)
)

func numbersOf(t *testing.T, s string) []float64 {
	t.Helper()
	var all []float64
	for _, word := range numbers.FindAllString(s, -1) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("%q in %.80q is no number", word, s)
		}
		all = append(all, v)
	}
	return all
}

func matrixOf(t *testing.T, s string) matrix {
	m := matrix{1, 0, 0, 1, 0, 0}
	for _, part := range transform.FindAllStringSubmatch(s, -1) {
		n := numbersOf(t, part[2])
		switch part[1] {
		case "scale":
			m = m.times(matrix{n[0], 0, 0, n[1], 0, 0})
		case "translate":
			m = m.times(matrix{1, 0, 0, 1, n[0], n[1]})
		case "rotate":
			sin, cos := math.Sincos(n[0] * math.Pi / 180)
			m = m.times(matrix{cos, sin, -sin, cos, 0, 0})
		}
	}
	return m
}

// parse reads an SVG strictly: elements that a figure has no use for, such as
// script, are errors.
func parse(t *testing.T, svg string) drawing {
	t.Helper()
	var d drawing
	stack := []matrix{{1, 0, 0, 1, 0, 0}}
	var inside string
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			t.Fatalf("no XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			m := stack[len(stack)-1].times(matrixOf(t, attr["transform"]))
			stack = append(stack, m)
			inside = e.Name.Local
			d.element(t, inside, attr, m)
		case xml.EndElement:
			stack, inside = stack[:len(stack)-1], ""
		case xml.CharData:
			switch inside {
			case "title":
				d.title += string(e)
			case "desc":
				d.desc += string(e)
			case "text":
				d.texts[len(d.texts)-1].text += string(e)
			}
		}
	}
}

func (d *drawing) element(t *testing.T, name string, attr map[string]string, m matrix) {
	t.Helper()
	switch name {
	case "svg":
		box := numbersOf(t, attr["viewBox"])
		d.width, d.height = box[2], box[3]
		if attr["role"] != "img" || !strings.Contains(attr["aria-labelledby"], "-desc") {
			t.Errorf("a screen reader is not told of the figure: %v", attr)
		}
	case "path":
		n := numbersOf(t, attr["d"])
		s := shape{style: attr["style"]}
		for i := 0; i+1 < len(n); i += 2 {
			x, y := m.apply(n[i], n[i+1])
			s.points = append(s.points, [2]float64{x, y})
		}
		d.paths = append(d.paths, s)
	case "text":
		x, y := m.apply(numbersOf(t, attr["x"])[0], numbersOf(t, attr["y"])[0])
		if !strings.Contains(attr["style"], "font-size:12px") {
			t.Errorf("text is not 12 high: %s", attr["style"])
		}
		d.texts = append(d.texts, label{x: x, y: y, rotated: math.Abs(m[1]) > 1e-9, fill: attr["style"]})
	case "g", "title", "desc", "rect":
	default:
		t.Errorf("a figure has an element %q", name)
	}
}

// check holds for every figure, whatever its data: all lies inside, no text is
// clipped and no two texts overlap.
func (d drawing) check(t *testing.T) {
	t.Helper()
	const slack = 0.02
	in := func(x, y float64) bool {
		return x >= -slack && x <= d.width+slack && y >= -slack && y <= d.height+slack
	}
	if d.width < float64(pageWidth) || d.height <= 0 || d.height > 40000 {
		t.Errorf("the figure is %g × %g", d.width, d.height)
	}
	for _, p := range d.paths {
		for _, q := range p.points {
			if !in(q[0], q[1]) {
				t.Errorf("%.2f, %.2f is outside of %g × %g: %s", q[0], q[1], d.width, d.height, p.style)
				break
			}
		}
	}
	for i, l := range d.texts {
		if !in(l.x, l.y) || !l.rotated && !in(l.x+l.width(), l.y-9) {
			t.Errorf("%q at %.1f, %.1f is outside of %g × %g", l.text, l.x, l.y, d.width, d.height)
		}
		for _, other := range d.texts[:i] {
			if !l.rotated && !other.rotated && math.Abs(l.y-other.y) < 10 &&
				l.x < other.x+other.width()-0.5 && other.x < l.x+l.width()-0.5 {
				t.Errorf("%q overlaps %q", l.text, other.text)
			}
		}
	}
	if d.title == "" || d.desc == "" {
		t.Error("the figure has no title or description")
	}
}

// structure is the drawing in words: sizes, texts and how many paths there are
// of each colour and kind.
func (d drawing) structure() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%g × %g\n%s\n", d.width, d.height, d.desc)
	for _, l := range d.texts {
		fmt.Fprintf(&out, "text %s\n", l.text)
	}
	count := map[string]int{}
	var order []string
	for _, p := range d.paths {
		key := p.look()
		if count[key]++; count[key] == 1 {
			order = append(order, key)
		}
	}
	for _, key := range order {
		fmt.Fprintf(&out, "%d × %s\n", count[key], key)
	}
	return out.String()
}

var looks = regexp.MustCompile(`(fill|stroke|stroke-dasharray):([^;]+)`)

// look is how a path is painted, without widths and opacity.
func (s shape) look() string {
	kind, dash := "fill text colour", ""
	for _, m := range looks.FindAllStringSubmatch(s.style, -1) {
		switch {
		case m[1] == "stroke-dasharray":
			dash = " dashed " + m[2]
		case m[2] != "none":
			kind = m[1] + " " + m[2]
		}
	}
	return kind + dash
}

func inline(t *testing.T, f Figure) drawing {
	t.Helper()
	return parse(t, string(f.Inline("a")))
}

// texts of a drawing, in the order in which they are drawn.
func (d drawing) words() []string {
	all := make([]string, len(d.texts))
	for i, l := range d.texts {
		all[i] = l.text
	}
	return all
}

func near(a, b vg.Length) bool { return math.Abs(float64(a-b)) < 1e-6 }
