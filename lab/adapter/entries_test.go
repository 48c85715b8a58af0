package adapter_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/sample"
)

// atEntries is a cell of threads at three entries, of which the second has none.
func atEntries(tool string) experiment.Cell {
	c := cell(tool)
	c.Ratio, c.Threads, c.Iterations, c.Duration = "3:0:1", 4, 0, quantity.Duration(time.Second)
	return c
}

// Skerry's load has a target for each entry with threads; a tool has a job for each.
func TestSplit(t *testing.T) {
	job := adapter.Job{Cell: atEntries(""), Target: "a:1", Targets: []string{"a:1", "b:1", "c:1"}, Seed: 7}
	s := job.Spec()
	if want := []load.Target{{Target: "a:1", Threads: 3}, {Target: "c:1", Threads: 1}}; !reflect.DeepEqual(s.Targets, want) || s.Target != "" || s.Threads != 0 {
		t.Errorf("got %+v, want the targets %v", s, want)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	jobs := job.Split()
	if len(jobs) != 2 {
		t.Fatalf("%d jobs, want those of two entries", len(jobs))
	}
	for i, want := range []struct {
		target  string
		threads int
	}{{"a:1", 3}, {"c:1", 1}} {
		if one := jobs[i]; one.Target != want.target || one.Cell.Threads != want.threads || one.Cell.Ratio != "" || !one.Cell.Timed() || one.Seed != 7 {
			t.Errorf("job %d is %+v, want %+v", i, one, want)
		}
	}
	plain := adapter.Job{Cell: cell("ab"), Target: "a:1", Targets: []string{"a:1"}}
	if got := plain.Split(); !reflect.DeepEqual(got, []adapter.Job{plain}) {
		t.Errorf("without a ratio it is %+v", got)
	}
	if s := plain.Spec(); s.Target != "a:1" || s.Threads != 2 || s.Targets != nil {
		t.Errorf("without a ratio the load is %+v", s)
	}
}

// Rows of all entries are in one order, by threads that tell the entry; totals are added.
func TestMerge(t *testing.T) {
	job := adapter.Job{Cell: atEntries("ab"), Targets: []string{"a:1", "b:1", "c:1"}}
	merged, err := adapter.Merge(job.Split(), []adapter.Result{
		{Requests: []sample.Request{{ScheduledNs: 1}, {ScheduledNs: 5}}, Total: &sample.Summary{Requests: 2, DurationNs: 9}},
		{Requests: []sample.Request{{ScheduledNs: 3, Connection: 1}}, Total: &sample.Summary{Requests: 1, Errors: 1, DurationNs: 8}},
	})
	want := adapter.Result{
		Requests: []sample.Request{{ScheduledNs: 1}, {ScheduledNs: 3, Thread: 3, Connection: 1}, {ScheduledNs: 5}},
		Total:    &sample.Summary{Requests: 3, Errors: 1, DurationNs: 9},
	}
	if err != nil || !reflect.DeepEqual(merged, want) {
		t.Errorf("got %+v, %v; want %+v", merged, err, want)
	}
	many := make([]sample.Request, 1e7+1)
	_, err = adapter.Merge(job.Split(), []adapter.Result{{Requests: many}, {Requests: many}})
	if wrong, ok := errors.AsType[*adapter.OutputError](err); !ok || wrong.Message != "20000002 rows of all entries are more than 20000000" {
		t.Errorf("got %v", err)
	}
}

// TestRealByTime has ab request for a second at each entry.
func TestRealByTime(t *testing.T) {
	target := serving(t)
	c := atEntries("ab")
	c.Workload, c.Size = "payload-echo", 1000
	jobs := adapter.Job{Cell: c, Targets: []string{target, target, target}, Seed: 1}.Split()
	var results []adapter.Result
	for _, one := range jobs {
		results = append(results, carriedOut(t, one))
	}
	result, err := adapter.Merge(jobs, results)
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Duration(result.Total.DurationNs); d < 900*time.Millisecond || d > 3*time.Second {
		t.Errorf("it took %s, want a second", d)
	}
	perEntry := map[int32]int64{}
	for _, q := range result.Requests {
		perEntry[q.Thread]++
	}
	if n := perEntry[0] + perEntry[3]; len(perEntry) != 2 || n != result.Total.Requests || perEntry[0] < 100 || perEntry[3] < 100 {
		t.Errorf("rows %v of %d requests", perEntry, result.Total.Requests)
	}
}
