package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/topology"
)

// SHA-256 of "2\n4\n" and of "0\n5\n", by sha256sum.
const (
	digestOfDelays = "7b90b6c82d45cab1f3b5f170e4b90c5545cd08cf90f6e6c28877b72e54da852b"
	digestOfTrace  = "d2a8c09af50702658a26c8de0e35154f08e23973b8d733f87afc26586646afdf"
)

// following is the example with links that follow two files, one of them twice,
// beside a trace that is built in.
func following(t *testing.T) (e *experiment.Experiment, delays, trace string) {
	t.Helper()
	dir := t.TempDir()
	delays, trace = filepath.Join(dir, "delays.csv"), filepath.Join(dir, "b.trace")
	if err := errors.Join(os.WriteFile(delays, []byte("2\n4\n"), 0o600), os.WriteFile(trace, []byte("0\n5\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	const ms = quantity.Duration(time.Millisecond)
	measured := impair.Impairment{Delay: 3 * ms, Jitter: ms, Distribution: impair.Distribution(delays)}
	e = example()
	e.Scenarios[0].Links = []experiment.Link{
		{Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Trace: trace}, Then: []impair.Impairment{measured}},
	}
	e.Scenarios[0].Timeline = []experiment.Event{
		{At: ms, Link: experiment.Link{Between: []topology.Ref{"c1", "c2"}, Impairment: measured}},
		{At: 2 * ms, Link: experiment.Link{Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Trace: "lte"}}},
	}
	return e, delays, trace
}

func TestRecordings(t *testing.T) {
	e, delays, trace := following(t)
	all, err := recordings(e)
	if want := []File{{trace, digestOfTrace}, {delays, digestOfDelays}}; err != nil || !slices.Equal(all, want) {
		t.Errorf("got %+v, %v, want %+v", all, err, want)
	}
	if all, err := recordings(example()); err != nil || all != nil {
		t.Errorf("links that follow nothing: %+v, %v", all, err)
	}
	facts := Record{Machine: Machine{Kernel: "6"}, Recordings: all}.facts()
	if !slices.Contains(facts, report.Fact{Name: delays, Value: "SHA-256 " + digestOfDelays[:16] + "…"}) {
		t.Errorf("the page lacks a digest: %+v", facts)
	}
	if err := os.Remove(trace); err != nil {
		t.Fatal(err)
	}
	if _, err := recordings(e); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that has gone: %v", err)
	}
}

// A run goes on with the files that it began with, or not at all.
func TestReread(t *testing.T) {
	e, delays, trace := following(t)
	all, err := recordings(e)
	if err != nil {
		t.Fatal(err)
	}
	s, err := create(filepath.Join(t.TempDir(), "run"))
	if err == nil {
		err = s.writeRecord(Record{Experiment: e, Recordings: all})
	}
	if err != nil {
		t.Fatal(err)
	}
	record, err := s.record()
	if err != nil || record.reread() != nil {
		t.Fatalf("files that are as they were: %v, %v", err, record.reread())
	}
	r, turn := runner{Options: Options{Experiment: e}, store: s}, Turn{Cell: e.Cells()[0], Repetition: 2}
	if _, err := r.gather(turn); err != nil {
		t.Fatalf("a repetition with files that are as they were: %v", err)
	}
	then := record.Experiment.Scenarios[0].Links[0].Then[0]
	if then.Table == nil || then.Quantile(0) != -1 || then.String() != "3ms ±1ms" {
		t.Errorf("read again it is %s", then)
	}
	for _, file := range []string{delays, trace} {
		before, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte("3\n7\n"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if changed, ok := errors.AsType[*ChangedFileError](record.reread()); !ok || changed.Path != file {
			t.Errorf("%s has changed: %v", file, changed)
		}
		if _, ok := errors.AsType[*ChangedFileError](Resume(t.Context(), Options{Dir: s.dir})); !ok {
			t.Errorf("a run goes on though %s has changed", file)
		}
		if _, err := r.gather(turn); err == nil || err.Error() != file+" has changed since the run began" {
			t.Errorf("the next repetition begins though %s has changed: %v", file, err)
		}
		if err := os.WriteFile(file, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
