// Package sabotage alters the links of a run behind its back, to show that the
// proofs notice. For tests.
package sabotage

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/run"
)

// Saboteur sets both directions between clusters c1 and c2 to something else,
// once in every try of the repetitions that it is after. It is the Progress of
// the run, which tells it when a try begins.
type Saboteur struct {
	// Lab is the name that the run's lab has.
	Lab string
	// Altered is what the links become; nil leaves them alone.
	Altered *impair.Impairment
	// After is how many packets a direction has carried by then.
	After uint64
	// Of says in which turns to work; nil is all.
	Of func(run.Turn) bool

	mu    sync.Mutex
	armed bool // from the beginning of a try until it was altered
	done  int
	notes []string
}

var _ run.Progress = (*Saboteur)(nil)

// Turn arms it: a try begins.
func (s *Saboteur) Turn(_, _ int, turn run.Turn, _ time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = s.Altered != nil && (s.Of == nil || s.Of(turn))
}

// Done is nothing to it.
func (s *Saboteur) Done(run.Turn, *measure.Gathered) {}

// Ended is nothing to it.
func (s *Saboteur) Ended() {}

// Note keeps what the user is told.
func (s *Saboteur) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, text)
}

// Notes are what the user was told.
func (s *Saboteur) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes
}

// Alterations is how often it altered the links.
func (s *Saboteur) Alterations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// Run carries the run out with the saboteur at work.
func (s *Saboteur) Run(ctx context.Context, o run.Options) error {
	watched, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.watch(watched) }()
	err := run.Run(ctx, o)
	stop()
	if altering := <-done; err == nil {
		err = altering
	}
	return err
}

// watch looks at the links' counters until ctx ends.
func (s *Saboteur) watch(ctx context.Context) error {
	const look = 10 * time.Millisecond
	begun := false // the counters of the try before are gone
	for ctx.Err() == nil {
		time.Sleep(look)
		lab, err := host.Open(s.Lab)
		if err != nil || !s.isArmed() {
			continue // not up yet, or nothing to alter
		}
		// Not by the lab, which would write the links down as its own.
		links := emulator.Dial(filepath.Join(lab.Dir(), "links.sock"))
		status, err := links.Status(ctx)
		switch {
		case err != nil: // the lab comes up or goes down
		case status.Counters["c2>c1"].Packets < s.After:
			begun = true
		case begun:
			begun = false
			if err := links.Set(ctx, s.directions()); err != nil && ctx.Err() == nil {
				return err
			}
			s.disarm()
		}
	}
	return nil
}

func (s *Saboteur) isArmed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.armed
}

func (s *Saboteur) disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	s.done++
}

func (s *Saboteur) directions() []impair.Direction {
	direction := func(in, out string, seed uint64) impair.Direction {
		return impair.Direction{
			Name: in + ">" + out, Match: impair.Match{In: in, Out: out}, Unit: impair.UnitPacket,
			Seed: seed, Impairment: *s.Altered,
		}
	}
	return []impair.Direction{direction("c1", "c2", 1), direction("c2", "c1", 2)}
}
