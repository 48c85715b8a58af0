package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/sample"
)

// Each hands on the samples of every complete repetition of a run, cell by cell
// in the order of the experiment, some rows at a time: it holds no more than
// those, however large the run. each may keep none of them. The error is that of
// each as it is, or ErrNoRun or ErrDamaged.
func Each(dir string, each func(cell experiment.Cell, repetition int, rows []sample.Request) error) error {
	s := store{dir}
	record, err := s.record()
	if err != nil {
		return err
	}
	for _, cell := range record.Experiment.Cells() {
		for n := 1; n <= record.Experiment.Repetitions; n++ {
			turn := Turn{Cell: cell, Repetition: n}
			if !s.has(turn) {
				continue
			}
			err := s.scan(turn, func(rows []sample.Request) error { return each(cell, n, rows) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s store) scan(turn Turn, each func([]sample.Request) error) error {
	path := filepath.Join(s.turnDir(turn), samplesFile)
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = sample.ScanRequests(f, info.Size(), each)
	if errors.Is(err, sample.ErrDamaged) || errors.Is(err, sample.ErrSchema) {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return err
}
