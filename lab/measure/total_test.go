package measure_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/sample"
)

// Totals are put together without an interval: nobody knows what they are made of.
func TestTotals(t *testing.T) {
	const ms = int64(time.Millisecond)
	p := measure.Totals([]sample.Summary{
		{Requests: 100, MeanNs: 10 * ms, P50Ns: 9 * ms, P90Ns: 20 * ms, P99Ns: 30 * ms, MaxNs: 31 * ms},
		{Requests: 100, Errors: 100, Classes: map[string]int64{"status": 98, "read": 2}},
		{Requests: 310, Errors: 10, Classes: map[string]int64{"read": 10}, MeanNs: 14 * ms, P50Ns: 13 * ms, P90Ns: 24 * ms, P99Ns: 34 * ms, MaxNs: 90 * ms},
		{Requests: 100, MeanNs: 10 * ms, P50Ns: 10 * ms, P90Ns: 20 * ms, P99Ns: 30 * ms, MaxNs: 31 * ms},
	})
	want := measure.Summary{
		Requests: 610, Errors: 110, ErrorClasses: []measure.ErrorClass{{Name: "status", Count: 98}, {Name: "read", Count: 12}}, N: 500,
		Times: measure.Times{
			Median: 10 * time.Millisecond, P90: 20 * time.Millisecond, P99: 30 * time.Millisecond,
			Mean: 12400 * time.Microsecond, Max: 90 * time.Millisecond,
		},
	}
	if !reflect.DeepEqual(p.Summary, want) {
		t.Errorf("got  %+v\nwant %+v", p.Summary, want)
	}
	if len(p.Each) != 4 || p.Each[0].N != 100 || p.Each[1].N != 0 || p.Each[2].Times.Median != 13*time.Millisecond {
		t.Errorf("each %+v", p.Each)
	}
	if e := p.Values.Median(rand.New(rand.NewPCG(1, 1))); e.N != 0 || p.First.Len() != 0 || len(p.Rates) != 0 {
		t.Errorf("something to resample: %+v, %v", e, p.Rates)
	}
	if p := measure.Totals(nil); p.Summary.Requests != 0 || p.Summary.N != 0 {
		t.Errorf("nothing amounts to %+v", p.Summary)
	}
}

// Of a loop by time those requests make the rate that were answered in its time, beside
// its warm-up.
func TestWithin(t *testing.T) {
	const ms = int64(time.Millisecond)
	var rows []sample.Request
	for thread := range int32(2) {
		for i := range int32(10) { // 100 ms each, the last ends at 1.05 s
			begin := 7_000*ms + int64(i)*100*ms + 50*ms*int64(thread)
			rows = append(rows, sample.Request{Thread: thread, Index: i + 1, ScheduledNs: begin, LastByteNs: begin + 100*ms})
		}
	}
	rate := func() float64 {
		g := measure.Gather(rows)
		g.Within(rows, 0, time.Second)
		if got := measure.Pool([]*measure.Gathered{g}).Rates[0]; got != g.Rate() {
			t.Errorf("claims see %v, the table %v", got, g.Rate())
		}
		return g.Rate()
	}
	if got := rate(); got != 19 {
		t.Errorf("19 of 20 answers came within a second: %v a second", got)
	}
	rows[4].Error = "timeout"
	if got := rate(); got != 18 {
		t.Errorf("and one failed: %v a second", got)
	}
	rows[0].Warmup, rows[10].Warmup = true, true
	if got, want := rate(), 16/0.9; math.Abs(got-want) > 1e-9 {
		t.Errorf("from the end of the warm-up of the first thread, 0.9 s: %v a second, want %v", got, want)
	}
	rows = rows[:1]
	if got := rate(); got != 0 {
		t.Errorf("nothing but warm-up: %v a second", got)
	}
}

// Of a load that settles the rate is what was answered in its time, whenever it was asked.
func TestWithinSettled(t *testing.T) {
	const ms, settle = int64(time.Millisecond), 250 * time.Millisecond
	var rows []sample.Request
	for i := range int32(10) { // 100 ms each; two are warm-up, and the third, answered in time
		begin := 7_000*ms + int64(i)*100*ms
		rows = append(rows, sample.Request{Index: 1, ScheduledNs: begin, LastByteNs: begin + 100*ms, Warmup: begin < 7_000*ms+int64(settle)})
	}
	g := measure.Gather(rows)
	g.Within(rows, settle, 500*time.Millisecond)
	if g.Rate() != 10 {
		t.Errorf("5 answers in half a second: %v a second", g.Rate())
	}
	if n := g.Summary().N; n != 7 {
		t.Errorf("%d response times, want those of 7 requests that were asked in its time or later", n)
	}
}

// The rate is the tool's where it does not say when a request began.
func TestOver(t *testing.T) {
	var rows []sample.Request
	for i := range int32(10) {
		q := sample.Request{Index: i + 1, ScheduledNs: 1e9, LastByteNs: 1e9 + 10e6, Warmup: i == 0}
		if i == 9 {
			q.Error = "timeout"
		}
		rows = append(rows, q)
	}
	g := measure.Gather(rows)
	g.Over(2 * time.Second)
	if got := measure.Pool([]*measure.Gathered{g}).Rates; len(got) != 1 || got[0] != 4 {
		t.Errorf("8 answers in 2 s: %v a second", got)
	}
	g.Over(0)
	if got := measure.Pool([]*measure.Gathered{g}).Rates; got[0] != 0 {
		t.Errorf("in no time: %v a second", got)
	}
}
