package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/run/sabotage"
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
func showProof(ctx context.Context, b *bench) error {
	const repetitions, unaltered = 7, 100 // thrice tried: 21 of each kind
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
	stack, err := system.Load(systems.FS, "direct")
	if err != nil {
		return nil, err
	}
	s := &sabotage.Saboteur{Lab: fmt.Sprintf("show-%d", os.Getpid()), Altered: altered, After: halfway}
	o := run.Options{
		Experiment: proofExperiment(repetitions), Stacks: map[string]*system.Stack{"direct": stack},
		Agent: b.agent, Backend: emulator.Auto, Dir: filepath.Join(scratch, "run"), Seed: 1, LabName: s.Lab,
		Progress: s, Now: time.Now,
	}
	if err := s.Run(ctx, o); err != nil {
		return nil, err
	}
	if altered != nil {
		_, _ = fmt.Fprintf(b.out, "      the link was altered %d times\n", s.Alterations())
	}
	return readTries(o.Dir)
}

// readTries reads what is kept of every try of a run.
func readTries(dir string) (tries []run.Repetition, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "cells", "*", "*", "repetition.json"))
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
