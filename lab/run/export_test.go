package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/sample"
)

func TestEachHandsOnEveryRepetition(t *testing.T) {
	s := written(t, 2)
	seen := map[int]int{}
	err := Each(s.dir, func(cell experiment.Cell, repetition int, rows []sample.Request) error {
		if cell.ID() != example().Cells()[0].ID() {
			t.Errorf("cell %s", cell)
		}
		seen[repetition] += len(rows)
		return nil
	})
	if err != nil || len(seen) != 2 || seen[1] != 10 || seen[2] != 10 {
		t.Errorf("rows by repetition %v, %v", seen, err)
	}
}

func TestEachEndsWithItsCaller(t *testing.T) {
	enough, calls := errors.New("enough"), 0
	err := Each(written(t, 2).dir, func(experiment.Cell, int, []sample.Request) error { calls++; return enough })
	if !errors.Is(err, enough) || errors.Is(err, ErrDamaged) || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

func TestEachOfDamage(t *testing.T) {
	none := func(experiment.Cell, int, []sample.Request) error { return nil }
	if err := Each(t.TempDir(), none); !errors.Is(err, ErrNoRun) {
		t.Errorf("no run: %v", err)
	}
	s := written(t, 1)
	path := filepath.Join(s.dir, cellsDir, example().Cells()[0].ID(), "1", samplesFile)
	if err := os.Truncate(path, 40); err != nil {
		t.Fatal(err)
	}
	if err := Each(s.dir, none); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("cut short: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := Each(s.dir, none); !errors.Is(err, ErrDamaged) {
		t.Errorf("without samples: %v", err)
	}
}
