// Package proof_test runs an experiment whose links are altered behind its back.
package proof_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry.dev/skerry/internal/programs"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/run"
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
	plugin, err := system.Load(systems.FS, "direct")
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
		Plugins: map[string]*system.Plugin{"direct": plugin}, Agent: agent, Backend: emulator.Auto,
		Dir: dir, Seed: 1, LabName: fmt.Sprintf("test-%d-proof", os.Getpid()), Progress: progress, Now: time.Now,
	}
}

// saboteur is the Progress of a run, and alters its links during every try of
// repetition 1 while it is on.
type saboteur struct {
	t   *testing.T
	lab string

	mu sync.Mutex
	// armed from the beginning of a try of repetition 1 until it was altered.
	armed bool
	notes []string
}

func (s *saboteur) Turn(_, _ int, turn run.Turn, _ time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = turn.Repetition == 1
}

func (s *saboteur) Done(run.Turn, *measure.Gathered) {}

func (s *saboteur) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, text)
}

func (s *saboteur) Ended() {}

func (s *saboteur) isArmed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.armed
}

func (s *saboteur) disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
}

// start works until ctx ends: delays of 2 ms in place of 1 ms, once in each try.
func (s *saboteur) start(ctx context.Context) (wait func()) {
	var done sync.WaitGroup
	done.Go(func() {
		begun := false // the counters of the try before are gone
		for ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
			lab, err := host.Open(s.lab)
			if err != nil || !s.isArmed() {
				continue
			}
			links := emulator.Dial(filepath.Join(lab.Dir(), "links.sock"))
			status, err := links.Status(ctx)
			if err != nil {
				continue
			}
			switch n := status.Counters["c2>c1"].Packets; {
			case n < altered:
				begun = true
			case begun:
				begun = false
				s.disarm()
				if err := links.Set(ctx, directions()); err != nil && ctx.Err() == nil {
					s.t.Error(err)
				}
			}
		}
	})
	return done.Wait
}

func directions() []impair.Direction {
	var all []impair.Direction
	for _, d := range []struct{ in, out string }{{"c1", "c2"}, {"c2", "c1"}} {
		all = append(all, impair.Direction{
			Name: d.in + ">" + d.out, Match: impair.Match{In: d.in, Out: d.out}, Unit: impair.UnitPacket,
			Impairment: link(2 * time.Millisecond),
		})
	}
	return all
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
	s := &saboteur{t: t}
	o := options(t, dir, s)
	s.lab = o.LabName
	ctx, stop := context.WithCancel(t.Context())
	wait := s.start(ctx)
	err := run.Run(t.Context(), o)
	stop()
	wait()
	if err != nil {
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
	if len(s.notes) < tries || !strings.HasPrefix(s.notes[0], "rejected: ") || strings.Contains(s.notes[0], "\n") {
		t.Errorf("the user was told %q", s.notes)
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
	if r := holds(t, dir, "1"); r.Try != tries && len(s.notes) == tries {
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
