package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/run"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

const adaptersCommand = "make show AREA=adapters"

// showAdapters drives one cell by every load tool, over 5 ms each way, and holds
// the medians beside that of Skerry's own load.
func showAdapters(ctx context.Context, b *bench) (err error) {
	const repetitions, requests = 5, 200
	scratch, err := os.MkdirTemp("", "skerry-show-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	stack, err := system.Load(systems.FS, "direct")
	if err != nil {
		return err
	}
	tell := func(line string) { _, _ = fmt.Fprintln(b.out, "      "+line) }
	tools := map[string]program.Program{}
	for _, name := range experiment.Tools()[1:] {
		if tools[name], err = program.Find(ctx, name, tell); err != nil {
			return err
		}
	}
	o := run.Options{
		Experiment: adaptersExperiment(repetitions, requests), Stacks: map[string]*system.Stack{"direct": stack}, Found: run.Found{Tools: tools},
		Agent: b.agent, Backend: emulator.Auto, Dir: filepath.Join(scratch, "run"), Seed: 1,
		LabName: fmt.Sprintf("show-%d", os.Getpid()), Progress: said{tell}, Now: time.Now,
	}
	if err := run.Run(ctx, o); err != nil {
		return err
	}
	input, err := run.Collect(o.Dir)
	if err != nil {
		return err
	}
	own := input.Results[0]
	for _, r := range input.Results[1:] {
		median, want := r.Summary.Times.Median, own.Summary.Times.Median
		bound := max(want/20, time.Millisecond)
		over := median - want
		b.print(line{
			what:  fmt.Sprintf("hello-world over 10 ms by %s %s, n=%d: median less Skerry's own", r.Cell.Tool, tools[r.Cell.Tool].Version, r.Summary.N),
			seen:  fmt.Sprintf("%+.2f ms (%.2f ms)", over.Seconds()*1e3, median.Seconds()*1e3),
			bound: fmt.Sprintf("within %.2f ms", bound.Seconds()*1e3), floor: fmt.Sprintf("Skerry %.2f ms [%.2f, %.2f]", want.Seconds()*1e3, own.Median.Low/1e6, own.Median.High/1e6),
			pass: r.Missing() == "" && own.Missing() == "" && math.Abs(float64(over)) <= float64(bound), command: adaptersCommand,
		})
	}
	return nil
}

// said is progress of which only what is unusual is told.
type said struct{ tell func(line string) }

func (said) Turn(int, int, run.Turn, time.Duration) {}
func (said) Done(run.Turn, *measure.Gathered)       {}
func (said) Ended()                                 {}
func (s said) Note(text string)                     { s.tell(text) }

func adaptersExperiment(repetitions, requests int) *experiment.Experiment {
	return &experiment.Experiment{
		Name: "adapters",
		Topology: topology.Topology{
			Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head", "worker"}}},
			Service:  service, Client: client,
		},
		Scenarios: []experiment.Scenario{{Name: "edg10", Links: []experiment.Link{{
			Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Delay: quantity.Duration(5 * time.Millisecond)},
		}}}},
		Systems: []string{"direct"}, Workloads: []experiment.Workload{{Name: "hello-world"}},
		Load: experiment.Load{Tool: experiment.Tools(), Iterations: requests}, Repetitions: repetitions,
	}
}
