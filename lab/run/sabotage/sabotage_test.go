package sabotage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/programs"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/run/sabotage"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

// agent is the skerry-agent that TestMain builds.
var agent string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(m, func(dir string) { agent = filepath.Join(dir, "skerry-agent") }))
}

const (
	tries = 3
	// requests of a try, a packet each; the link is altered after some of them.
	requests = 150
	altered  = 100
)

func link(delay time.Duration) impair.Impairment {
	return impair.Impairment{Delay: quantity.Duration(delay)}
}

// options of a run of one cell over 1 ms each way.
func options(t *testing.T, dir string, progress run.Progress) run.Options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces are made")
	}
	stack, err := system.Load(systems.FS, "direct")
	if err != nil {
		t.Fatal(err)
	}
	return run.Options{
		Experiment: &experiment.Experiment{
			Name: "proof",
			Topology: topology.Topology{
				Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}, {Name: "c2", Nodes: []string{"head"}}},
				Service:  "c1/head", Client: "c2/head",
			},
			Scenarios: []experiment.Scenario{{Name: "near", Links: []experiment.Link{
				{Between: []topology.Ref{"c1", "c2"}, Impairment: link(time.Millisecond)},
			}}},
			Systems: []string{"direct"}, Workloads: []experiment.Workload{{Name: "hello-world"}},
			Load: experiment.Load{Iterations: requests}, Repetitions: 2,
		},
		Stacks: map[string]*system.Stack{"direct": stack}, Agent: agent, Backend: emulator.Auto,
		Dir: dir, Seed: 1, LabName: fmt.Sprintf("test-%d-proof", os.Getpid()), Progress: progress, Now: time.Now,
	}
}

// read is what a try left; the error is that of the file.
func read(dir, name string) (run.Repetition, error) {
	var r run.Repetition
	found, err := filepath.Glob(filepath.Join(dir, "cells", "*", name, "repetition.json"))
	if err != nil || len(found) != 1 {
		return r, errors.Join(err, os.ErrNotExist)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// A cell whose link is altered while the load runs is rejected three times, and
// the run goes on with the next, which counts. A run that is resumed leaves a
// rejected repetition alone, and of one that was killed between two tries it
// makes the rest.
func TestAlteredLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	doubledDelay := link(2 * time.Millisecond)
	s := &sabotage.Saboteur{Altered: &doubledDelay, After: altered, Of: func(turn run.Turn) bool { return turn.Repetition == 1 }}
	o := options(t, dir, s)
	s.Lab = o.LabName
	if err := s.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for try := 1; try <= tries; try++ {
		r, err := read(dir, fmt.Sprintf("1.rejected-%d", try))
		if err != nil {
			t.Fatalf("try %d: %v", try, err)
		}
		reasons := strings.Join(r.Proof.Reasons, "\n")
		if r.Try != try || !doubled.MatchString(reasons) || strings.Contains(reasons, "before the load") {
			t.Errorf("try %d is number %d, rejected for:\n%s", try, r.Try, reasons)
		}
	}
	if _, err := read(dir, "1"); err == nil {
		t.Error("the altered repetition counts")
	}
	if notes := s.Notes(); len(notes) < tries || !strings.HasPrefix(notes[0], "rejected: ") || strings.Contains(notes[0], "\n") {
		t.Errorf("the user was told %q", notes)
	}
	holds(t, dir, "2")
	status, err := run.Look(dir)
	if err != nil || status.State != run.Complete || status.Done != 2 || status.Rejected != 1 || status.Requests != requests {
		t.Errorf("status %+v, %v", status, err)
	}
	if err := run.Resume(t.Context(), run.Options{Dir: dir}); err != nil {
		t.Errorf("resume of a complete run: %v", err)
	}

	// As if killed between the second try and the third.
	third, err := filepath.Glob(filepath.Join(dir, "cells", "*", "1.rejected-3"))
	if err != nil || len(third) != 1 {
		t.Fatal(third, err)
	}
	if err := os.RemoveAll(third[0]); err != nil {
		t.Fatal(err)
	}
	if err := run.Resume(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if r := holds(t, dir, "1"); r.Try != tries && len(s.Notes()) == tries {
		t.Errorf("the resumed repetition counts by try %d, want %d", r.Try, tries)
	}
	for _, name := range []string{"1.rejected-1", "1.rejected-2"} {
		if _, err := read(dir, name); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}

// doubled is the reason that the alteration gives.
var doubled = regexp.MustCompile(`(?m)^c1>c2: delay (1\.9\d*|2(\.0\d*)?)ms after the load, asked 1ms ± 100µs; steal .*, longest gap `)

// holds wants a repetition that counts, with what its links counted under load.
func holds(t *testing.T, dir, name string) run.Repetition {
	t.Helper()
	r, err := read(dir, name)
	if err != nil {
		t.Fatalf("repetition %s does not count: %v", name, err)
	}
	if r.Proof.Rejected() || len(r.Proof.Directions) != 2 {
		t.Errorf("repetition %s: proof %+v", name, r.Proof)
	}
	for _, d := range r.Proof.Directions {
		for _, p := range []struct{ sent, received int }{{d.Before.Sent, d.Before.Received}, {d.After.Sent, d.After.Received}} {
			if p.sent == 0 || p.received != p.sent {
				t.Errorf("repetition %s, %s: %d of %d probes arrived", name, d.Name, p.received, p.sent)
			}
		}
		// Neither the probes nor what made the system ready are among them.
		if n := d.Seen.Packets; n < requests || n > requests+20 || r.Links[d.Name] != d.Seen {
			t.Errorf("repetition %s, %s: %d packets for %d requests, links %+v", name, d.Name, n, requests, r.Links)
		}
	}
	return r
}
