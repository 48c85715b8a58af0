// Package measure turns samples into figures, and figures into statements that
// can be defended. Of the requests of a repetition it keeps the times (Gather);
// repetitions make a cell (Pool) with its quantiles, means and box. An Estimate
// has an interval from a hierarchical bootstrap (Repetitions.Quantile,
// Contrast); two runs are told apart by a permutation test (Compare). It is
// pure: the same samples and the same seed give the same figures. It drops no
// outlier, fits no model, and knows no cell but the samples it is handed. Start
// at Pool; Sorted holds the arithmetic.
package measure

import (
	"cmp"
	"math"
	"slices"
	"time"

	"skerry.dev/skerry/lab/sample"
)

// errorClassesMax bounds the classes that a Summary tells apart.
const errorClassesMax = 20

// OtherErrors is the class of the errors beyond the 20 most frequent classes.
const OtherErrors = "other"

// Summary is what the requests of one cell, or of one repetition, amount to.
// Where N is 0, every time in it is 0 and means nothing.
type Summary struct {
	// Requests that were asked for: all but warm-up, failed ones included.
	Requests int
	// Errors among them, and their classes, the most frequent first.
	Errors       int
	ErrorClasses []ErrorClass
	// N response times stand behind Times.
	N     int
	Times Times
	// First is the median response time of the FirstN answered requests that
	// were request 1 of their connection.
	First  time.Duration
	FirstN int
}

// Times are figures of N response times.
type Times struct {
	Median   time.Duration
	P90, P99 time.Duration
	Mean     time.Duration
	// IQRMean is the mean of the values between the quartiles.
	IQRMean time.Duration
	Max     time.Duration
	// Box is in nanoseconds.
	Box Box
}

// ErrorClass counts the requests that failed in one way.
type ErrorClass struct {
	// Name is the error as the sample has it.
	Name  string
	Count int
}

// Summarise makes the figures of requests, in any order, of one repetition or
// of several together. Which requests count:
//
//   - Warm-up requests count neither as requests nor as errors.
//   - A failed request counts as an error and has no response time.
//   - Connections are kept when any request of Index 2 or more was answered. Then request 1
//     of each connection pays for the dial and goes into First alone, warm-up
//     or not, since a connection's first request is mostly its warm-up. Of an open
//     loop it counts among the others as well (Gathered.OpenLoop).
//   - Otherwise every request has a connection of its own and pays for its
//     dial: all that are not warm-up are the sample, and First is its median.
func Summarise(requests []sample.Request) Summary { return Gather(requests).Summary() }

// ErrorShare is the share of requests that failed, 0 without requests.
func (s Summary) ErrorShare() float64 {
	return float64(s.Errors) / float64(max(s.Requests, 1))
}

// Failures counts, for each repetition, the requests that failed and all.
func Failures(each []Summary) (hits, of []int) {
	for _, s := range each {
		hits, of = append(hits, s.Errors), append(of, s.Requests)
	}
	return hits, of
}

func figures(values Sorted) Times {
	return Times{
		Median:  duration(values.Median()),
		P90:     duration(values.Quantile(0.90)),
		P99:     duration(values.Quantile(0.99)),
		Mean:    duration(values.Mean()),
		IQRMean: duration(values.IQRMean()),
		Max:     duration(values.Max()),
		Box:     values.Box(),
	}
}

// InWords is a figure in ns as words has it, or ∞ where that is longer than any
// duration: the interval of two repetitions may end so far away.
func InWords(ns float64, words func(time.Duration) string) string {
	switch {
	case ns >= math.MaxInt64:
		return "+∞"
	case ns <= math.MinInt64:
		return "-∞"
	}
	return words(time.Duration(ns))
}

// duration rounds nanoseconds, which interpolation may have split.
func duration(ns float64) time.Duration { return time.Duration(math.Round(ns)) }

// classes orders errors by count, then by name, and folds the rarest together.
func classes(errors map[string]int) []ErrorClass {
	var all []ErrorClass
	for name, count := range errors {
		all = append(all, ErrorClass{Name: name, Count: count})
	}
	slices.SortFunc(all, func(a, b ErrorClass) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	if len(all) <= errorClassesMax {
		return all
	}
	other := ErrorClass{Name: OtherErrors}
	for _, c := range all[errorClassesMax:] {
		other.Count += c.Count
	}
	return append(all[:errorClassesMax:errorClassesMax], other)
}
