package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"skerry.dev/skerry/lab/measure"
)

// Sizes of a panel, in points of its own coordinates.
const (
	panelWidth  = 400
	panelHeight = 52 // without rows
	rowHeight   = 26
	boxWidth    = 13
	fontSize    = 11
	edge        = 8  // room for half a label at the end of the axis
	nameMax     = 20 // runes of a system's name
)

// drawBoxes is the panel as an SVG document: a row for each result, the first
// on top, and the response time in ms from left to right. A system has the
// same colour wherever it appears.
func drawBoxes(results []Result, systems []string) (string, error) {
	s := spanOf(results)
	p := newPanel(s)
	names := make([]string, len(results))
	for i, r := range results {
		y := len(results) - 1 - i
		names[y] = shorten(r.Cell.System)
		if word := r.missing(); word != "" {
			p.Add(note{x: s.min, y: float64(y), text: word})
			continue
		}
		b, err := newBox(r.Summary.Times.Box, float64(y), s)
		if err != nil {
			return "", err
		}
		c := hue(slices.Index(systems, r.Cell.System))
		b.FillColor, b.BoxStyle.Color, b.WhiskerStyle.Color, b.GlyphStyle.Color = faded(c), c, c, c
		p.Add(b)
		if slowest := inMs(r.Summary.Times.Max); slowest > s.dotsMax {
			p.Add(note{x: s.max, y: float64(y), right: true, text: "→ " + slowestText(r.Summary.Times.Max)})
		}
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max = s.min, s.max
	p.Y.Min, p.Y.Max = -0.6, float64(len(results))-0.4

	c := vgsvg.New(panelWidth, panelHeight+rowHeight*vg.Length(len(results)))
	p.Draw(draw.Crop(draw.New(c), 0, -edge, 0, 0))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return "", err
	}
	return out.String(), nil
}

func newPanel(s span) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text = "response time, ms"
	if s.min > 0 {
		p.X.Label.Text = "response time, ms (axis does not start at 0)"
	}
	for _, style := range []*text.Style{&p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant = "Sans"
		style.Font.Size = fontSize
	}
	p.X.Padding, p.X.Label.Padding = 0, 4
	p.X.Tick.Length = 4
	p.X.Tick.Marker = plot.TickerFunc(ticks)
	lines := plotter.NewGrid()
	lines.Horizontal.Color = nil
	lines.Vertical = draw.LineStyle{Color: color.NRGBA{A: 36}, Width: 0.5}
	p.Add(lines)
	return p
}

// newBox hands the figures to gonum, which would otherwise compute quartiles
// by a definition of its own.
func newBox(b measure.Box, y float64, s span) (*plotter.BoxPlot, error) {
	values := plotter.Values{b.Low / 1e6, b.High / 1e6}
	var outside []int
	for _, v := range b.Outliers {
		if v /= 1e6; s.min <= v && v <= s.dotsMax {
			outside = append(outside, len(values))
			values = append(values, v)
		}
	}
	p, err := plotter.NewBoxPlot(boxWidth, y, values)
	if err != nil {
		return nil, err
	}
	p.Horizontal = true
	p.AdjLow, p.Quartile1, p.Median = b.Low/1e6, b.Q1/1e6, b.Median/1e6
	p.Quartile3, p.AdjHigh, p.Outside = b.Q3/1e6, b.High/1e6, outside
	p.CapWidth = boxWidth / 2
	p.BoxStyle.Width, p.WhiskerStyle = 1, draw.LineStyle{Width: 1}
	p.MedianStyle = draw.LineStyle{Color: color.Black, Width: 1.8}
	p.GlyphStyle = draw.GlyphStyle{Radius: 1.4, Shape: draw.CircleGlyph{}}
	return p, nil
}

// ticksMax bounds the labels of an axis so that they never touch.
const ticksMax = 6

// ticks are the multiples of 1, 2 or 5 times a power of ten from low to high.
func ticks(low, high float64) []plot.Tick {
	step, decimals := math.Pow10(int(math.Floor(math.Log10(high-low)))-1), 0
	for _, factor := range []float64{2, 2.5, 2, 2, 2.5, 2} { // 1 → 2 → 5 → 10 …
		if (high-low)/step < ticksMax {
			break
		}
		step *= factor
	}
	if step < 1 {
		decimals = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	var all []plot.Tick
	for i := math.Ceil(low / step); i*step <= high && len(all) <= ticksMax; i++ {
		all = append(all, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', decimals, 64)})
	}
	return all
}

// note is a word in a row, beginning at x or, where right is set, ending there.
type note struct {
	x, y  float64
	right bool
	text  string
}

// Plot implements plot.Plotter.
func (n note) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	style := p.Y.Tick.Label
	style.Font.Size = fontSize - 1
	at := vg.Point{X: trX(n.x) + 4, Y: trY(n.y) + style.FontExtents().Descent}
	style.XAlign = draw.XLeft
	if n.right {
		at.X, style.XAlign = trX(n.x), draw.XRight
	}
	c.FillText(style, at, n.text)
}

func slowestText(d time.Duration) string {
	if d < 10*time.Millisecond {
		return milliseconds(d, 3)
	}
	return milliseconds(d, 1)
}

func shorten(name string) string {
	if runes := []rune(name); len(runes) > nameMax {
		return string(runes[:nameMax-1]) + "…"
	}
	return name
}

// hue is the colour of the i-th system: Okabe and Ito's palette, which the
// colour-blind can tell apart, without its yellow and black. The axis names
// every system, so that a hue may come again.
func hue(i int) color.NRGBA {
	palette := [...]color.NRGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
		{0xcc, 0x79, 0xa7, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
	}
	return palette[i%len(palette)]
}

func faded(c color.NRGBA) color.NRGBA {
	c.A = 0x50
	return c
}

// accessible makes the SVG a part of a page: it scales with its box, takes the
// page's text colour where gonum wrote black, and has a title and description.
func accessible(svg, id, title, description string) template.HTML {
	size := between(svg, `viewBox="`, `"`)
	_, body, _ := strings.Cut(svg, "<svg")
	_, body, _ = strings.Cut(body, ">")
	body = strings.NewReplacer(
		"stroke:#000000", "stroke:currentColor",
		"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "",
	).Replace(body)
	head := fmt.Sprintf(`<svg viewBox="%s" role="img" aria-labelledby="%s-title %s-desc" fill="currentColor">`, size, id, id)
	return template.HTML(head + fmt.Sprintf(`<title id="%s-title">%s</title><desc id="%s-desc">%s</desc>`,
		id, template.HTMLEscapeString(title), id, template.HTMLEscapeString(description)) + body)
}

func between(s, from, to string) string {
	_, rest, _ := strings.Cut(s, from)
	found, _, _ := strings.Cut(rest, to)
	return found
}
