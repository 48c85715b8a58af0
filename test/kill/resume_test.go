package kill_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/test/quiet"
)

// resumptions is how often a run is killed before it may end.
const resumptions = 3

// cellsOf lists the repetitions of a run directory that count. One whose folder has not
// its name yet does not, nor does a try that was rejected.
func cellsOf(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "cells/*/*/repetition.json"))
	if err != nil {
		t.Fatal(err)
	}
	found = slices.DeleteFunc(found, func(path string) bool {
		_, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		return err != nil
	})
	for i, path := range found {
		found[i] = strings.TrimPrefix(path, dir)
	}
	slices.Sort(found)
	return found
}

var (
	errorCount = regexp.MustCompile(`(?m)^errors +.*$`)
	lastColumn = regexp.MustCompile(`(?m)^near/stubborn.* (\d+)$`)
)

// figuresOf is what must not depend on how often the run was ended: the cells,
// the requests and the n of the table.
func (b *bench) figuresOf(dir string) string {
	b.t.Helper()
	n := lastColumn.FindAllStringSubmatch(b.must("report", dir), -1)
	return fmt.Sprint(cellsOf(b.t, dir), errorCount.FindString(b.must("status", dir)), n)
}

// TestResumed kills a run at random moments, goes on each time, and wants what
// an uninterrupted run has. What was complete stays as it was.
func TestResumed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBench(t)
	b.write("middle.yaml", fmt.Sprintf(experimentText, 10, 12)+"seed: 7\n")
	before, err := quiet.Now()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	whole := b.start("middle.yaml")
	if whole.end() != 0 {
		t.Fatal(whole.lines())
	}
	took := time.Since(began)

	s := b.start("middle.yaml")
	dir := s.out
	s.await("run.json", func() bool { return there(filepath.Join(dir, "run.json")) })
	for n := range resumptions {
		time.Sleep(time.Duration(random.Int64N(int64(took) / resumptions)))
		if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		s.end()
		kept := modified(t, dir)
		t.Logf("kill %d: %d of 12 are complete", n+1, len(kept))
		if out := b.must("status", dir); strings.Contains(out, "running") {
			t.Errorf("status of a killed run:\n%s", out)
		}
		s = b.resume(dir)
		s.await("the next repetition", func() bool {
			return len(s.done) > 0 || len(cellsOf(t, dir)) > min(len(kept), 11)
		})
		for path, was := range kept {
			if now := modified(t, dir)[path]; !now.Equal(was) {
				t.Errorf("%s was complete and is run again", path)
			}
		}
	}
	if s.end() != 0 {
		t.Fatal(s.lines())
	}
	after, err := quiet.Now()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.figuresOf(dir), b.figuresOf(whole.out); got != want || !strings.Contains(want, "of 120 requests") {
		if taken := after.Since(before); taken >= quiet.Taken {
			t.Skipf("needs cores of its own, for repetitions to count: a hypervisor took %.0f %% of them", 100*taken)
		}
		t.Errorf("resumed:\n%s\nuninterrupted:\n%s", got, want)
	}
	b.must("doctor", "--clean")
	b.before.await(t, b.mark, b.labs)
}

// modified is when each complete repetition was written.
func modified(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	for _, path := range cellsOf(t, dir) {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		times[path] = info.ModTime()
	}
	return times
}

// A run that goes on is not resumed beside itself.
func TestResumedWhileRunning(t *testing.T) {
	b := newBench(t)
	s := b.start("long.yaml")
	s.await("run.json", func() bool { return there(filepath.Join(s.out, "run.json")) })
	second := b.resume(s.out)
	if status := second.end(); status != 1 || !strings.Contains(second.lines(), "skerry: error: run is still going: ") {
		t.Errorf("exit status %d, said\n%s", status, second.lines())
	}
	if out := b.must("status", s.out); !strings.Contains(out, "running") || !strings.Contains(out, "now ") {
		t.Errorf("status of a run that goes on:\n%s", out)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.end()
	b.must("doctor", "--clean")
	b.before.await(t, b.mark, b.labs)
}
