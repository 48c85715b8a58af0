package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

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

const (
	proofCommand = "make show AREA=proof"
	// proofRequests of proofSize bytes put more than 10,000 packets on each
	// direction; the link is altered when halfway of them have passed.
	proofRequests = 150
	proofSize     = 100_000
	halfway       = 6_000
	packetsLeast  = 20_000
	// proofTries is how often a repetition is tried before it stays rejected.
	proofTries = 3
)

// proofLink is what the experiment asks of both directions.
func proofLink() impair.Impairment {
	return impair.Impairment{Delay: quantity.Duration(time.Millisecond), Loss: 0.001, Rate: 400e6}
}

// showProof shows that a link which is altered while a load runs is found out,
// each kind of change by its own test, and that one which is not is left alone.
// FULL=1 alters as many cells by each kind as it does by all three otherwise.
func showProof(ctx context.Context, b *bench) error {
	repetitions, unaltered := 3, 100
	if os.Getenv("FULL") != "" {
		repetitions = 7
	}
	for _, c := range []struct {
		name, word string
		alter      func(*impair.Impairment)
	}{
		{"delay + 1 ms", "delay", func(i *impair.Impairment) { i.Delay += quantity.Duration(time.Millisecond) }},
		{"loss 0.1 to 0.5 %", "lost", func(i *impair.Impairment) { i.Loss = 0.005 }},
		{"rate halved", "rate", func(i *impair.Impairment) { i.Rate /= 2 }},
	} {
		altered := proofLink()
		c.alter(&altered)
		tries, err := b.proofRun(ctx, repetitions, &altered)
		if err != nil {
			return err
		}
		var found int
		for _, t := range tries {
			if strings.Contains(strings.Join(t.Proof.Reasons, "\n"), ": "+c.word+" ") {
				found++
				continue
			}
			_, _ = fmt.Fprintf(b.out, "      not for that: %+v\n", t.Proof)
		}
		want := repetitions * proofTries
		b.print(line{
			what: "cells altered at half by " + c.name + " and rejected for it", pass: found == want && len(tries) == want,
			seen: fmt.Sprintf("%d of %d", found, len(tries)), bound: fmt.Sprintf("%d of %d", want, want), command: proofCommand,
		})
	}
	tries, err := b.proofRun(ctx, unaltered, nil)
	if err != nil {
		return err
	}
	b.printUnaltered(tries, unaltered)
	return nil
}

// printUnaltered tells how many tries were rejected though nobody altered a link.
func (b *bench) printUnaltered(tries []run.Repetition, want int) {
	var counted, rejected, causeless int
	packets := ^uint64(0)
	var took []float64
	for _, t := range tries {
		took = append(took, float64(t.Proof.TookNs))
		var n uint64
		for _, c := range t.Links {
			n += c.Packets
		}
		packets = min(packets, n)
		if !t.Proof.Rejected() {
			counted++
			continue
		}
		rejected++
		if !t.Proof.Host.Disturbed() {
			causeless++
		}
		_, _ = fmt.Fprintf(b.out, "      rejected: %s\n", strings.Join(t.Proof.Reasons, "\n        "))
	}
	b.print(line{
		what: fmt.Sprintf("unaltered cells, of %d tries rejected without steal or gap", len(tries)), pass: causeless <= 1 && counted > 0,
		seen:  fmt.Sprintf("%d, and %d with; %d of %d repetitions count", causeless, rejected-causeless, counted, want),
		bound: "<= 1", command: proofCommand,
	})
	const tookMax = 80 * time.Millisecond
	added := measure.Sort(took)
	b.print(line{
		what: fmt.Sprintf("time that proving adds to a repetition, n=%d", len(added)), pass: added.Median() <= float64(tookMax),
		seen:  fmt.Sprintf("median %.1f ms, worst %.1f ms", added.Median()/1e6, added.Max()/1e6),
		bound: "median <= " + tookMax.String(), command: proofCommand,
	})
	b.print(line{
		what: "packets of a cell on both directions, least", pass: packets >= packetsLeast,
		seen: fmt.Sprint(packets), bound: fmt.Sprintf(">= %d", packetsLeast), command: proofCommand,
	})
}

// proofRun runs one cell; where altered is not nil, something sets both
// directions to that in the middle of every try.
func (b *bench) proofRun(ctx context.Context, repetitions int, altered *impair.Impairment) (tries []run.Repetition, err error) {
	scratch, err := os.MkdirTemp("", "skerry-show-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	plugin, err := system.Load(systems.FS, "direct")
	if err != nil {
		return nil, err
	}
	s := &saboteur{lab: fmt.Sprintf("show-%d", os.Getpid()), altered: altered}
	o := run.Options{
		Experiment: proofExperiment(repetitions), Plugins: map[string]*system.Plugin{"direct": plugin},
		Agent: b.agent, Backend: emulator.Auto, Dir: filepath.Join(scratch, "run"), Seed: 1, LabName: s.lab,
		Progress: s, Now: time.Now,
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.work(ctx) }()
	err = run.Run(ctx, o)
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(o.Dir, "cells", "*", "*", "repetition.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var r run.Repetition
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		tries = append(tries, r)
	}
	return tries, nil
}

func proofExperiment(repetitions int) *experiment.Experiment {
	return &experiment.Experiment{
		Name: "proof",
		Topology: topology.Topology{
			Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head", "worker"}}},
			Service:  service, Client: client,
		},
		Scenarios: []experiment.Scenario{{Name: "proven", Links: []experiment.Link{
			{Between: []topology.Ref{"c1", "c2"}, Impairment: proofLink()},
		}}},
		Systems:   []string{"direct"},
		Workloads: []experiment.Workload{{Name: "payload-echo", Size: experiment.List[quantity.Size]{proofSize}}},
		Load:      experiment.Load{Iterations: proofRequests, Warmup: 2}, Repetitions: repetitions,
	}
}

// saboteur alters the links behind the back of a run, whose Progress tells it
// when a new try begins.
type saboteur struct {
	lab     string
	altered *impair.Impairment
	armed   atomic.Bool
}

// Turn implements run.Progress.
func (s *saboteur) Turn(int, int, run.Turn, time.Duration) { s.armed.Store(true) }

// Done implements run.Progress.
func (s *saboteur) Done(run.Turn, *measure.Gathered) {}

// Note implements run.Progress: a rejected try is followed by the next.
func (s *saboteur) Note(string) { s.armed.Store(true) }

// Ended implements run.Progress.
func (s *saboteur) Ended() {}

// work watches the link's counters and alters it once in every try.
func (s *saboteur) work(ctx context.Context) error {
	if s.altered == nil {
		return nil
	}
	const look = 20 * time.Millisecond
	var begun bool // the try under way has been seen before its middle
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(look):
		}
		lab, err := host.Open(s.lab)
		if err != nil || !s.armed.Load() {
			continue // not up yet, or no try under way
		}
		// Not by the lab, which would write the links down as its own.
		links := emulator.Dial(filepath.Join(lab.Dir(), "links.sock"))
		status, err := links.Status(ctx)
		if err != nil {
			continue // the lab comes up or goes down
		}
		if status.Counters["c1>c2"].Packets < halfway {
			begun = true
			continue
		}
		if !begun {
			continue // what the last try has left
		}
		begun = false
		s.armed.Store(false)
		if err := links.Set(ctx, s.directions()); err != nil {
			return err
		}
	}
}

func (s *saboteur) directions() []impair.Direction {
	direction := func(in, out string, seed uint64) impair.Direction {
		return impair.Direction{
			Name: in + ">" + out, Match: impair.Match{In: in, Out: out}, Unit: impair.UnitPacket,
			Seed: seed, Impairment: *s.altered,
		}
	}
	return []impair.Direction{direction("c1", "c2", 1), direction("c2", "c1", 2)}
}
