package compare

import (
	"fmt"
	"math"
	"strconv"

	"skerry.dev/skerry/lab/measure"
)

// noFigure stands where a figure would be.
const noFigure = "–"

// row is a cell as text: what the terminal's table and the page share.
type row struct {
	Label string
	// A and B are medians in ms, Change that of B to A with its 95 % Interval,
	// Shift in ms, P after Holm, and Floor what A differs by from itself.
	A, B, Change, Interval, Shift, P, Floor string
	// Apart is what the medians differ by, Jitter what the distances of the quartiles
	// do, both in µs with their 95 % intervals.
	Apart, Jitter string
	// Errors are the shares of requests that failed in A and in B.
	Errors string
	// Verdict, with what it would take or why there is none.
	Verdict string
	// Class is how the verdict looks on a page: good, bad or nothing.
	Class string
	Past  bool
}

func rowOf(c Cell) row {
	out := row{
		Label: c.Label, A: noFigure, B: noFigure, Change: noFigure, Interval: noFigure, Shift: noFigure, P: noFigure,
		Floor: noFigure, Apart: noFigure, Jitter: noFigure, Errors: errorsOf(c), Verdict: string(c.Verdict), Past: c.Past,
	}
	switch c.Verdict {
	case NotComparable:
		out.Verdict += ": " + c.Why
		return out
	case measure.MoreErrors:
		out.Class = "bad"
		if c.Why != "" {
			out.Verdict += ", " + c.Why
			return out
		}
	case measure.TooFew:
		out.Verdict += fmt.Sprintf(": %d needed in each run", c.Needed)
	case measure.Faster:
		out.Class = "good"
	case measure.Slower:
		out.Class = "bad"
	}
	out.A, out.B, out.Shift = milliseconds(c.A.Value), milliseconds(c.B.Value), signed(c.Shift)
	out.Apart, out.Jitter = microseconds(c.Apart), microseconds(c.Jitter)
	out.Change = change(c.Ratio.Value)
	out.Interval = fmt.Sprintf("[%s, %s]", change(c.Ratio.Low), change(c.Ratio.High))
	out.P = probability(c.Adjusted)
	if !math.IsNaN(c.Floor) && c.Floor > 0 {
		out.Floor = fmt.Sprintf("±%.1f%%", 100*c.Floor)
	}
	return out
}

// errorsOf is the shares of requests that failed, as "0% to 60.2%", or "0%" where they are
// the same.
func errorsOf(c Cell) string {
	a, b := shareOf(c.ErrorsA), shareOf(c.ErrorsB)
	if a == b {
		return a
	}
	return a + " to " + b
}

func shareOf(share float64) string {
	if math.IsNaN(share) {
		return noFigure
	}
	return strconv.FormatFloat(100*share, 'g', 3, 64) + "%"
}

func milliseconds(ns float64) string {
	if math.IsNaN(ns) {
		return noFigure
	}
	return strconv.FormatFloat(ns/1e6, 'f', 3, 64)
}

// microseconds is an estimate in ns as "+103 [+98, +109]".
func microseconds(e measure.Estimate) string {
	if math.IsNaN(e.Value) {
		return noFigure
	}
	return fmt.Sprintf("%s [%s, %s]", whole(e.Value), whole(e.Low), whole(e.High))
}

// whole is a time in ns as whole µs, with its sign.
func whole(ns float64) string {
	switch {
	case math.IsNaN(ns):
		return noFigure
	case math.IsInf(ns, 0):
		return fmt.Sprintf("%+.0f", ns)
	}
	return fmt.Sprintf("%+.0f", math.Round(ns/1e3)+0) // + 0: no -0
}

func signed(ns float64) string {
	if math.IsNaN(ns) {
		return noFigure
	}
	return fmt.Sprintf("%+.3f", ns/1e6)
}

// change is a ratio as what became more or less: 1.071 is +7.1%.
func change(ratio float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return noFigure
	}
	return fmt.Sprintf("%+.1f%%", math.Round(1000*(ratio-1))/10+0) // + 0: no -0.0
}

func probability(p float64) string {
	switch {
	case math.IsNaN(p):
		return noFigure
	case p < 0.0001:
		return "<0.0001"
	}
	return strconv.FormatFloat(p, 'f', 4, 64)
}
