package measure

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/lab/sample"
)

// request takes ms milliseconds and is the index-th of its connection.
func request(index int32, ms int64) sample.Request {
	const due = 1_000_000_000
	return sample.Request{Index: index, ScheduledNs: due, LastByteNs: due + ms*1e6, Status: 200}
}

func warmup(r sample.Request) sample.Request {
	r.Warmup = true
	return r
}

func failed(index int32, err string) sample.Request {
	return sample.Request{Index: index, ScheduledNs: 1_000_000_000, Error: err}
}

func TestKeptConnectionsReportRequestOneApart(t *testing.T) {
	s := Summarise([]sample.Request{
		warmup(request(1, 90)), warmup(request(2, 50)), request(3, 10), request(4, 12), request(5, 14),
		warmup(request(1, 70)), warmup(request(2, 50)), request(3, 11), request(4, 13), request(5, 15),
	})
	if s.Requests != 6 || s.N != 6 || s.Errors != 0 {
		t.Errorf("requests %d, n %d, errors %d; want 6, 6, 0", s.Requests, s.N, s.Errors)
	}
	if s.FirstN != 2 || s.First != 80*time.Millisecond {
		t.Errorf("first of %d connections is %v, want 80ms of 2", s.FirstN, s.First)
	}
	if s.Times.Median != 12500*time.Microsecond || s.Times.Max != 15*time.Millisecond || s.Times.Mean != 12500*time.Microsecond {
		t.Errorf("median %v, max %v, mean %v; want 12.5ms, 15ms, 12.5ms", s.Times.Median, s.Times.Max, s.Times.Mean)
	}
}

func TestKeptConnectionWithoutWarmupDropsRequestOneFromTheSample(t *testing.T) {
	s := Summarise([]sample.Request{request(1, 90), request(2, 10), request(3, 20)})
	if s.Requests != 3 || s.N != 2 || s.Times.Max != 20*time.Millisecond || s.First != 90*time.Millisecond {
		t.Errorf("got %+v, want 3 requests, 2 of them timed, the slowest 20ms, first 90ms", s)
	}
}

func TestNewConnectionsAreTheSample(t *testing.T) {
	s := Summarise([]sample.Request{warmup(request(1, 500)), request(1, 30), request(1, 10), request(1, 20)})
	if s.N != 3 || s.Times.Median != 20*time.Millisecond || s.FirstN != 3 || s.First != 20*time.Millisecond {
		t.Errorf("got %+v, want n 3, median and first 20ms", s)
	}
}

func TestFailuresAreCountedAndNeverTimed(t *testing.T) {
	s := Summarise([]sample.Request{
		request(1, 90), failed(2, "timeout"), failed(1, "refused"), failed(1, "refused"),
		request(1, 70), request(2, 10), warmup(failed(1, "not ready")), failed(1, "closed"),
	})
	if s.Requests != 7 || s.Errors != 4 || s.N != 1 || s.FirstN != 2 {
		t.Errorf("requests %d, errors %d, n %d, first %d; want 7, 4, 1, 2", s.Requests, s.Errors, s.N, s.FirstN)
	}
	want := []ErrorClass{{"refused", 2}, {"closed", 1}, {"timeout", 1}}
	if !slices.Equal(s.ErrorClasses, want) {
		t.Errorf("classes %v, want %v", s.ErrorClasses, want)
	}
	if got := s.ErrorShare(); got != 4.0/7 {
		t.Errorf("share %v, want 4/7", got)
	}
}

func TestNothingAnsweredHasNoTimes(t *testing.T) {
	for name, requests := range map[string][]sample.Request{
		"no request": nil,
		"all failed": {failed(1, "refused"), failed(1, "refused")},
		"all warmup": {warmup(request(1, 5)), warmup(failed(2, "reset"))},
	} {
		s := Summarise(requests)
		if s.N != 0 || s.Times.Median != 0 || s.Times.Box.Outliers != nil {
			t.Errorf("%s: got %+v", name, s)
		}
	}
	if got := (Summary{}).ErrorShare(); got != 0 {
		t.Errorf("share of nothing is %v", got)
	}
}

func TestInWords(t *testing.T) {
	for ns, want := range map[float64]string{
		1.5e6: "1.5ms", -2e9: "-2s", 9.2e18: "2555555h33m20s",
		math.MaxInt64: "+∞", 5e20: "+∞", math.Inf(1): "+∞", math.MinInt64: "-∞", -5e20: "-∞",
	} {
		if got := InWords(ns, time.Duration.String); got != want {
			t.Errorf("%g ns: got %s, want %s", ns, got, want)
		}
	}
}

func TestErrorClassesAreBounded(t *testing.T) {
	var requests []sample.Request
	for i := range 30 {
		for range 30 - i {
			requests = append(requests, failed(1, fmt.Sprintf("class %02d", i)))
		}
	}
	s := Summarise(requests)
	last := s.ErrorClasses[len(s.ErrorClasses)-1]
	if len(s.ErrorClasses) != errorClassesMax+1 || last.Name != OtherErrors || last.Count != 55 {
		t.Errorf("%d classes, the last %+v; want %d and 55 of %q", len(s.ErrorClasses), last, errorClassesMax+1, OtherErrors)
	}
	if first := s.ErrorClasses[0]; first != (ErrorClass{"class 00", 30}) {
		t.Errorf("the most frequent is %+v", first)
	}
}

func TestEveryFigureIsOfTheSample(t *testing.T) {
	requests := []sample.Request{request(1, 5000)}
	for ms := range int64(101) {
		requests = append(requests, request(2, ms*ms/100))
	}
	got := Summarise(requests).Times
	got.Box = Box{}
	want := Times{ // NumPy, of [i*i//100 for i in range(101)], as in sorted_test.go
		Median: 25 * time.Millisecond, P90: 81 * time.Millisecond, P99: 98 * time.Millisecond,
		Mean: 33_099_010, IQRMean: 26_764_706, Max: 100 * time.Millisecond,
	}
	if got.Median != want.Median || got.P90 != want.P90 || got.P99 != want.P99 || got.Max != want.Max {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Mean != want.Mean || got.IQRMean != want.IQRMean {
		t.Errorf("means %d and %d, want %d and %d", got.Mean, got.IQRMean, want.Mean, want.IQRMean)
	}
}
