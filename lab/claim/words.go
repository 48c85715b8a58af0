package claim

import (
	"fmt"
	"math"
	"strings"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
)

// Statement is the claim in one sentence without a full stop.
func Statement(c experiment.Claim) string {
	text := said(c)
	if c.Where != nil {
		text += ", where " + c.Where.String()
	}
	if c.At == experiment.AtSome {
		text += ", in some cell"
	}
	return text
}

func said(c experiment.Claim) string {
	what := subject(c)
	switch c.Kind {
	case experiment.KindOrder:
		names := make([]string, len(c.Order))
		for i, s := range c.Order {
			names[i] = s.String()
		}
		return what + strings.Join(names, " < ")
	case experiment.KindRatio:
		return fmt.Sprintf("%s / %s %s", what, nameOf(c.To), within(c))
	case experiment.KindSlope:
		figure, factor := c.SlopeUnit()
		steps := ""
		if c.Steps {
			steps = ", at every step"
		}
		return fmt.Sprintf("%s grows over %s by %s %s per %s%s", what, c.Over, within(c), figure, factor, steps)
	case experiment.KindCrossing:
		if c.Never {
			return fmt.Sprintf("%s and %s do not cross over %s", what, nameOf(c.To), c.Over)
		}
		return fmt.Sprintf("%s rises above %s at %s %s", what, nameOf(c.To), c.Over, within(c))
	}
	return what + " " + within(c)
}

// subject names the figures on the left of a claim: "p50", "p50: a − b"; where
// each side has a metric of its own, that of the claim is left out.
func subject(c experiment.Claim) string {
	metric := c.MetricOf(nil)
	if metric == experiment.MetricShare {
		metric = "share over " + c.Limit.String()
	}
	other := c.To
	if c.Minus != nil {
		other = c.Minus
	}
	of := nameOf(c.Of)
	if c.Minus != nil {
		of += " − " + nameOf(c.Minus)
	}
	switch {
	case c.Kind == experiment.KindOrder:
		return metric + ": "
	case c.Of != nil && c.Of.Metric != "" && other != nil && other.Metric != "":
		return of
	case c.Of == nil && c.Minus == nil:
		return metric
	}
	return metric + ": " + of
}

func nameOf(s *experiment.Selector) string {
	if s == nil {
		return "any cell"
	}
	return s.String()
}

func within(c experiment.Claim) string {
	switch {
	case len(c.Between) == 2:
		return fmt.Sprintf("between %s and %s", c.Between[0], c.Between[1])
	case c.Below != "":
		return "below " + string(c.Below)
	}
	return "above " + string(c.Above)
}

// label names the cells of a member: its first of each side, in full, and how
// many lie along the factor.
func (j judge) label(c experiment.Claim, m experiment.Member) string {
	first := m.Points[0]
	text := j.cells[first.Of.Cell].String()
	if first.To.Cell >= 0 && first.To.Cell != first.Of.Cell {
		text += " against " + j.cells[first.To.Cell].String()
	}
	if c.Over != "" {
		text += fmt.Sprintf(" and on, %d levels of %s", len(m.Points), c.Over)
	}
	return text
}

// effect prints the figure of a comparison with its interval, empty where it
// has none.
func effect(c experiment.Claim, m comparison) string {
	e := m.estimate
	if m.result == "" || e.Repetitions == 0 || math.IsNaN(e.Value) {
		return ""
	}
	if e.RequestsOnly || math.IsNaN(e.Low) {
		return figureIn(c, e.Value)
	}
	text := fmt.Sprintf("%s [%s, %s]", figureIn(c, e.Value), figureIn(c, e.Low), figureIn(c, e.High))
	if c.Kind == experiment.KindSlope {
		figure, factor := c.SlopeUnit()
		text += " " + figure + " per " + factor
	}
	return text
}

// figureIn prints a figure of the claim in its unit.
func figureIn(c experiment.Claim, value float64) string {
	shares := c.Kind == experiment.KindOrder && equal(c) == 0
	switch {
	case c.Kind == experiment.KindCrossing:
		return pointOn(c.Over, value)
	case math.IsInf(value, 0):
		return strings.Replace(fmt.Sprint(value), "Inf", "∞", 1)
	case c.Kind == experiment.KindBound || shares:
		of := c.Of
		if shares {
			of = &c.Order[0]
		}
		return measured(experiment.MetricUnit(c.MetricOf(of)), value)
	}
	return fmt.Sprintf("%.4g", value)
}

func measured(unit experiment.Unit, value float64) string {
	switch unit {
	case experiment.UnitShare:
		return fmt.Sprintf("%.3g%%", 100*value)
	case experiment.UnitRate:
		return fmt.Sprintf("%.4g/s", value)
	}
	return measure.InWords(value, func(d time.Duration) string { return d.Round(time.Microsecond).String() })
}

// pointOn prints a place on the factor of a crossing.
func pointOn(over string, value float64) string {
	switch {
	case math.IsInf(value, 1):
		return "never"
	case math.IsInf(value, -1):
		return "from the first on"
	case over == "size":
		return fmt.Sprintf("%.4gKB", value/1000)
	case over == "threads":
		return fmt.Sprintf("%.3g", value)
	case over == "rate":
		return measured(experiment.UnitRate, value)
	}
	return measured(experiment.UnitTime, value)
}

// why tells what decided.
func why(c experiment.Claim, told comparison, counts map[Result]int, l limits) string {
	others := ""
	if l.tests > 1 {
		others = fmt.Sprintf(" (%s in %d of %d comparisons)", told.result, counts[told.result], l.tests)
	}
	if told.failed > 0 {
		others += "; " + measured(experiment.UnitShare, told.failed) + " of a cell's requests failed and have no time"
	}
	switch {
	case told.why != "":
		return told.label + ": " + told.why + others
	case told.result == Inconclusive:
		return told.label + ": " + unsettled(c, told, l) + others
	case told.result == Holds && l.tests > 1:
		return "least clearly in " + told.label + others
	}
	return told.label + others
}

// repetitionsMax is the most that a file may ask for.
const repetitionsMax = 1000

// unsettled says how many more repetitions would bring the interval clear of
// every limit that it reaches across.
func unsettled(c experiment.Claim, told comparison, l limits) string {
	e := told.estimate
	if c.Kind == experiment.KindCrossing && (math.IsInf(e.Low, 0) || math.IsInf(e.High, 0)) {
		return "whether the lines cross is open; more repetitions would tell"
	}
	if math.IsInf(e.Low, 0) || math.IsInf(e.High, 0) {
		return "the interval has no end; more repetitions would tell"
	}
	most := 0
	for _, bound := range []float64{l.low, l.high} {
		if math.IsInf(bound, 0) || bound < e.Low || bound > e.High {
			continue
		}
		more, ok := e.More(bound, told.tests)
		if !ok {
			return "the figure lies at " + figureIn(c, bound) + ", so that no number of repetitions would settle it"
		}
		most = max(most, more)
	}
	switch {
	case most > repetitionsMax:
		return fmt.Sprintf("the figure lies so near to the limit that %d more repetitions would not settle it", repetitionsMax)
	case most <= 1:
		return "about 1 more repetition would settle it"
	}
	return fmt.Sprintf("about %d more repetitions would settle it", most)
}
