package figure

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"skerry.dev/skerry/lab/measure"
)

// Distribution is one line of CDF.
type Distribution struct {
	System System
	// Values are response times, in ns; of 10⁷ only a few hundred are read.
	Values measure.Sorted
}

// Shape of a CDF.
const (
	// tailFrom: from this ratio of p99 to the median on, the axis of times is
	// logarithmic.
	tailFrom = 10
	// pointsMax bounds the points of a line: one for each unit of a screen's
	// height would be more than the eye can tell apart.
	pointsMax = 200
	// ninesMax is the furthest share that is drawn: 99.999 %.
	ninesMax = 5
	cdfArea  = vg.Length(190)
)

// CDF draws the share of requests that were answered within a time, one line
// for each system. On the axis of shares every further nine takes the same
// room: 90, 99, 99.9 %, so that the tail can be read. A line ends where less
// than one value would lie beyond. The median is marked.
func CDF(t Text, lines []Distribution) Figure {
	var drawn []Distribution
	var entries []entry
	var words []string
	for _, d := range lines {
		if len(d.Values) == 0 || !finite(d.Values[0]) || !finite(d.Values.Max()) {
			words = append(words, d.System.Name+": "+noValue)
			continue
		}
		drawn = append(drawn, d)
		entries = append(entries, systemEntry(d.System))
		words = append(words, fmt.Sprintf("%s: half within %s, 99 %% within %s, all within %s", d.System.Name,
			number(d.Values.Median()/1e6), number(d.Values.Quantile(0.99)/1e6), number(d.Values.Max()/1e6)))
	}
	keys := wrap(entries)
	top := lineStep*vg.Length(len(keys)+1) + 2*edge
	height := top + cdfArea + tickHeight + nameHeight + edge
	return Figure{
		text:  t.or("Share of requests answered within a time in ms, one line for each system.", words),
		width: pageWidth, height: height,
		paint: func(p pen) {
			p.legend(keys, height-edge)
			p.write("share of requests, % (markers: medians)", at(edge, height-top+edge), text.XLeft, text.YBottom)
			within := vg.Rectangle{Min: at(edge, edge+nameHeight), Max: at(pageWidth-4*edge, height-top)}
			x, zoomed := timesOf(drawn)
			f := p.chart(x, sharesOf(drawn), within)
			p.nameX(f, edge, axisName("response time, ms", x, zoomed))
			for _, d := range drawn {
				d.draw(p, f)
			}
		},
	}
}

// nines is how many nines a share has: 0 for 0, 1 for 90 %, 2 for 99 %.
func nines(share float64) float64 { return -math.Log10(1 - share) }

// last is the nines of the furthest share that n values can show.
func (d Distribution) last() float64 {
	return min(math.Log10(float64(max(len(d.Values), 2))), ninesMax)
}

func sharesOf(lines []Distribution) scale {
	s := scale{max: 1}
	for _, d := range lines {
		s.max = max(s.max, d.last())
	}
	for _, share := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
		if y := nines(share / 100); y <= s.max+1e-9 {
			s.ticks = append(s.ticks, plot.Tick{Value: y, Label: fmt.Sprintf("%.5g", share)})
		}
	}
	return s
}

func timesOf(lines []Distribution) (scale, bool) {
	var ends []float64
	tailed := false
	for _, d := range lines {
		ends = append(ends, d.Values.Min()/1e6, d.Values.Quantile(1-math.Pow(10, -d.last()))/1e6)
		tailed = tailed || d.Values.Quantile(0.99) > tailFrom*d.Values.Median()
	}
	const room = pageWidth - 60
	low, high, found := extent(ends...)
	if !found {
		return linear(0, 1, room), false
	}
	if tailed && low > tiny*high && high > low {
		return logarithmic(low/1.05, high*1.05, room), false
	}
	return span(low, high, room)
}

func (d Distribution) draw(p pen, f frame) {
	var points []vg.Point
	last := d.last()
	for i := range pointsMax + 1 {
		y := last * float64(i) / pointsMax
		q := at(f.x(d.Values.Quantile(1-math.Pow(10, -y))/1e6), f.y(y))
		if n := len(points); n > 1 && straight(points[n-2], points[n-1], q) {
			points = points[:n-1]
		}
		points = append(points, q)
	}
	p.line(lineOf(d.System.Index), points...)
	median := at(f.x(d.Values.Median()/1e6), f.y(nines(0.5)))
	p.fill(Hue(d.System.Index), markOf(d.System.Index, median, 3.2))
}

// straight says that a line from a to c passes b as nearly as can be seen.
func straight(a, b, c vg.Point) bool {
	const seen = 0.1
	ac, ab := c.Sub(a), b.Sub(a)
	length := math.Hypot(float64(ac.X), float64(ac.Y))
	if length == 0 {
		return true
	}
	return math.Abs(float64(ac.X*ab.Y-ac.Y*ab.X))/length < seen
}
