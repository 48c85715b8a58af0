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

// repetitionsEnough is from how many repetitions on the interval of a median is
// hardly wider than that of many; see measure.Contrast.
const repetitionsEnough = 10

// Marks behind an interval that says less than one of many repetitions would.
const (
	markOne = "*"
	markFew = "†"
	// markTotal stands in place of an interval.
	markTotal = "‡"
)

// row is a result as text: what the terminal's table and the page share.
type row struct {
	// Levels of the factors that head the row.
	Levels []string
	// Leads marks the first row of the next scenario.
	Leads bool
	// Note is empty, or says why there are no figures.
	Note string
	// Failed says that requests failed.
	Failed bool
	timesRow
	countsRow
}

// timesRow is response times in ms.
type timesRow struct {
	Median, Interval    string
	P90, P99, Max       string
	Mean, IQRMean       string
	First, Repetitions  string
	MedianOfEach, Share string
}

// countsRow counts requests.
type countsRow struct{ Rate, Errors, N string }

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
		Note: r.Missing(),
		timesRow: timesRow{
			Median: noFigure, Interval: noFigure, P90: noFigure, P99: noFigure, Max: noFigure, Mean: noFigure,
			IQRMean: noFigure, First: noFigure, Repetitions: noFigure, MedianOfEach: noFigure, Share: noFigure,
		},
		countsRow: countsRow{Rate: noFigure, Errors: noFigure, N: noFigure},
	}
	if out.Note != "" && out.Note != wordNoAnswer {
		return out
	}
	out.Errors, out.N, out.Failed = errorsText(s), strconv.Itoa(s.N), s.Errors > 0
	if s.FirstN > 0 {
		out.First = milliseconds(s.First, decimals)
	}
	if out.Note != "" {
		return out
	}
	out.Median, out.Interval = milliseconds(t.Median, decimals), intervalText(r.Median, decimals)
	out.P90, out.P99, out.Max = milliseconds(t.P90, decimals), milliseconds(t.P99, decimals), milliseconds(t.Max, decimals)
	out.Mean, out.IQRMean = milliseconds(t.Mean, decimals), milliseconds(t.IQRMean, decimals)
	if r.Total {
		out.Interval, out.IQRMean = noFigure+markTotal, noFigure
	}
	out.Repetitions, out.MedianOfEach = repetitionsText(r.PerRepetition, decimals)
	if share, ok := r.shareOfLimit(); ok {
		out.Share = strconv.FormatFloat(100*share, 'f', 1, 64) + "%"
	}
	if r.Observed.Rate > 0 {
		out.Rate = rateText(r.Observed.Rate)
	}
	return out
}

// decimalsFor keeps microseconds where a median lies below 1 ms, and tenths of them where
// packets are timed.
func decimalsFor(results []Result) int {
	decimals := 2
	for _, r := range results {
		switch {
		case r.Missing() == "" && r.Cell.OneWay():
			return 4
		case r.Missing() == "" && r.Summary.Times.Median < time.Millisecond:
			decimals = 3
		}
	}
	return decimals
}

func milliseconds(d time.Duration, decimals int) string {
	return strconv.FormatFloat(inMs(d), 'f', decimals, 64)
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// hasInterval says whether an estimate has been made and has ends.
func hasInterval(e measure.Estimate) bool {
	return e.N > 0 && !math.IsNaN(e.Low) && !math.IsNaN(e.High)
}

// intervalText is "[9.98, 10.31]", with a mark where few repetitions stand
// behind it.
func intervalText(e measure.Estimate, decimals int) string {
	if !hasInterval(e) {
		return noFigure
	}
	end := func(ns float64) string {
		return measure.InWords(ns, func(d time.Duration) string { return milliseconds(d, decimals) })
	}
	return fmt.Sprintf("[%s, %s]", end(e.Low), end(e.High)) + intervalMark(e)
}

func intervalMark(e measure.Estimate) string {
	switch {
	case !hasInterval(e):
		return ""
	case e.RequestsOnly:
		return markOne
	case e.Repetitions < repetitionsEnough:
		return markFew
	}
	return ""
}

// marksText says what the marks mean that the results need, each on a line.
func marksText(results []Result) []string {
	used := map[string]bool{}
	for _, r := range results {
		if r.Missing() == "" {
			used[intervalMark(r.Median)] = true
			used[markTotal] = used[markTotal] || r.Total
		}
	}
	var lines []string
	if used[markOne] {
		lines = append(lines, markOne+" one repetition: the interval knows how requests differ, not how repetitions do")
	}
	if used[markFew] {
		lines = append(lines, fmt.Sprintf("%s fewer than %d repetitions: the interval is the wider for it", markFew, repetitionsEnough))
	}
	if used[markTotal] {
		lines = append(lines, markTotal+" a total of the load's tool, which keeps no requests: medians of its figures over repetitions, without an interval")
	}
	return lines
}

// repetitionsText is the least and greatest median of the repetitions, and all
// of them in order.
func repetitionsText(repetitions []measure.Summary, decimals int) (span, each string) {
	low, high := time.Duration(math.MaxInt64), time.Duration(-1)
	var medians []string
	for _, s := range repetitions {
		if s.N > 0 {
			low, high = min(low, s.Times.Median), max(high, s.Times.Median)
			medians = append(medians, milliseconds(s.Times.Median, decimals))
		}
	}
	if high < 0 {
		return noFigure, noFigure
	}
	return milliseconds(low, decimals) + " to " + milliseconds(high, decimals), strings.Join(medians, ", ")
}

// rateText is a rate per second with three significant digits or more.
func rateText(perSecond float64) string {
	switch {
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 2, 64)
	case perSecond < 100:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return strconv.FormatFloat(perSecond, 'f', 0, 64)
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
