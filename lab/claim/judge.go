package claim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
)

// Cell is one cell with its samples. Where Missing or Lacks is set, the figures
// are not looked at.
type Cell struct {
	experiment.Cell
	// RTT of the links that a request crosses.
	RTT time.Duration
	// Limit is the least response time that any system can reach, 0 where that is not
	// known.
	Limit time.Duration
	// Values are response times in ns by repetition, First those of request 1 of
	// each connection.
	Values, First *measure.Repetitions
	// Jitter is of timed packets.
	Jitter *measure.Repetitions
	// Repetitions are the summaries of each, and Rates how many requests were
	// answered a second.
	Repetitions []measure.Summary
	Rates       []float64
	// Missing says why the cell has no figures that count: it was rejected, or
	// not run.
	Missing string
	// Lacks says what this machine lacks to run the cell.
	Lacks string
}

// Judge judges every claim by the cells of its experiment, in the order of the
// claims. The same samples give the same judgements: resamples are seeded by
// the cell. The error is that of a claim that experiment.Read would refuse.
//
// A claim is a family of comparisons, one for each combination that it leaves
// open. Of a comparison the claim holds where the interval (measure.Contrast)
// lies wholly inside what it says, fails where wholly outside, and is
// inconclusive else. It holds as a whole where it holds of every comparison, and
// fails where it fails of one; with at: some, the other way round.
//
// What one comparison is enough for, chance has as many chances to bring about as
// there are comparisons: their intervals hold together with 95 %. What must be so
// of every one is not, by chance, more often than of the least clear: there each
// interval holds with 95 % by itself. It is an intersection–union test (Berger,
// Multiparameter Hypothesis Testing and Acceptance Sampling, 1982).
func Judge(claims []experiment.Claim, cells []Cell) ([]Judgement, error) {
	plain := make([]experiment.Cell, len(cells))
	for i, c := range cells {
		plain[i] = c.Cell
	}
	j := judge{cells: cells, drawn: map[figure]measure.Drawn{}}
	judgements := make([]Judgement, 0, len(claims))
	for _, c := range claims {
		low, high, err := c.Limits()
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", c.Name, err)
		}
		if c.Kind == experiment.KindOrder {
			low = equal(c)
		}
		members, _ := c.Members(plain)
		l := limits{low, high, len(members)}
		comparisons := make([]comparison, len(members))
		for i, m := range members {
			comparisons[i] = j.compare(c, m, l)
		}
		judgements = append(judgements, conclude(c, comparisons, l))
	}
	return judgements, nil
}

// limits are where the figure of a claim must lie, and the size of its family.
type limits struct {
	low, high float64
	tests     int
}

// comparison is what the samples say of one combination.
type comparison struct {
	result Result
	// label names the cells.
	label string
	// estimate is right together with those of so many tests.
	estimate measure.Estimate
	tests    int
	// margin orders comparisons of one result: the one with the least is told.
	// It is how far inside the limits the interval ends in widths of its own,
	// for a failure how far outside, negative, and else how far the figure lies
	// from a limit.
	margin float64
	// why is set where there is no estimate to judge.
	why string
	// failed is the largest share of requests that failed of a cell whose times are told.
	failed float64
}

// judge keeps what was drawn, for all claims.
type judge struct {
	cells []Cell
	drawn map[figure]measure.Drawn
}

func (j judge) compare(c experiment.Claim, m experiment.Member, l limits) comparison {
	result := comparison{label: j.label(c, m)}
	sides, xs := j.sides(c, m)
	for _, s := range sides {
		cell := j.cells[s.Cell]
		switch {
		case cell.Lacks != "":
			result.result, result.why = NotRunnable, cell.Lacks
			return result
		case cell.Missing != "":
			result.result, result.why = Inconclusive, fmt.Sprintf("%s: %s", cell.Cell, cell.Missing)
		}
	}
	if result.why != "" {
		return result
	}
	if c.Over != "" && len(slices.Compact(slices.Clone(xs))) < len(xs) {
		return comparison{result: Inconclusive, label: result.label, why: "two cells lie at the same " + c.Over}
	}
	figures := make([]measure.Drawn, len(sides))
	for i, s := range sides {
		figures[i] = j.draw(s, c.Limit)
		if s.Metric != experiment.MetricErrors && s.Metric != experiment.MetricRate {
			result.failed = max(result.failed, j.cells[s.Cell].failed())
		}
	}
	result.estimate, result.tests = measure.Contrast(figures, 1, contrastOf(c, xs)), 1
	if !mustBeOfEvery(c, leaning(c, result.estimate, l)) {
		result.estimate, result.tests = measure.Contrast(figures, l.tests, contrastOf(c, xs)), l.tests
	}
	result.result, result.margin = decide(c, result.estimate, l)
	switch e := result.estimate; {
	case slices.ContainsFunc(figures, func(d measure.Drawn) bool { return math.IsNaN(d.Value) }):
		result.why = "a cell has no figure"
	case math.IsNaN(e.Value):
		result.why = "both figures are 0, which have no ratio"
	case math.IsNaN(e.Low):
		result.why = "both figures may be 0, which have no ratio"
	case e.RequestsOnly:
		result.why = "one repetition decides nothing: it needs at least 2"
	}
	if short := few(sides, figures); short != "" && result.result == Inconclusive && !result.estimate.RequestsOnly {
		result.why = short
	}
	return result
}

// few names a figure that has no upper end for want of answers, empty where all have one.
func few(sides []experiment.Side, figures []measure.Drawn) string {
	for i, d := range figures {
		if d.Needed > 0 {
			return fmt.Sprintf("%s needs %d answers, there are %d", sides[i].Metric, d.Needed, d.N)
		}
	}
	return ""
}

// failed is the share of the cell's requests that have no time.
func (c Cell) failed() float64 {
	hits, of := 0, 0
	for _, s := range c.Repetitions {
		hits, of = hits+s.Errors, of+s.Requests
	}
	return float64(hits) / float64(max(of, 1))
}

// sides lists the figures that a member needs, all Of before all To, and where
// its points lie on the factor, ascending.
func (j judge) sides(c experiment.Claim, m experiment.Member) (sides []experiment.Side, xs []float64) {
	x := func(p experiment.Point) float64 {
		cell := j.cells[p.Of.Cell]
		return c.X(cell.Cell, cell.RTT)
	}
	points := slices.Clone(m.Points)
	slices.SortStableFunc(points, func(a, b experiment.Point) int { return cmp.Compare(x(a), x(b)) })
	for _, p := range points {
		sides, xs = append(sides, p.Of), append(xs, x(p))
	}
	for _, p := range points {
		if p.To.Cell >= 0 {
			sides = append(sides, p.To)
		}
	}
	return sides, xs
}

// mustBeOfEvery says whether a claim has the result as a whole only where every
// comparison has it.
func mustBeOfEvery(c experiment.Claim, r Result) bool {
	if c.At == experiment.AtSome {
		return r == Fails
	}
	return r == Holds
}

// leaning is what would be decided were the figure known without error.
func leaning(c experiment.Claim, e measure.Estimate, l limits) Result {
	if !math.IsNaN(e.Low) {
		e.Low, e.High = e.Value, e.Value
	}
	result, _ := decide(c, e, l)
	return result
}

// decide compares an interval with the limits.
func decide(c experiment.Claim, e measure.Estimate, l limits) (Result, float64) {
	if math.IsNaN(e.Low) || e.RequestsOnly {
		return Inconclusive, math.Inf(-1)
	}
	open := c.Between == nil // above and below exclude the bound itself
	reaches := func(a, b float64) bool { return a > b || !open && a == b }
	never := c.Kind == experiment.KindCrossing && math.IsInf(e.Low, 0) && e.Low == e.High
	switch {
	case never && c.Never:
		return Holds, math.Inf(1)
	case c.Never && !math.IsInf(e.Low, 0) && !math.IsInf(e.High, 0), never:
		return Fails, math.Inf(-1)
	case c.Never:
		return Inconclusive, 0
	case (math.IsInf(l.low, -1) || reaches(e.Low, l.low)) && (math.IsInf(l.high, 1) || reaches(l.high, e.High)):
		return Holds, min(relative(e.Low-l.low, e), relative(l.high-e.High, e))
	case !reaches(e.High, l.low) || !reaches(l.high, e.Low):
		return Fails, -max(relative(l.low-e.High, e), relative(e.Low-l.high, e))
	}
	return Inconclusive, min(relative(math.Abs(e.Value-l.low), e), relative(math.Abs(l.high-e.Value), e))
}

// relative is a distance in widths of the interval, where it has one.
func relative(distance float64, e measure.Estimate) float64 {
	if width := e.High - e.Low; width > 0 && !math.IsInf(width, 0) {
		return distance / width
	}
	return distance
}

// conclude makes one judgement of all comparisons and tells of the one that
// decided: of those with the result, the one with the least margin.
func conclude(c experiment.Claim, comparisons []comparison, l limits) Judgement {
	judgement := Judgement{
		Name: c.Name, Statement: Statement(c), Paper: c.Paper, Kind: strings.ToUpper(c.Kind), Result: Inconclusive,
	}
	if len(comparisons) == 0 {
		judgement.Why = "no cells to compare"
		return judgement
	}
	order := []Result{Fails, NotRunnable, Inconclusive, Holds}
	if c.At == experiment.AtSome {
		order = []Result{Holds, NotRunnable, Inconclusive, Fails}
	}
	counts := map[Result]int{}
	for _, m := range comparisons {
		counts[m.result]++
	}
	for _, r := range order {
		if counts[r] > 0 {
			judgement.Result = r
			break
		}
	}
	told := comparison{margin: math.Inf(1)}
	for _, m := range comparisons {
		if m.result == judgement.Result && (told.result == "" || m.margin < told.margin) {
			told = m
		}
	}
	judgement.Effect = effect(c, told)
	judgement.Why = why(c, told, counts, l)
	return judgement
}
