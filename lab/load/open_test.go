package load

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/workload"
)

func TestConstantArrivals(t *testing.T) {
	got := arrivals(Spec{OpenLoop: OpenLoop{Rate: 3, Duration: quantity.Duration(2 * time.Second)}})
	want := []int64{0, 333333333, 666666667, 1000000000, 1333333333, 1666666667}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := arrivals(Spec{OpenLoop: OpenLoop{Rate: 1000, Duration: quantity.Duration(10 * time.Second)}}); len(got) != 10_000 || got[9_999] != 9_999e6 {
		t.Errorf("%d arrivals, the last at %d ns; want 10000 and 9999000000", len(got), got[len(got)-1])
	}
}

// The gaps of 10 000 arrivals against the exponential distribution, by
// Kolmogorov and Smirnov at the 1 % level; the seed is fixed.
func TestPoissonArrivals(t *testing.T) {
	const rate, n = 1000.0, 10_000
	s := Spec{OpenLoop: OpenLoop{Rate: rate, Arrivals: Poisson, Duration: quantity.Duration(12 * time.Second)}, Seed: 1}
	list := arrivals(s)
	if !slices.IsSorted(list) || len(list) < n || list[len(list)-1] >= int64(s.Duration) {
		t.Fatalf("%d arrivals to %d ns", len(list), list[len(list)-1])
	}
	gaps, last := make([]float64, n), int64(0)
	for i, at := range list[:n] {
		gaps[i], last = float64(at-last)/1e9, at
	}
	slices.Sort(gaps)
	distance := 0.0
	for i, gap := range gaps {
		p := 1 - math.Exp(-gap*rate)
		distance = max(distance, p-float64(i)/n, float64(i+1)/n-p)
	}
	if most := 1.628 / math.Sqrt(n); distance > most {
		t.Errorf("the gaps lie %.4f from the exponential distribution, at most %.4f is chance", distance, most)
	}
	again := arrivals(s)
	s.Seed = 2
	if !slices.Equal(again, list) || slices.Equal(arrivals(s), list) {
		t.Error("arrivals are not their seed's alone")
	}
}

// stall is a time in which a server answers nobody, by clock.Mono.
type stall struct{ begin, end int64 }

// stalling serves the workload hello-world and stalls once.
func stalling(t *testing.T, after, pause time.Duration) (target string, once stall) {
	begin := clock.Mono() + int64(after)
	once = stall{begin, begin + int64(pause)}
	return startFunc(t, func(http.ResponseWriter, *http.Request) {
		if now := clock.Mono(); now > once.begin {
			time.Sleep(time.Duration(once.end - now))
		}
	}), once
}

// charged counts the requests that were due in the stall, each of which must have waited
// for its end.
func (s stall) charged(t *testing.T, rows []sample.Request) (n int) {
	t.Helper()
	for i, r := range rows {
		if r.ScheduledNs <= s.begin || r.ScheduledNs >= s.end {
			continue
		}
		n++
		if left := s.end - r.ScheduledNs; r.ResponseNs() < left {
			t.Errorf("row %d is answered after %d ns, and the stall still lasted %d", i, r.ResponseNs(), left)
		}
	}
	return n
}

// A server that stalls once is one slow request to a closed loop, and one to
// every client that would have come meanwhile to an open one.
func TestStallIsChargedToAllWhoWait(t *testing.T) {
	const after, pause, rate = 200 * time.Millisecond, 200 * time.Millisecond, 1000
	target, once := stalling(t, after, pause)
	rows := run(t, Spec{Target: target, Workload: workload.HelloWorld, Think: quantity.Duration(time.Millisecond), Iterations: 300})
	if n := once.charged(t, rows); n > 1 { // none, where it was sent before and arrived in it
		t.Errorf("closed loop: %d requests were due while the server stalled, want 1", n)
	}
	target, once = stalling(t, after, pause)
	rows = run(t, Spec{
		Target: target, Workload: workload.HelloWorld,
		Threads: 4, OpenLoop: OpenLoop{Rate: rate, Duration: quantity.Duration(2 * (after + pause))},
	})
	ordered(t, rows)
	if n, want := once.charged(t, rows), int(pause.Seconds()*rate); n < want-1 || n > want+1 {
		t.Errorf("open loop: %d requests were due while the server stalled, want %d", n, want)
	}
}

func TestMissedRequestsAreRows(t *testing.T) {
	t.Parallel() // it sleeps
	var served atomic.Int32
	target := startFunc(t, func(http.ResponseWriter, *http.Request) {
		served.Add(1)
		time.Sleep(100 * time.Millisecond)
	})
	const total, timeout = 100, 200 * time.Millisecond
	for _, connection := range []string{Kept, New} {
		served.Store(0)
		rows := run(t, Spec{
			Target: target, Workload: workload.HelloWorld, Threads: 2, Connection: connection,
			OpenLoop: OpenLoop{Rate: 200, Duration: quantity.Duration(total * 5 * time.Millisecond)}, Timeout: quantity.Duration(timeout),
		})
		missed := 0
		for i, r := range rows {
			if gap := int64(5e6); i > 0 && r.ScheduledNs-rows[i-1].ScheduledNs != gap {
				t.Errorf("%s: row %d is due %d ns after the one before it, want %d", connection, i, r.ScheduledNs-rows[i-1].ScheduledNs, gap)
			}
			switch {
			case r.Error == classMissed && r.SentNs == 0 && r.Connection == 0:
				missed++
			case r.Error != "":
				t.Errorf("%s: row %d: %+v", connection, i, r)
			}
		}
		// Two threads serve 20 a second each 50 ms: most of the rest is given up.
		if len(rows) != total || missed < total/2 || missed+int(served.Load()) != total {
			t.Errorf("%s: %d rows, %d missed, %d served; want %d rows, most missed", connection, len(rows), missed, served.Load(), total)
		}
	}
}

func TestOpenLoopIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	begin := time.Now()
	result, err := Run(ctx, Spec{
		Target: start(t, workload.HelloWorld), Workload: workload.HelloWorld, OpenLoop: OpenLoop{Rate: 100, Duration: quantity.Duration(time.Minute)},
	})
	rows := result.Requests
	if !errors.Is(err, context.Canceled) || time.Since(begin) > 10*time.Second {
		t.Errorf("error %v after %s, want %v soon", err, time.Since(begin), context.Canceled)
	}
	if len(rows) == 0 || len(rows) > 100 {
		t.Errorf("%d rows, want those before the end, about 20", len(rows))
	}
	for i, r := range rows {
		if r.Error != "" {
			t.Errorf("row %d blames the system: %q", i, r.Error)
		}
	}
}

// Little's law: requests in flight = rate × mean response time.
func TestLittlesLaw(t *testing.T) {
	const rate, duration = 400, time.Second
	rows := run(t, Spec{
		Target: start(t, workload.Sleep), Workload: workload.Sleep, Work: Work{Time: quantity.Duration(5 * time.Millisecond)},
		Threads: 32, OpenLoop: OpenLoop{Rate: rate, Arrivals: Poisson, Duration: quantity.Duration(duration)}, Seed: 3,
	})
	// The area under the number in flight, taken at its changes alone.
	type change struct{ at, by int64 }
	var changes []change
	for i, r := range rows {
		if r.Error != "" {
			t.Fatalf("row %d: %+v", i, r)
		}
		changes = append(changes, change{r.ScheduledNs, 1}, change{r.LastByteNs, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	var area, flight, sum, within int64
	for i, c := range changes {
		if i > 0 {
			area += flight * (c.at - changes[i-1].at)
		}
		flight += c.by
	}
	for _, r := range rows {
		sum += r.SentNs - r.ScheduledNs
		if r.ResponseNs() >= int64(5*time.Millisecond) {
			within++
		}
	}
	if int(within) != len(rows) {
		t.Errorf("%d of %d answers came before the server's 5 ms were over", len(rows)-int(within), len(rows))
	}
	flying := float64(area) / float64(duration)
	mean := 0.0
	for _, r := range rows {
		mean += float64(r.ResponseNs()) / float64(len(rows))
	}
	// Poisson arrivals scatter by 1/√400 = 5 % about the rate that was asked for.
	if ratio := flying / (rate * mean / 1e9); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("in flight over rate × mean response is %.3f, want 1 ± 0.1", ratio)
	}
	t.Logf("mean response %.3f ms, mean wait before the send %.3f ms", mean/1e6, float64(sum)/float64(len(rows))/1e6)
}

func TestBadOpenLoops(t *testing.T) {
	for text, says := range map[string]string{
		`"rate": "200/s"`:                                         "needs a duration above 0s",
		`"duration": "1s"`:                                        "rate 0/s lies outside",
		`"rate": "0/s", "duration": "1s"`:                         "rate 0/s lies outside",
		`"rate": "2000000/s", "duration": "1s"`:                   "to 1000000/s",
		`"rate": "200", "duration": "1s"`:                         "is not a frequency",
		`"rate": "0.1/s", "duration": "1s"`:                       "0.1 requests lie outside 1 to 10000000",
		`"rate": "1000000/s", "duration": "1h"`:                   "requests lie outside",
		`"rate": "200/s", "duration": "1s", "iterations": 1`:      "takes no iterations, warmup, think or ramp",
		`"rate": "200/s", "duration": "1s", "think": "1ms"`:       "takes no iterations, warmup, think or ramp",
		`"rate": "200/s", "duration": "1s", "arrivals": "bursts"`: `arrivals "bursts" are neither constant nor poisson`,
		`"rate": "200/s", "duration": "1s", "threads": 10001`:     "10001 threads lie outside",
		`"iterations": 1, "arrivals": "poisson"`:                  "only a load with a rate has them",
		`"rate": "19/s", "duration": "1s", "arrivals": "poisson"`: "19/s for 1s: 19 requests are below 20, and of so few poisson may draw none",
		`"rate": "200/s", "duration": "1s", "connection": "keep"`: "neither kept nor new",
	} {
		_, err := ReadSpec(strings.NewReader(`{"workload": "hello-world", ` + text + `}`))
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\ngot error %v\nwant one that says %s", text, err, says)
		}
	}
}
