package report

import (
	"reflect"
	"testing"
	"time"

	"skerry.dev/skerry/lab/measure"
)

func TestRowHasEveryFigure(t *testing.T) {
	r := small().Results[1]
	for _, median := range []time.Duration{11 * time.Millisecond, 9 * time.Millisecond, 10 * time.Millisecond} {
		r.PerRepetition = append(r.PerRepetition, measure.Summary{N: 3, Times: measure.Times{Median: median}})
	}
	r.PerRepetition = append(r.PerRepetition, measure.Summary{Requests: 3, Errors: 3})
	r.Oracle.Limit, r.Observed.Rate = 10*time.Millisecond, 96.25
	want := row{
		Failed: true,
		timesRow: timesRow{
			Median: "10.25", Interval: "[10.10, 10.90]*", P90: "11.00", P99: "12.00", Mean: "10.30", IQRMean: "10.26", Max: "13.00",
			First: "30.00", Repetitions: "9.00 to 11.00", MedianOfEach: "11.00, 9.00, 10.00", Share: "97.6%",
		},
		countsRow: countsRow{Rate: "96.2", Errors: "2 (25.0%)", N: "5"},
	}
	if got := rowOf(r, 2); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// An interval of two repetitions may end beyond what a duration holds.
func TestIntervalWithoutAnEnd(t *testing.T) {
	e := measure.Estimate{N: 4, Repetitions: 2, Value: 1e6, Low: 1e6, High: 5e20}
	if got, want := intervalText(e, 2), "[1.00, +∞]†"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRowsAreGroupedByScenario(t *testing.T) {
	var results []Result
	for _, name := range []string{"lcl", "lcl", "edg10", "edg10", "lcl"} {
		r := small().Results[0]
		r.Cell.Scenario.Name = name
		results = append(results, r)
	}
	want := []bool{false, false, true, false, true}
	for i, r := range rows(results, axes()) {
		if r.Leads != want[i] {
			t.Errorf("row %d of %s leads: %v, want %v", i, r.Levels[0], r.Leads, want[i])
		}
	}
}
