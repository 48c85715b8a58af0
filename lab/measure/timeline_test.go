package measure

import (
	"testing"
	"time"

	"skerry.dev/skerry/lab/sample"
)

func TestTimelinesTellFewConnectionsApart(t *testing.T) {
	requests := []sample.Request{answered(1, 1, 500, 7), answered(0, 2, 100, 3), answered(0, 1, 0, 9), answered(0, 3, 200, 1)}
	requests[3].Error = "timeout"
	got := Timelines(requests)
	if len(got) != 2 || got[0].Thread != 0 || got[1].Thread != 1 || len(got[0].Points) != 2 || len(got[1].Points) != 1 {
		t.Fatalf("timelines: %+v", got)
	}
	want := Point{At: 100 * time.Microsecond, Low: 3 * time.Microsecond, Median: 3 * time.Microsecond, High: 3 * time.Microsecond, N: 1}
	if got[0].Points[1] != want {
		t.Errorf("point: %+v, want %+v", got[0].Points[1], want)
	}
	if got[1].Points[0].At != 500*time.Microsecond {
		t.Errorf("the clock of connection 2 begins at its own start: %+v", got[1].Points[0])
	}
	if Timelines(nil) != nil {
		t.Error("no request has a timeline")
	}
}

// TestTimelinesBeginWhenTheFirstRequestWasDue has a clock that is not at 0, and
// a first request that failed.
func TestTimelinesBeginWhenTheFirstRequestWasDue(t *testing.T) {
	var requests []sample.Request
	for i := range int64(8) {
		requests = append(requests, answered(int32(i), 1, 1_000_000+100*i, 5))
	}
	requests[0].Error = "refused"
	requests = append(requests, answered(0, 1, 1_002_000, 5))
	got := Timelines(requests)
	if len(got) != 8 {
		t.Fatalf("%d timelines of 8 connections", len(got))
	}
	if at := got[1].Points[0].At; at != 100*time.Microsecond {
		t.Errorf("the second request was due at %v, want 100µs", at)
	}
	if at := got[0].Points[0].At; len(got[0].Points) != 1 || at != 2*time.Millisecond {
		t.Errorf("the first connection: %+v, want one point at 2ms", got[0].Points)
	}
}

func TestTimelinesOfManyAreBounded(t *testing.T) {
	var requests []sample.Request
	for i := range int64(10_000) {
		requests = append(requests, answered(int32(i%9), int32(i/9)+1, i, 10+i%3))
	}
	got := Timelines(requests)
	if len(got) != 1 || got[0].Thread != -1 || got[0].Connection != -1 {
		t.Fatalf("%d timelines of 9 connections, the first of thread %d", len(got), got[0].Thread)
	}
	if n := len(got[0].Points); n == 0 || n > pointsMax {
		t.Errorf("%d points, want at most %d", n, pointsMax)
	}
	total := 0
	for _, p := range got[0].Points {
		total += p.N
		if p.Low != 10*time.Microsecond || p.Median != 11*time.Microsecond || p.High != 12*time.Microsecond {
			t.Errorf("point %+v, want 10, 11 and 12 µs", p)
		}
	}
	if total != len(requests) {
		t.Errorf("points hold %d requests of %d", total, len(requests))
	}
	if one := Timelines(requests[:1]); one[0].Points[0].At != 0 {
		t.Errorf("one request: %+v", one)
	}
}
