package run

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/sample"
)

// Imported are samples that were taken elsewhere.
type Imported struct {
	// Scenario and System under which they are shown and compared.
	Scenario, System string
	// Tool that took them.
	Tool string
	// Workloads by name, each with the requests of its repetitions. Times are of one
	// clock for each repetition.
	Workloads map[string][][]sample.Request
	// Began is when the first of them did.
	Began time.Time
	// Version of Skerry and its command line.
	Version string
	Command []string
}

// Import makes a run directory of samples, so that all that reads one reads them:
// a cell for each workload. What an experiment would have said of topology and
// links is not known, and missing. A workload with fewer repetitions than others
// has some without requests, so that nothing of the run is left to do. The error is
// ErrDirExists, or of the disk, where nothing is left then.
func Import(dir string, i Imported) (err error) {
	store, err := create(dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(store.dir))
		}
	}()
	e := i.experiment()
	for _, cell := range e.Cells() {
		repetitions := i.Workloads[cell.Workload]
		for n := range e.Repetitions {
			var rows []sample.Request
			if n < len(repetitions) {
				rows = repetitions[n]
			}
			if err := store.take(Turn{Cell: cell, Repetition: n + 1}, rows, i.Began); err != nil {
				return err
			}
		}
	}
	return store.writeRecord(Record{
		Experiment: e, Began: i.Began, Ended: i.Began, Command: i.Command, Machine: Machine{Version: i.Version},
	})
}

// take keeps the samples of one repetition.
func (s store) take(turn Turn, rows []sample.Request, began time.Time) error {
	partial, err := s.begin(turn)
	if err != nil {
		return err
	}
	if err := writeRequests(filepath.Join(partial, samplesFile), rows); err != nil {
		return fmt.Errorf("keep repetition: %w", err)
	}
	return s.complete(turn, Repetition{Cell: turn.Cell, Repetition: turn.Repetition, Try: 1, Began: began, Ended: began})
}

// experiment is what the samples themselves tell of one. How many requests a thread was to
// send they do not: of a load that goes on for a time it is another number each time.
func (i Imported) experiment() *experiment.Experiment {
	e := &experiment.Experiment{
		Name: "imported", Scenarios: []experiment.Scenario{{Name: i.Scenario}}, Systems: []string{i.System},
	}
	threads, connection := 1, experiment.ConnectionNew
	for _, name := range slices.Sorted(maps.Keys(i.Workloads)) {
		e.Workloads = append(e.Workloads, experiment.Workload{Name: name})
		e.Repetitions = max(e.Repetitions, len(i.Workloads[name]))
		for _, rows := range i.Workloads[name] {
			sent := map[int32]bool{}
			for _, r := range rows {
				sent[r.Thread] = true
				if r.Index > 1 {
					connection = experiment.ConnectionKept
				}
			}
			threads = max(threads, len(sent))
		}
	}
	e.Load = experiment.Load{
		Tool: []string{i.Tool}, Threads: []int{threads}, Connection: []string{connection},
	}
	return e
}
