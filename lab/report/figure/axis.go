package figure

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// logFrom is how many times the least value the greatest is where an axis
// becomes logarithmic: below, a linear axis shows all of them apart.
const logFrom = 20

// scale is an axis: what it spans and where it is labelled.
type scale struct {
	min, max float64
	log      bool
	ticks    []plot.Tick
}

// frame is where the axes of a chart lie.
type frame struct {
	area vg.Rectangle
	// x and y turn values into places; they do not clip.
	x, y func(float64) vg.Length
}

// inside says whether a value lies on the scale.
func (s scale) inside(v float64) bool { return s.min <= v && v <= s.max }

// clamp moves a value beyond the scale to its end.
func (s scale) clamp(v float64) float64 { return min(max(v, s.min), s.max) }

// Bounds of axes: values below tiny count as 0, and an axis spans at least this
// part of its values, since its labels would be all the same.
const (
	tiny   = 1e-9
	narrow = 5e-3
)

// linear is an axis from low to high, with ticks for that much room.
func linear(low, high float64, room vg.Length) scale {
	if size := max(math.Abs(low), math.Abs(high), tiny); high-low < size*narrow {
		low, high = low-size*narrow, high+size*narrow
	}
	return scale{min: low, max: high, ticks: ticks(low, high, room)}
}

// logarithmic is an axis from low to high, both above 0.
func logarithmic(low, high float64, room vg.Length) scale {
	if high < low*1.2 {
		low, high = low/1.2, high*1.2
	}
	return scale{min: low, max: high, log: true, ticks: decades(low, high, room)}
}

// ticks are the multiples of 1, 2 or 5 times a power of ten from low to high,
// as many as have room.
func ticks(low, high float64, room vg.Length) []plot.Tick {
	step := math.Pow10(int(math.Floor(math.Log10(high-low))) - 1)
	var finer []plot.Tick
	for _, factor := range []float64{2, 2.5, 2, 2, 2.5, 2, 2} { // 1 → 2 → 5 → 10 …
		all := multiples(low, high, step)
		if len(all) < 2 {
			break // rather too near than alone
		}
		if finer = all; apart(all, low, high, room) {
			break
		}
		step *= factor
	}
	return spread(finer, func(v float64) vg.Length { return room * vg.Length((v-low)/(high-low)) })
}

// ticksMax bounds the labels of an axis.
const ticksMax = 12

func multiples(low, high, step float64) []plot.Tick {
	decimals := 0
	if step < 1 {
		decimals = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	var all []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-12) && len(all) <= ticksMax; i++ {
		v := i*step + 0 // 0 and not −0
		text := strconv.FormatFloat(v, 'f', decimals, 64)
		if v != 0 && math.Abs(v) >= shortMost || step < shortLeast {
			text = number(v)
		}
		all = append(all, plot.Tick{Value: v, Label: text})
	}
	return all
}

// apart says whether the labels leave a gap on an axis of that length.
func apart(all []plot.Tick, low, high float64, room vg.Length) bool {
	if len(all) > ticksMax {
		return false
	}
	var wide vg.Length
	for _, t := range all {
		wide = max(wide, widthOf(t.Label))
	}
	return len(all) < 2 || room*vg.Length((all[1].Value-all[0].Value)/(high-low)) > wide+12
}

// decades are powers of ten, as many as have room: with their double and
// fivefold, with their threefold, alone, every second, third or fourth. Where
// less than two lie on the axis, they are even steps.
func decades(low, high float64, room vg.Length) []plot.Tick {
	at := func(v float64) vg.Length { return room * vg.Length(math.Log(v/low)/math.Log(high/low)) }
	for _, c := range []struct {
		factors []float64
		stride  int
	}{{[]float64{1, 2, 5}, 1}, {[]float64{1, 3}, 1}, {[]float64{1}, 1}, {[]float64{1}, 2}, {[]float64{1}, 3}, {[]float64{1}, 4}} {
		var all []plot.Tick
		for e := int(math.Floor(math.Log10(low))); float64(e) <= math.Log10(high); e++ {
			for _, f := range c.factors {
				v := f * math.Pow10(e)
				if e%c.stride == 0 && v >= low*(1-1e-9) && v <= high*(1+1e-9) {
					all = append(all, plot.Tick{Value: v, Label: number(v)})
				}
			}
		}
		if len(all) < 2 {
			break
		}
		if len(spread(all, at)) == len(all) {
			return all
		}
	}
	return spread(ticks(low, high, room), at)
}

// spread leaves out labels that would touch the one before.
func spread(all []plot.Tick, at func(float64) vg.Length) []plot.Tick {
	var kept []plot.Tick
	var end vg.Length = -math.MaxFloat32
	for _, t := range all {
		half := widthOf(t.Label) / 2
		if at(t.Value)-half > end+6 {
			kept, end = append(kept, t), at(t.Value)+half
		}
	}
	return kept
}

// number is a value with three significant digits, with an exponent where it
// would be long.
func number(v float64) string {
	size := math.Abs(v)
	if size == 0 {
		return "0"
	}
	if size < shortLeast || size >= shortMost {
		return strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(strconv.FormatFloat(v, 'g', 3, 64))
	}
	digits := max(2-int(math.Floor(math.Log10(size))), 0)
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Numbers from shortLeast up to shortMost are short without an exponent.
const (
	shortLeast = 1e-4
	shortMost  = 1e6
)

// chart draws both axes into a rectangle and says where values lie. Grid lines
// run across it from the axis that has the values; an axis without ticks is
// not drawn.
func (p pen) chart(x, y scale, within vg.Rectangle) frame {
	c := plot.New()
	c.BackgroundColor = nil
	c.X.Min, c.X.Max, c.Y.Min, c.Y.Max = x.min, x.max, y.min, y.max
	axes := []*plot.Axis{&c.X, &c.Y}
	for i, s := range []scale{x, y} {
		a := axes[i]
		a.Tick.Label.Font = textStyle().Font
		a.Padding, a.Tick.Length, a.Tick.Width = 0, 4, 0.5
		a.Tick.Marker = plot.ConstantTicks(s.ticks)
		if s.log {
			a.Scale = plot.LogScale{}
		}
	}
	c.Y.Tick.Length, c.Y.Width, c.Y.Padding = 0, 0, 4
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: ink(34), Width: 0.5}
	grid.Horizontal = grid.Vertical
	c.Add(grid)
	if len(x.ticks) == 0 {
		c.HideX()
		grid.Vertical.Color = nil
	}
	if len(y.ticks) == 0 {
		c.HideY()
		grid.Horizontal.Color = nil
	}
	canvas := draw.Canvas{Canvas: p.Canvas.Canvas, Rectangle: within}
	c.Draw(canvas)
	area := c.DataCanvas(canvas)
	f := frame{area: area.Rectangle}
	f.x, f.y = c.Transforms(&area)
	return f
}

// nameX writes what an axis shows, centred below it.
func (p pen) nameX(f frame, bottom vg.Length, s string) {
	x := (f.area.Min.X + f.area.Max.X) / 2
	half := widthOf(s) / 2
	x = max(min(x, pageWidth-edge-half), edge+half)
	p.write(s, at(x, bottom), text.XCenter, text.YBottom)
}

// String is the axis in words.
func (a Axis) String() string {
	if a.Unit == "" {
		return a.Name
	}
	return fmt.Sprintf("%s, %s", a.Name, a.Unit)
}

// extent is the least and greatest of what is finite, and whether any is.
func extent(values ...float64) (low, high float64, found bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) {
			low, high, found = min(low, v), max(high, v), true
		}
	}
	return low, high, found
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) && math.Abs(v) < 1e15 }
