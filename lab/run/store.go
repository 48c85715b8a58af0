package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"skerry.dev/skerry/internal/whole"
)

// Layout of a run directory:
//
//	run.json                         what was run, on what, in which order
//	cells/CELL/REPETITION/           written beside as REPETITION.partial
//	    repetition.json              path, proof of the links, use of resources
//	    requests.parquet             every request
//	    requests.hlog                response times, as a HdrHistogram log
//	    oneway.parquet               every timed packet, of oneway
//	    oneway-there.parquet, oneway-back.parquet  each way of every datagram, of UDP
//	    *.log, …                     what the processes said and were given
//	cells/CELL/REPETITION.rejected-TRY/   as above, of tries that do not count
//	report.html                      made from the above
//	lock                             held by the process that runs
const (
	recordFile     = "run.json"
	cellsDir       = "cells"
	repetitionFile = "repetition.json"
	samplesFile    = "requests.parquet"
	histogramFile  = "requests.hlog"
	thereFile      = "oneway-there.parquet"
	backFile       = "oneway-back.parquet"
	partialSuffix  = ".partial"
	rejectedSuffix = ".rejected-"
)

// ErrDirExists says that the run directory is there already.
var ErrDirExists = errors.New("run directory exists")

// store is a run directory.
type store struct{ dir string }

func create(dir string) (store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return store{}, fmt.Errorf("make run directory: %w", err)
	}
	if _, err := os.Lstat(abs); err == nil {
		return store{}, fmt.Errorf("%w: %s", ErrDirExists, dir)
	}
	s := store{dir: abs}
	if err := os.MkdirAll(filepath.Join(abs, cellsDir), 0o755); err != nil {
		_ = s.removeEmpty() // the first error tells why
		return store{}, fmt.Errorf("make run directory: %w", err)
	}
	return s, nil
}

// record reads run.json. The error is ErrNoRun or ErrDamaged.
func (s store) record() (Record, error) {
	var record Record
	path := filepath.Join(s.dir, recordFile)
	err := readJSON(path, &record)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Record{}, fmt.Errorf("%w in %s", ErrNoRun, s.dir)
	}
	switch e := record.Experiment; {
	case err != nil:
	case e == nil:
		err = fmt.Errorf("%w: %s names no experiment", ErrDamaged, path)
	case e.Repetitions < 1 || len(e.Cells()) == 0:
		err = fmt.Errorf("%w: %s has nothing to run", ErrDamaged, path)
	default:
		for _, scenario := range e.Scenarios {
			if link := scenario.Stray(); link != "" {
				err = fmt.Errorf("%w: %s has %.80q change, which is no link of the scenario %.80q", ErrDamaged, path, link, scenario.Name)
			}
		}
	}
	return record, err
}

// removeEmpty removes a run directory that no run has begun in, so that the
// next may have its name.
func (s store) removeEmpty() error {
	if _, err := os.Lstat(filepath.Join(s.dir, recordFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(removeIfThere(filepath.Join(s.dir, cellsDir)), removeIfThere(filepath.Join(s.dir, lockFile)), removeIfThere(s.dir))
}

func (s store) turnDir(turn Turn) string {
	return filepath.Join(s.dir, cellsDir, turn.Cell.ID(), strconv.Itoa(turn.Repetition))
}

func (s store) partialDir(turn Turn) string { return s.turnDir(turn) + partialSuffix }

func (s store) rejectedDir(turn Turn, try int) string {
	return s.turnDir(turn) + rejectedSuffix + strconv.Itoa(try)
}

// begin makes the directory that a repetition is written to; what an earlier
// try left there is removed.
func (s store) begin(turn Turn) (string, error) {
	partial := s.partialDir(turn)
	if err := os.RemoveAll(partial); err != nil {
		return "", fmt.Errorf("keep repetition: %w", err)
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return "", fmt.Errorf("keep repetition: %w", err)
	}
	return partial, nil
}

// has reports whether a repetition is complete, with its links proven.
func (s store) has(turn Turn) bool { return isThere(s.turnDir(turn)) }

// done reports whether nothing is left to do for a repetition: it counts, or its
// last try was rejected, too.
func (s store) done(turn Turn) bool {
	return s.has(turn) || isThere(s.rejectedDir(turn, triesMax))
}

func isThere(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, repetitionFile))
	return err == nil
}

// underWay is the turn whose directory is being written to: the latest, where
// killed runs have left some.
func (s store) underWay(turns []Turn) (now Turn, ok bool) {
	var latest time.Time
	for _, turn := range turns {
		info, err := os.Stat(s.partialDir(turn))
		if err == nil && (!ok || info.ModTime().After(latest)) {
			now, ok, latest = turn, true, info.ModTime()
		}
	}
	return now, ok
}

// tries are all tries of a repetition in their order; the last one counts unless
// its proof has reasons.
func (s store) tries(turn Turn) ([]Repetition, error) {
	var dirs []string
	for try := 1; try <= triesMax; try++ {
		dirs = append(dirs, s.rejectedDir(turn, try))
	}
	var all []Repetition
	for _, dir := range append(dirs, s.turnDir(turn)) {
		var r Repetition
		err := readJSON(filepath.Join(dir, repetitionFile), &r)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// last is the last try of a repetition that is done.
func (s store) last(turn Turn) (Repetition, error) {
	all, err := s.tries(turn)
	if err != nil || len(all) == 0 {
		return Repetition{}, err
	}
	return all[len(all)-1], nil
}

// complete renames the directory of a repetition: from now on it counts.
func (s store) complete(turn Turn, result Repetition) error {
	return s.keep(turn, result, s.turnDir(turn))
}

// reject renames the directory of a try, which is kept for a look at it.
func (s store) reject(turn Turn, result Repetition) error {
	return s.keep(turn, result, s.rejectedDir(turn, result.Try))
}

// keep ends a try under its final name. What it holds is on the disk before, so
// that a power loss leaves it whole.
func (s store) keep(turn Turn, result Repetition, as string) error {
	partial := s.partialDir(turn)
	if err := whole.JSON(filepath.Join(partial, repetitionFile), 0o644, result); err != nil {
		return fmt.Errorf("keep repetition: %w", err)
	}
	if err := flushTree(partial); err != nil {
		return fmt.Errorf("keep repetition: %w", err)
	}
	if err := os.Rename(partial, as); err != nil {
		return fmt.Errorf("keep repetition: %w", err)
	}
	cell := filepath.Dir(partial)
	if err := flush(cell, filepath.Dir(cell)); err != nil {
		return fmt.Errorf("keep repetition: %w", err)
	}
	return nil
}

func (s store) writeRecord(r Record) error {
	if err := whole.JSON(filepath.Join(s.dir, recordFile), 0o644, r); err != nil {
		return fmt.Errorf("keep run: %w", err)
	}
	if err := flush(s.dir); err != nil {
		return fmt.Errorf("keep run: %w", err)
	}
	return nil
}

// flushTree flushes a folder with all files and folders in it; what else a system
// leaves there, such as a socket, has nothing to write.
func flushTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() {
			return err
		}
		return flush(path)
	})
}

// flush has the kernel write files or folders to the disk.
func flush(paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return nil
}
