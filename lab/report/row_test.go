package report

import (
	"reflect"
	"testing"
	"time"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
)

func TestRowHasEveryFigure(t *testing.T) {
	r := small().Results[1]
	for _, median := range []time.Duration{11 * time.Millisecond, 9 * time.Millisecond, 10 * time.Millisecond} {
		r.PerRepetition = append(r.PerRepetition, measure.Summary{N: 3, Times: measure.Times{Median: median}})
	}
	r.PerRepetition = append(r.PerRepetition, measure.Summary{Requests: 3, Errors: 3})
	want := row{
		Median: "10.25", Interval: "n < 6", P90: "11.00", P99: "12.00", Mean: "10.30", IQRMean: "10.26",
		Max: "13.00", First: "30.00", Repetitions: "9.00 to 11.00", Errors: "2 (25.0%)", N: "5", Failed: true,
	}
	if got := rowOf(r, 2); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
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

func TestLinkShowsWhatWasAskedAndSeen(t *testing.T) {
	asked := impair.Direction{Name: "a>b", Impairment: impair.Impairment{Delay: 5 * ms, Jitter: ms, Reorder: true, Loss: 0.001}}
	for _, c := range []struct {
		name          string
		seen          impair.Counters
		loss, lateMax string
		distrust      bool
	}{
		{"as asked", impair.Counters{Packets: 20_000, Lost: 21}, "0.10%", noFigure, false},
		{"unused", impair.Counters{}, noFigure, noFigure, false},
		{"late", impair.Counters{Packets: 10, Late: 1, LateMaxNs: 1_500_000}, "0.0%", "1.500", true},
		{"missed", impair.Counters{Packets: 10, Missed: 1}, "0.0%", noFigure, true},
	} {
		got := linkOf("cell", Link{Asked: asked, Seen: c.seen})
		want := linkView{
			Cell: "cell", Name: "a>b", Asked: "delay 5ms ± 1ms uniform with reordering, loss 0.1%", AskedLoss: "0.1%",
			SeenLoss: c.loss, LateMax: c.lateMax, Seen: c.seen, Distrust: c.distrust,
		}
		if got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, got, want)
		}
	}
}
