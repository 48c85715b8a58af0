package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/measure"
)

// noFigure stands where a figure would be.
const noFigure = "–"

// row is a result as text: what the terminal's table and the page share.
// Times are milliseconds.
type row struct {
	// Levels of the factors that head the row.
	Levels []string
	// Leads marks the first row of the next scenario.
	Leads bool
	// Note is empty, or says why there are no figures.
	Note                    string
	Median, Interval        string
	P90, P99, Mean, IQRMean string
	Max, First, Repetitions string
	Errors, N               string
	Failed                  bool
}

// rows makes a row of each result, all with the same number of decimals.
func rows(results []Result, factors []factor) []row {
	decimals := decimalsFor(results)
	all := make([]row, len(results))
	for i, r := range results {
		all[i] = rowOf(r, decimals)
		all[i].Levels = levels(factors, r.Cell)
		all[i].Leads = i > 0 && r.Cell.Scenario.Name != results[i-1].Cell.Scenario.Name
	}
	return all
}

func rowOf(r Result, decimals int) row {
	s, t := r.Summary, r.Summary.Times
	out := row{
		Note: r.missing(), Median: noFigure, Interval: noFigure, P90: noFigure, P99: noFigure, Mean: noFigure,
		IQRMean: noFigure, Max: noFigure, First: noFigure, Repetitions: noFigure, Errors: noFigure, N: noFigure,
	}
	if out.Note == wordRejected || out.Note == wordNotRun {
		return out
	}
	out.Errors, out.N, out.Failed = errorsText(s), strconv.Itoa(s.N), s.Errors > 0
	if s.FirstN > 0 {
		out.First = milliseconds(s.First, decimals)
	}
	if out.Note != "" {
		return out
	}
	out.Median, out.Interval = milliseconds(t.Median, decimals), intervalText(t.Interval, decimals)
	out.P90, out.P99 = milliseconds(t.P90, decimals), milliseconds(t.P99, decimals)
	out.Mean, out.IQRMean = milliseconds(t.Mean, decimals), milliseconds(t.IQRMean, decimals)
	out.Max, out.Repetitions = milliseconds(t.Max, decimals), repetitionsText(r.PerRepetition, decimals)
	return out
}

// decimalsFor keeps microseconds where a median lies below 1 ms.
func decimalsFor(results []Result) int {
	for _, r := range results {
		if r.missing() == "" && r.Summary.Times.Median < time.Millisecond {
			return 3
		}
	}
	return 2
}

func milliseconds(d time.Duration, decimals int) string {
	return strconv.FormatFloat(inMs(d), 'f', decimals, 64)
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func intervalText(i measure.Interval, decimals int) string {
	if i.Coverage == 0 {
		return "n < 6"
	}
	return fmt.Sprintf("[%s, %s]", milliseconds(i.Low, decimals), milliseconds(i.High, decimals))
}

// repetitionsText is the least and greatest median of the repetitions.
func repetitionsText(repetitions []measure.Summary, decimals int) string {
	low, high := time.Duration(math.MaxInt64), time.Duration(-1)
	for _, s := range repetitions {
		if s.N > 0 {
			low, high = min(low, s.Times.Median), max(high, s.Times.Median)
		}
	}
	if high < 0 {
		return noFigure
	}
	return milliseconds(low, decimals) + " to " + milliseconds(high, decimals)
}

func errorsText(s measure.Summary) string {
	if s.Errors == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", s.Errors, percent(s.ErrorShare()))
}

// percentDecimalsMax is where a share becomes too small to write out.
const percentDecimalsMax = 6

// percent writes a share with at least two significant digits: 0.080%, 1.5%.
func percent(share float64) string {
	v, decimals := 100*share, 1
	for limit := 1.0; v > 0 && v < limit && decimals < percentDecimalsMax; limit /= 10 {
		decimals++
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + "%"
}

// errorClassesText is "3 timeout, 1 refused".
func errorClassesText(classes []measure.ErrorClass) string {
	texts := make([]string, len(classes))
	for i, c := range classes {
		texts[i] = fmt.Sprintf("%d %s", c.Count, c.Name)
	}
	return strings.Join(texts, ", ")
}
