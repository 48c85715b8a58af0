package run

import (
	"path/filepath"
	"time"
)

// State of a run.
type State string

// The states of a run.
const (
	Running  State = "running"
	Complete State = "complete"
	// Stopped is a run that was interrupted, killed or failed: Resume goes on.
	Stopped State = "stopped"
)

// Status is where a run stands.
type Status struct {
	Dir        string    `json:"dir"`
	Experiment string    `json:"experiment"`
	State      State     `json:"state"`
	Began      time.Time `json:"began"`
	// Resumed holds when the run was taken up again.
	Resumed []time.Time `json:"resumed,omitempty"`
	// Done and Total count repetitions; Rejected are those of Done that count for
	// nothing, since the links of no try were proven.
	Done     int `json:"done"`
	Total    int `json:"total"`
	Rejected int `json:"rejected"`
	// Cell and Repetition are what runs now, or will first when the run goes on;
	// empty for a complete run.
	Cell       string `json:"cell,omitempty"`
	Repetition int    `json:"repetition,omitempty"`
	// LeftS is how long the repetitions that are not done will take, in seconds.
	LeftS float64 `json:"left_s"`
	// Requests of the repetitions that count, without warm-up, and how many failed.
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
}

// Look derives where a run stands from its directory and its lock. The error is
// ErrNoRun or ErrDamaged.
func Look(dir string) (Status, error) {
	s := store{dir}
	record, err := s.record()
	if err != nil {
		return Status{}, err
	}
	// Before the repetitions: one that completes in between is then counted.
	running, err := s.locked()
	if err != nil {
		return Status{}, err
	}
	r := runner{Options: Options{Experiment: record.Experiment, Seed: record.Seed, NotRunnable: record.NotRunnable}, store: s}
	status := Status{Dir: dir, Experiment: record.Experiment.Name, Began: record.Began, State: Stopped}
	for _, resumed := range record.Resumed {
		status.Resumed = append(status.Resumed, resumed.Began)
	}
	if err := r.count(&status); err != nil {
		return Status{}, err
	}
	switch {
	case running:
		status.State = Running
		if now, ok := s.underWay(r.turns()); ok {
			status.Cell, status.Repetition = now.Cell.String(), now.Repetition
		}
	case status.Done == status.Total:
		status.State = Complete
	}
	return status, nil
}

// count fills in what the repetitions tell.
func (r *runner) count(status *Status) error {
	var done, todo []time.Duration
	var took time.Duration
	turns := r.turns()
	for _, turn := range turns {
		estimate := r.Experiment.Estimate(turn.Cell)
		if !r.store.done(turn) {
			if len(todo) == 0 {
				status.Cell, status.Repetition = turn.Cell.String(), turn.Repetition
			}
			todo = append(todo, estimate)
			continue
		}
		repetition, err := r.store.last(turn)
		if err != nil {
			return err
		}
		done, took = append(done, estimate), took+repetition.Ended.Sub(repetition.Began)
		if !r.store.has(turn) {
			status.Rejected++
			continue
		}
		requests, err := readSamples(filepath.Join(r.store.turnDir(turn), samplesFile))
		if err != nil {
			return err
		}
		if total := repetition.Total; total != nil && len(requests) == 0 {
			status.Requests += int(total.Requests)
			status.Errors += int(total.Errors)
		}
		for _, request := range requests {
			if request.Warmup {
				continue
			}
			status.Requests++
			if request.Error != "" {
				status.Errors++
			}
		}
	}
	status.Done, status.Total, status.LeftS = len(done), len(turns), left(done, todo, took).Seconds()
	return nil
}
