// Package run carries an experiment out: it takes a lab up, runs every cell in
// its turn with fresh processes, keeps what was measured in a run directory and
// takes the lab down again. It judges nothing: lab/impair/proof, lab/measure and
// lab/report do.
// Start at Run; Resume goes on with one that ended early, Look says where one
// stands, Collect reads a run directory back.
package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/workload/broker"
)

// Options of a run.
type Options struct {
	Experiment *experiment.Experiment
	// Stacks by system name; every system of the experiment is there.
	Stacks map[string]*system.Stack
	// Digests of the stacks by system name.
	Digests map[string]string
	// NotRunnable says, by the ID of a cell, what it lacks here: it is not run.
	NotRunnable map[string]string
	Found
	// Agent is the path of the skerry-agent binary.
	Agent string
	// Backend of the links: auto, netem or userspace.
	Backend string
	// Dir is the run directory: for Run it must not exist yet.
	Dir string
	// Seed of the order, of loss and of jitter.
	Seed uint64
	// LabName under which the lab is up while the run lasts.
	LabName string
	// Provenance that the caller knows: version and command line.
	Version string
	Command []string
	// Progress is written to as the run goes on.
	Progress Progress
	Now      func() time.Time
}

// Found are the programs of this machine that a run starts beside those of systems,
// by name; all are there that its cells need.
type Found struct {
	// Tools that drive loads, and Brokers that are workloads.
	Tools   map[string]program.Program
	Brokers map[string]broker.Program
	// Kubernetes are what clusters are made of, where that is the substrate.
	Kubernetes map[string]string
}

// InterruptedError says that the run was ended before its last repetition; those
// done are kept.
type InterruptedError struct{ Done, Total int }

// Error tells how far the run came.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("interrupted after %d of %d repetitions", e.Done, e.Total)
}

// RepetitionError says which repetition could not be carried out.
type RepetitionError struct {
	Turn Turn
	// Dir holds its logs and rendered files.
	Dir string
	Err error
}

// Error names the cell and the repetition, then why.
func (e *RepetitionError) Error() string {
	return fmt.Sprintf("cell %s, repetition %d: %v", e.Turn.Cell, e.Turn.Repetition, e.Err)
}

// Unwrap gives why.
func (e *RepetitionError) Unwrap() error { return e.Err }

// Run runs the experiment. The run directory holds every repetition that was
// completed, also when Run fails later on.
func Run(ctx context.Context, o Options) (err error) {
	store, err := create(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.removeEmpty()) }()
	lock, err := store.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	r := runner{Options: o, store: store}
	return r.run(ctx, func(now Record) Record { return now })
}

// runner is a run under way.
type runner struct {
	Options
	lab    *host.Lab
	store  store
	prober *prober
	// clusters by name, on kubernetes.
	clusters map[string]*cluster.Cluster
	// alpha is the level of each test of a link.
	alpha float64
	// begun are the programs that the run starts, as they were at its beginning.
	begun []begun
}

// run takes the lab up, keeps the record that is made of what it finds there,
// and runs what is to do.
func (r *runner) run(ctx context.Context, recordOf func(now Record) Record) (err error) {
	if err := r.enoughSpace(); err != nil {
		return err
	}
	lab, err := host.Up(ctx, r.Experiment.Topology, host.Options{
		Name: r.LabName, Agent: r.Agent, Backend: r.Backend, Bound: true,
		Apart: r.Experiment.Emulator == experiment.EmulatorApart,
	})
	if ctx.Err() != nil {
		err = r.interrupted()
	}
	if lab != nil {
		defer func() { err = errors.Join(err, lab.Down()) }()
	}
	if err != nil {
		return err
	}
	r.lab, r.alpha = lab, alpha(r.turns())
	if err := r.startClusters(ctx); err != nil {
		if ctx.Err() != nil {
			err = r.interrupted()
		}
		return err
	}
	sleep, err := lab.StayAwake(r.Agent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sleep()) }()
	now, err := r.describe(ctx, lab)
	if err != nil {
		return err
	}
	record := recordOf(now)
	if err := record.course().begin(lab); err != nil {
		return err
	}
	if err := r.store.writeRecord(record); err != nil {
		return err
	}
	if r.prober, err = openProber(ctx, lab, r.Experiment); err != nil {
		if ctx.Err() != nil {
			err = r.interrupted()
		}
		return err
	}
	defer func() { err = errors.Join(err, r.prober.Close()) }()
	if err := r.all(ctx); err != nil {
		return err
	}
	if err := record.course().end(lab); err != nil {
		return err
	}
	record.Ended = r.Now()
	return r.store.writeRecord(record)
}

// interrupted is the error of a run that was ended.
func (r *runner) interrupted() error {
	total := len(r.turns())
	return &InterruptedError{Done: total - len(r.todo()), Total: total}
}

// Turn is one repetition of a cell.
type Turn struct {
	Cell experiment.Cell
	// Repetition counts from 1.
	Repetition int
}

// turns are all repetitions of all cells that can run, in the order of the run's seed.
func (r *runner) turns() []Turn {
	cells := r.Experiment.Cells()
	runnable := make([]bool, len(cells))
	for i, cell := range cells {
		runnable[i] = r.NotRunnable[cell.ID()] == ""
	}
	var turns []Turn
	for _, slot := range experiment.Order(r.Seed, cells, r.Experiment.Repetitions) {
		if runnable[slot.Cell] {
			turns = append(turns, Turn{Cell: cells[slot.Cell], Repetition: slot.Repetition})
		}
	}
	return turns
}

// todo are the indices of the turns that are not done.
func (r *runner) todo() []int {
	var todo []int
	for i, turn := range r.turns() {
		if !r.store.done(turn) {
			todo = append(todo, i)
		}
	}
	return todo
}

// all runs what is to do. A repetition whose try was rejected has its next one
// after all others, when what disturbed it may have passed.
func (r *runner) all(ctx context.Context) error {
	defer r.Progress.Ended()
	for todo := r.todo(); len(todo) > 0; todo = r.todo() {
		if err := r.pass(ctx, todo); err != nil {
			return err
		}
	}
	return nil
}

// pass tries each turn once. A turn's seed goes by its place in the whole order,
// whatever was complete before.
func (r *runner) pass(ctx context.Context, todo []int) error {
	turns := r.turns()
	var estimates []time.Duration
	for _, i := range todo {
		estimates = append(estimates, r.Experiment.Estimate(turns[i].Cell))
	}
	began := r.Now()
	for n, i := range todo {
		turn := turns[i]
		r.Progress.Turn(i+1, len(turns), turn, left(estimates[:n], estimates[n:], r.Now().Sub(began)))
		err := r.repetition(ctx, turn, uint64(i))
		if err != nil && ctx.Err() != nil {
			return r.interrupted()
		}
		if err != nil {
			return &RepetitionError{Turn: turn, Dir: r.store.partialDir(turn), Err: err}
		}
		if err := r.tell(turn); err != nil {
			return err
		}
	}
	return nil
}

// tell says what a repetition that counts has measured.
func (r *runner) tell(turn Turn) error {
	if !r.store.has(turn) {
		return nil
	}
	requests, err := readSamples(filepath.Join(r.store.turnDir(turn), samplesFile))
	if err != nil {
		return err
	}
	// Of a tool that keeps no requests there is nothing to tell before the end.
	r.Progress.Done(turn, gather(turn.Cell, requests))
	return nil
}

// left is the time that the turns to do will take: their estimates, corrected
// by what those done have taken.
func left(done, todo []time.Duration, took time.Duration) time.Duration {
	if len(done) == 0 {
		return sum(todo)
	}
	return time.Duration(float64(sum(todo)) * float64(took) / float64(sum(done)))
}

func sum(durations []time.Duration) (total time.Duration) {
	for _, d := range durations {
		total += d
	}
	return total
}
