package load

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/workload"
)

// counting serves the workload hello-world and counts its requests.
func counting(t *testing.T, pause time.Duration) (target string, served *atomic.Int32) {
	served = new(atomic.Int32)
	return startFunc(t, func(http.ResponseWriter, *http.Request) {
		served.Add(1)
		time.Sleep(pause)
	}), served
}

// perThread counts the rows of each thread.
func perThread(rows []sample.Request) map[int32]int {
	all := map[int32]int{}
	for _, r := range rows {
		all[r.Thread]++
	}
	return all
}

// Each target has as many threads as it asks for, numbered through all of them.
func TestTargets(t *testing.T) {
	a, servedA := counting(t, 0)
	b, servedB := counting(t, 0)
	rows := run(t, Spec{Targets: []Target{{a, 3}, {b, 1}}, Workload: workload.HelloWorld, Iterations: 5, Warmup: 2})
	if len(rows) != 28 || servedA.Load() != 21 || servedB.Load() != 7 {
		t.Fatalf("%d rows, %d and %d served; want 28, 21 and 7", len(rows), servedA.Load(), servedB.Load())
	}
	ordered(t, rows)
	for i, r := range rows {
		if r.Error != "" || r.Thread != int32(i/7) || r.Warmup != (i%7 < 2) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// The threads of a load that rotates ask the next target after each time, also one that
// had none at first.
func TestRotates(t *testing.T) {
	const rotate = 150 * time.Millisecond
	a, servedA := counting(t, time.Millisecond)
	b, servedB := counting(t, time.Millisecond)
	c, servedC := counting(t, time.Millisecond)
	rows := run(t, Spec{
		Targets: []Target{{a, 0}, {b, 2}, {c, 0}}, Workload: workload.HelloWorld, Timeout: patience, Connection: New,
		OpenLoop: OpenLoop{Duration: quantity.Duration(2 * rotate), Rotate: quantity.Duration(rotate)},
	})
	if n := servedB.Load() + servedC.Load(); servedA.Load() != 0 || servedB.Load() == 0 || servedC.Load() == 0 || len(rows) != int(n) {
		t.Errorf("%d rows; %d, %d and %d served, want some by the second and by the third", len(rows), servedA.Load(), servedB.Load(), servedC.Load())
	}
	early := 0
	for _, r := range rows {
		if r.Error != "" {
			t.Errorf("%+v", r)
		}
		if time.Duration(r.ScheduledNs-rows[0].ScheduledNs) < rotate {
			early++
		}
	}
	if off := early - int(servedB.Load()); off < -2 || off > 2 { // those that are under way
		t.Errorf("%d of the first time, %d served by the second target", early, servedB.Load())
	}
}

// What a load asks while it settles is warm-up, and its time begins after that.
func TestSettles(t *testing.T) {
	const settle, duration = 300 * time.Millisecond, 200 * time.Millisecond
	target, _ := counting(t, time.Millisecond)
	rows := run(t, Spec{
		Targets: []Target{{target, 2}}, Workload: workload.HelloWorld, Timeout: patience,
		OpenLoop: OpenLoop{Duration: quantity.Duration(duration), Settle: quantity.Duration(settle)},
	})
	var warm, counted []int64
	for _, r := range rows {
		if r.Warmup {
			warm = append(warm, r.ScheduledNs)
		} else {
			counted = append(counted, r.ScheduledNs)
		}
	}
	if len(warm) == 0 || len(counted) == 0 {
		t.Fatalf("%d rows of warm-up, %d that count", len(warm), len(counted))
	}
	if slices.Max(warm) >= slices.Min(counted) {
		t.Error("a request that counts was due before one of the warm-up")
	}
	if took := time.Duration(slices.Max(warm) - slices.Min(warm)); took > settle {
		t.Errorf("the warm-up took %s of %s", took, settle)
	}
	if took := time.Duration(slices.Max(counted) - slices.Min(counted)); took > duration {
		t.Errorf("what counts took %s of %s", took, duration)
	}
}

// A loop by time has its threads go on until it is over, and ends when the last request
// is answered. The fast target has more of them, since no thread waits for another.
func TestTimedLoop(t *testing.T) {
	const duration, slow = 600 * time.Millisecond, 50 * time.Millisecond
	a, servedA := counting(t, 2*time.Millisecond)
	b, servedB := counting(t, slow)
	begin := time.Now()
	rows := run(t, Spec{
		Targets: []Target{{a, 2}, {b, 3}}, Workload: workload.HelloWorld, Warmup: 1, Timeout: patience,
		OpenLoop: OpenLoop{Duration: quantity.Duration(duration)},
	})
	if took := time.Since(begin); took < duration-slow {
		t.Errorf("it was over after %s of %s", took, duration)
	}
	ordered(t, rows)
	if len(rows) != int(servedA.Load()+servedB.Load()) {
		t.Errorf("%d rows of %d + %d requests", len(rows), servedA.Load(), servedB.Load())
	}
	each := perThread(rows)
	if n := each[0] + each[1]; n != int(servedA.Load()) || len(each) != 5 {
		t.Errorf("the rows of the threads are %v, the first target has served %d", each, servedA.Load())
	}
	for thread := range int32(5) {
		if most := int(duration/slow) + 1; each[thread] < 2 || thread >= 2 && each[thread] > most || thread < 2 && each[thread] < most {
			t.Errorf("thread %d has made %d requests of %v", thread, each[thread], each)
		}
	}
	first, last := rows[0].ScheduledNs, int32(-1)
	for i, r := range rows {
		if at := time.Duration(r.ScheduledNs - first); r.Error != "" || at > duration || r.Thread < last || r.Warmup != (r.Index == 1) {
			t.Errorf("row %d, due after %s: %+v", i, at, r)
		}
		last = r.Thread
	}
}

// A thread whose next request would be due after the end does not wait for it.
func TestTimedLoopDoesNotThinkPastItsEnd(t *testing.T) {
	target, served := counting(t, 0)
	rows := run(t, Spec{
		Targets: []Target{{target, 2}}, Workload: workload.HelloWorld, Think: quantity.Duration(time.Hour),
		OpenLoop: OpenLoop{Duration: patience},
	})
	if len(rows) != 2 || served.Load() != 2 {
		t.Errorf("%d rows, %d served; want one of each thread", len(rows), served.Load())
	}
}

// More than a page of requests come out in order, with the ways of their datagrams.
func TestTimedLoopTurnsPages(t *testing.T) {
	target := startProtocol(t, workload.PayloadEcho, workload.UDP)
	result, err := Run(t.Context(), Spec{
		Targets: []Target{{target, 2}}, Workload: workload.PayloadEcho, Protocol: workload.UDP, Size: 100, Timeout: impatience,
		OpenLoop: OpenLoop{Duration: quantity.Duration(time.Second)},
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := result.Requests
	if len(rows) <= 2*pageRows || len(result.There) != len(rows) || len(result.Back) != len(rows) {
		t.Fatalf("%d rows, %d ways there, %d back", len(rows), len(result.There), len(result.Back))
	}
	for i, r := range rows {
		if i > 0 && r.Thread == rows[i-1].Thread && r.ScheduledNs <= rows[i-1].ScheduledNs || result.There[i].Sequence != int64(i) {
			t.Fatalf("row %d is %+v after %+v", i, r, rows[max(i-1, 0)])
		}
	}
}

// A load that makes more requests than can be kept ends with that error.
func TestTimedLoopIsBounded(t *testing.T) {
	target, _ := counting(t, 0)
	p, err := newPlan(t.Context(), Spec{
		Targets: []Target{{target, 3}}, Workload: workload.HelloWorld, OpenLoop: OpenLoop{Duration: quantity.Duration(time.Minute)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.most = 10
	result, err := p.drive(t.Context())
	const want = "more than 10 requests before 1m0s were over: no file of samples holds them"
	if err == nil || err.Error() != want || len(result.Requests) != 10 {
		t.Errorf("%d rows and %v, want 10 and %s", len(result.Requests), err, want)
	}
}

// Where no target answers, all are named.
func TestNoTargetAnswers(t *testing.T) {
	_, err := Run(t.Context(), Spec{
		Targets: []Target{{"127.0.0.1:1", 20}, {"127.0.0.2:1", 20}}, Workload: workload.HelloWorld,
		OpenLoop: OpenLoop{Duration: quantity.Duration(time.Minute)},
	})
	if !errors.Is(err, ErrNoAnswer) || !strings.HasPrefix(err.Error(), "no answer from 127.0.0.1:1, 127.0.0.2:1: ") {
		t.Errorf("got %v", err)
	}
}

func TestBadTargetLists(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"target": "a:1", "threads": 1},`, targetsMax+1), ",")
	const one = `[{"target": "a:1", "threads": 2}]`
	for text, says := range map[string]string{
		`"targets": ` + one: "0 iterations lie outside 1 to 20000000",
		`"targets": ` + one + `, "iterations": 1, "target": "a:1"`:                                          "targets stand in place of target and threads",
		`"targets": ` + one + `, "iterations": 1, "threads": 1`:                                             "targets stand in place of target and threads",
		`"targets": ` + one + `, "iterations": 1, "duration": "1s"`:                                         "either iterations or a duration",
		`"targets": ` + one + `, "duration": "1s", "rate": "10/s"`:                                          "a load with a rate has one target",
		`"targets": ` + one + `, "duration": "-1s"`:                                                         "is negative",
		`"targets": ` + one + `, "duration": "1s", "ramp": "1s"`:                                            "ramp 1s is not below the duration of 1s",
		`"targets": ` + one + `, "duration": "1s", "arrivals": "poisson"`:                                   "only a load with a rate has them",
		`"targets": ` + one + `, "iterations": 10000001`:                                                    "20000002 requests are over the bound of 20000000",
		`"targets": [{"target": "a:1", "threads": 0}], "iterations": 1`:                                     `target "a:1": 0 threads lie outside 1 to 10000`,
		`"targets": [{"target": "a:1"}], "duration": "1s"`:                                                  "0 threads lie outside",
		`"targets": [{"target": "a:1", "threads": 2, "rate": "1/s"}], "iterations": 1`:                      "unknown field",
		`"targets": [` + many + `], "iterations": 1`:                                                        fmt.Sprintf("%d targets are over the bound of %d", targetsMax+1, targetsMax),
		`"targets": [{"target": "a:1", "threads": 9999}, {"target": "b:1", "threads": 2}], "iterations": 1`: "10001 threads lie outside 1 to 10000",
	} {
		_, err := ReadSpec(strings.NewReader(`{"workload": "hello-world", ` + text + `}`))
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\ngot error %v\nwant one that says %s", text, err, says)
		}
	}
	_, err := Run(t.Context(), Spec{Targets: []Target{{"127.0.0.1:1", 1}, {"b", 1}}, Workload: workload.HelloWorld, Iterations: 1})
	if err == nil || !strings.Contains(err.Error(), `target "b": `) || !strings.Contains(err.Error(), "missing port") {
		t.Errorf("got %v, want the target that is none", err)
	}
}
