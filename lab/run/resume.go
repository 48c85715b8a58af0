package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Resumption is one continuation of a run that had ended early.
type Resumption struct {
	Began   time.Time `json:"began"`
	Command []string  `json:"command"`
	Machine Machine   `json:"machine"`
	Links   Emulator  `json:"links"`
	// Changed are the programs that are not what the run began with.
	Changed []Program `json:"changed_programs,omitempty"`
	Course  Course    `json:"course"`
}

// ChangedError says that a plug-in is not what the run began with.
type ChangedError struct{ System string }

// Error names the system.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("system %s has changed since the run began", e.System)
}

// LackingError says what a cell that is to go on needs, and had when its run began.
type LackingError struct{ Cell, Why string }

// Error names the cell.
func (e *LackingError) Error() string {
	return fmt.Sprintf("%s cannot go on here: %s", e.Cell, e.Why)
}

// Hint says where it can.
func (e *LackingError) Hint() string {
	return "resume it where it began, or begin another run here, which leaves the cell out"
}

// Resume runs what a run that ended early has left undone, with the experiment,
// the seed and the order that are recorded: the caller's are not looked at. Of a
// run that lacks nothing it looks at Dir alone, and completes its record. The
// error is ErrNoRun, ErrRunning, a *ChangedError, a *ChangedFileError, a *LackingError or
// as of Run.
func Resume(ctx context.Context, o Options) (err error) {
	if _, err := (store{o.Dir}).record(); err != nil {
		return err // before a lock is put where no run is
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("resume run: %w", err)
	}
	s := store{dir}
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	record, err := s.record()
	if err != nil {
		return err
	}
	lacks := o.NotRunnable
	o.Experiment, o.Seed, o.NotRunnable = record.Experiment, record.Seed, record.NotRunnable
	r := runner{Options: o, store: s}
	todo := r.todo()
	if len(todo) == 0 {
		return r.complete(record)
	}
	for _, i := range todo {
		cell := r.turns()[i].Cell
		if why := lacks[cell.ID()]; why != "" {
			return &LackingError{cell.String(), why}
		}
	}
	for _, name := range record.Experiment.Systems {
		if record.Digests[name] != o.Digests[name] {
			return &ChangedError{name}
		}
	}
	if err := record.reread(); err != nil {
		return err
	}
	return r.run(ctx, func(now Record) Record {
		changed := changedPrograms(record.Programs, now.Programs)
		for _, p := range changed {
			r.Progress.Note(fmt.Sprintf("%s is not the program that the run began with: %s", p.Name, p.Path))
		}
		record.Ended = time.Time{}
		record.Resumed = append(record.Resumed, Resumption{
			Began: now.Began, Command: now.Command, Machine: now.Machine, Links: now.Links, Changed: changed,
		})
		return record
	})
}

// complete records the end of a run that was killed after its last repetition.
func (r *runner) complete(record Record) error {
	if !record.Ended.IsZero() {
		return nil
	}
	for _, turn := range r.turns() {
		repetition, err := r.store.last(turn)
		if err != nil {
			return err
		}
		if repetition.Ended.After(record.Ended) {
			record.Ended = repetition.Ended
		}
	}
	return r.store.writeRecord(record)
}
