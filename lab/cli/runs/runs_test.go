package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/cli/source"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/workload/broker"
)

// An ID names an experiment, or those that begin so, but for those that take days.
func TestNamed(t *testing.T) {
	known := []string{"crt-direct-f3", "crt-direct-t3", "crt-direct-full", "crt-directly", "quickstart"}
	for id, want := range map[string][]string{
		"CRT-direct":      {"crt-direct-f3", "crt-direct-t3"},
		"crt-direct-full": {"crt-direct-full"},
		"quickstart":      {"quickstart"},
		"quick":           nil,
	} {
		if got := named(id, known); !slices.Equal(got, want) {
			t.Errorf("%s names %v, want %v", id, got, want)
		}
	}
}

// What this machine lacks stops one experiment, any other error all of them.
func TestNotHere(t *testing.T) {
	for _, lack := range []error{
		experiment.ErrNotRunnable, gobuild.ErrNoGo, &system.MissingError{}, &system.QdiscError{}, &program.MissingError{}, &broker.MissingError{},
		&preflight.ClockError{}, &preflight.OverlapError{}, &preflight.CapacityError{}, &preflight.ShortError{},
		&preflight.FeatureError{}, &preflight.ProgramError{},
	} {
		if !notHere(errors.Join(nil, fmt.Errorf("cell x: %w", lack))) {
			t.Errorf("%T stops all", lack)
		}
	}
	for _, other := range []error{nil, errClaim, host.ErrNotRoot, context.Canceled} {
		if notHere(other) {
			t.Errorf("%v is no lack of this machine", other)
		}
	}
}

// A budget is spread over the experiments: each keeps about the same share of the
// repetitions that its file asks for, and two at least.
func TestFit(t *testing.T) {
	sources := func() []source.File {
		all := make([]source.File, 2)
		for i := range all {
			e, err := experiment.Read("f", []byte(`name: f
topology: {clusters: [{name: c1, nodes: [n]}, {name: c2, nodes: [n]}], service: c1/n, client: c2/n}
scenarios: [{name: far, links: [{from: c1, to: c2, delay: 50ms}]}]
systems: [direct]
workloads: [{name: hello-world}]
load: {iterations: 100}
repetitions: `+[]string{"10", "40"}[i]+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			all[i] = source.File{Experiment: e}
		}
		return all
	}
	all := sources()
	cost := once(all[0])
	if err := fit(all, seconds(25*cost)); err != nil || all[0].Repetitions != 5 || all[1].Repetitions < 19 || all[1].Repetitions > 20 {
		t.Errorf("half of the time: %d and %d repetitions, %v", all[0].Repetitions, all[1].Repetitions, err)
	}
	all = sources()
	if err := fit(all, time.Hour*24); err != nil || all[0].Repetitions != 10 || all[1].Repetitions != 40 {
		t.Errorf("time enough: %d and %d repetitions, %v", all[0].Repetitions, all[1].Repetitions, err)
	}
	if err := fit(sources(), seconds(3*cost)); err == nil || !strings.Contains(err.Error(), "is too short") {
		t.Errorf("no time: got %v", err)
	}
}

// Without a directory status takes the run that was last at work.
func TestNewestRun(t *testing.T) {
	folder := t.TempDir()
	if _, err := newestRun(folder); err == nil {
		t.Error("an empty folder has a run")
	}
	for i, name := range []string{"b", "c", "a"} {
		record := filepath.Join(folder, name, "run.json")
		if err := os.Mkdir(filepath.Dir(record), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(record, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		written := time.Unix(int64(1000*(i%2)), 0)
		if err := os.Chtimes(record, written, written); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := newestRun(folder); err != nil || got != filepath.Join(folder, "c") {
		t.Errorf("got %s, %v", got, err)
	}
}
