package run

import (
	"context"
	"fmt"
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
}

// follower puts the phases of a scenario into force as their times come.
type follower struct {
	lab    *host.Lab
	phases []experiment.Phase
	seed   uint64
	stop   context.CancelFunc
	done   chan error
	// made are the changes, and ended the counters of each phase that they ended.
	made  []Change
	ended []map[string]impair.Counters
}

// follow begins with the load.
func (r *runner) follow(ctx context.Context, a *attempt) *follower {
	ctx, stop := context.WithCancel(ctx)
	f := &follower{lab: r.lab, phases: a.seen.phases, seed: a.seed, stop: stop, done: make(chan error, 1)}
	go func() { f.done <- f.run(ctx, time.Now()) }()
	return f
}

func (f *follower) run(ctx context.Context, began time.Time) error {
	for i, p := range f.phases[1:] {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(began.Add(p.At))):
		}
		// A change that has begun is made, though the load ends meanwhile.
		ended, err := f.lab.ChangeLinks(context.WithoutCancel(ctx), links(p.Directions), f.seed+uint64(i+1)<<seedBits)
		if err != nil {
			return fmt.Errorf("timeline at %s: %w", p.At, err)
		}
		f.made = append(f.made, Change{AtNs: int64(p.At), LateNs: int64(time.Since(began) - p.At)})
		f.ended = append(f.ended, ended)
	}
	return nil
}

// seedBits is how far the seeds of the phases of a try lie apart: above those of
// its directions.
const seedBits = 48

// end waits until no change is under way any more.
func (f *follower) end() error {
	f.stop()
	return <-f.done
}

// missed says which events were too late for the load.
func (f *follower) missed(turn Turn) string {
	if len(f.made) == len(f.phases)-1 {
		return ""
	}
	return fmt.Sprintf("%s: the load ended before the event at %s", turn.Cell, f.phases[len(f.made)+1].At)
}
