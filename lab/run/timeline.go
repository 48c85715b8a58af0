package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
)

// Change is an event of a scenario's timeline that happened.
type Change struct {
	// AtNs is when it was asked for, from the beginning of the load, and LateNs how
	// much later it was in force.
	AtNs   int64 `json:"at_ns"`
	LateNs int64 `json:"late_ns"`
	// Fault that began, in the words of the file; empty where links changed.
	Fault string `json:"fault,omitempty"`
	// UndoneNs is when it was undone, from the beginning of the load; 0 where there was
	// nothing to undo.
	UndoneNs int64 `json:"undone_ns,omitempty"`
}

// act is what a step of a timeline does. Of those at one time, faults end before links
// change, and both before others begin.
type act int

const (
	faultEnds act = iota
	linksChange
	faultBegins
)

// step is one of those in which a timeline is followed.
type step struct {
	at time.Duration
	act
	// index of the phase that comes into force, or of the fault.
	index int
}

// steps put the phases of links and the faults of a scenario in order. A fault that is
// for no time is undone when the load has ended, which is no step.
func steps(phases []experiment.Phase, faults []experiment.Event) (all []step) {
	for i, p := range phases {
		if i > 0 { // the first is in force before the load
			all = append(all, step{p.At, linksChange, i})
		}
	}
	for i, e := range faults {
		at := e.At.Std()
		all = append(all, step{at, faultBegins, i})
		if e.For > 0 {
			all = append(all, step{at + e.For.Std(), faultEnds, i})
		}
	}
	slices.SortStableFunc(all, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.act, b.act))
	})
	return all
}

// follower carries out the steps of a scenario's timeline as their times come, one
// after the other.
type follower struct {
	lab    *host.Lab
	phases []experiment.Phase
	seed   uint64
	steps  []step
	faults *breaker
	began  time.Time
	stop   context.CancelFunc
	done   chan error
	// taken counts the steps that were. made are the events, and ended the counters of
	// each phase that they ended; changed is where made has a fault, by its index.
	taken   int
	made    []Change
	ended   []map[string]impair.Counters
	changed map[int]int
}

// follow begins with the load, which gets a context of its own: where the timeline
// cannot be followed, the load need not go on.
func (r *runner) follow(ctx context.Context, a *attempt) (*follower, context.Context) {
	ctx, stop := context.WithCancel(ctx)
	f := newFollower(r.lab, a.seen.phases, a.Cell.Scenario.Faults(), a.seed)
	f.faults.clusters, f.stop = r.clusters, stop
	a.faults = f.faults
	go func() {
		err := f.run(ctx)
		if err != nil {
			stop()
		}
		f.done <- err
	}()
	return f, ctx
}

func newFollower(lab *host.Lab, phases []experiment.Phase, faults []experiment.Event, seed uint64) *follower {
	return &follower{
		lab: lab, phases: phases, seed: seed, steps: steps(phases, faults), faults: newBreaker(lab, faults),
		began: time.Now(), done: make(chan error, 1), changed: map[int]int{},
	}
}

func (f *follower) run(ctx context.Context) error {
	for _, s := range f.steps {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(f.began.Add(s.at))):
		}
		// A step that has begun is taken, though the load ends meanwhile.
		if err := f.take(context.WithoutCancel(ctx), s); err != nil {
			return fmt.Errorf("timeline at %s: %w", s.at, err)
		}
		f.taken++
	}
	return nil
}

// seedBits is how far the seeds of the phases of a try lie apart: above those of
// its directions.
const seedBits = 48

func (f *follower) take(ctx context.Context, s step) error {
	switch s.act {
	case faultEnds:
		return f.undo(ctx, s.index)
	case faultBegins:
		return f.breaks(ctx, s)
	}
	ended, err := f.lab.ChangeLinks(ctx, links(f.phases[s.index].Directions), f.seed+uint64(s.index)<<seedBits)
	if err != nil {
		return err
	}
	f.happened(s, "")
	f.ended = append(f.ended, ended)
	return nil
}

// breaks has a fault begin. A node that reboots is down no longer than that takes.
func (f *follower) breaks(ctx context.Context, s step) error {
	e := f.faults.events[s.index]
	verb, _ := e.Deed()
	if err := f.faults.begin(ctx, s.index); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	f.changed[s.index] = len(f.made)
	f.happened(s, e.Words())
	if verb == experiment.VerbReboot {
		return f.undo(ctx, s.index)
	}
	return nil
}

func (f *follower) happened(s step, fault string) {
	f.made = append(f.made, Change{AtNs: int64(s.at), LateNs: int64(time.Since(f.began) - s.at), Fault: fault})
}

func (f *follower) undo(ctx context.Context, i int) error {
	undone, err := f.faults.end(ctx, i)
	if err != nil {
		return fmt.Errorf("undo %s: %w", f.faults.events[i].Words(), err)
	}
	if undone {
		f.made[f.changed[i]].UndoneNs = int64(time.Since(f.began))
	}
	return nil
}

// finish returns when no step is under way any more, and no fault is in force, whatever
// has become of the load.
func (f *follower) finish(ctx context.Context) error {
	f.stop()
	err := <-f.done
	for _, i := range slices.Backward(f.faults.lasting()) {
		err = errors.Join(err, f.undo(context.WithoutCancel(ctx), i))
	}
	return err
}

// missed says which events were too late for the load.
func (f *follower) missed(turn Turn) string {
	for _, s := range f.steps[f.taken:] {
		if s.act != faultEnds {
			return fmt.Sprintf("%s: the load ended before the event at %s", turn.Cell, s.at)
		}
	}
	return ""
}
