package experiment_test

import (
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
)

// A ratio is a factor in place of the threads: a cell has their sum, and goes on for
// the load's duration. A cell without one is as it was before there were ratios.
func TestRatioCells(t *testing.T) {
	e := read(t, "testdata/ratio.yaml")
	cells := e.Cells()
	if len(cells) != 6 {
		t.Fatalf("%d cells of two systems and three ratios", len(cells))
	}
	for i, want := range []struct {
		ratio, label string
		each         []int
		threads      int
	}{
		{"1:1:1", "apart/direct/hello-world 1:1:1 threads think 1ms kept", []int{1, 1, 1}, 3},
		{"8:0:0", "apart/direct/hello-world 8:0:0 threads think 1ms kept", []int{8, 0, 0}, 8},
		{"4:2:10", "apart/direct/hello-world 4:2:10 threads think 1ms kept", []int{4, 2, 10}, 16},
	} {
		c := cells[i]
		if c.Ratio != want.ratio || c.String() != want.label || c.Threads != want.threads || !slices.Equal(c.AtEntries(), want.each) {
			t.Errorf("cell %d is %s of %d threads, %v; want %+v", i, c, c.Threads, c.AtEntries(), want)
		}
		if !c.Timed() || c.Iterations != 0 || c.Arrivals != "" || c.Duration.Std() != 2*time.Second {
			t.Errorf("cell %d: %d iterations, %q, for %s", i, c.Iterations, c.Arrivals, c.Duration)
		}
		if got := e.Estimate(c); got < 2*time.Second || got > 3*time.Second {
			t.Errorf("cell %d takes %s, want its duration and its set-up", i, got)
		}
	}
	e.Load.Settle = quantity.Duration(5 * time.Second)
	if settled := e.Cells()[0]; e.Estimate(settled) < 7*time.Second || settled.ID() == cells[0].ID() {
		t.Errorf("a cell that settles takes %s, by the name %s", e.Estimate(settled), settled.ID())
	}
	plain := read(t, "testdata/quickstart.yaml").Cells()[0]
	if plain.Timed() || plain.AtEntries() != nil {
		t.Errorf("without a ratio: timed %t, at entries %v", plain.Timed(), plain.AtEntries())
	}
	open := experiment.Cell{OpenLoop: experiment.OpenLoop{Rate: 1, Duration: 1}}
	if open.Timed() {
		t.Error("an open loop is taken for a closed one by time")
	}
}

// Cells of two ratios are compared where a claim names the ratios, whatever the numbers
// of their threads; else of one ratio alone.
func TestClaimsOfRatios(t *testing.T) {
	e := read(t, "testdata/ratio.yaml")
	cells := e.Cells()
	for i, want := range [][][2]int{
		{{1, -1}, {4, -1}},
		{{2, 0}, {5, 3}},
		{{3, 0}, {4, 1}, {5, 2}},
	} {
		members, more := e.Claims[i].Members(cells)
		var got [][2]int
		for _, m := range members {
			got = append(got, [2]int{m.Points[0].Of.Cell, m.Points[0].To.Cell})
		}
		if more || !slices.Equal(got, want) {
			t.Errorf("claim %s compares %v, want %v", e.Claims[i].Name, got, want)
		}
	}
	s := experiment.Selector{System: []string{"direct"}, Ratio: []string{"8:0:0", "1:1:1"}}
	if got, want := s.String(), "direct 8:0:0 or 1:1:1 threads"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !s.Selects(cells[0]) || s.Selects(cells[2]) || s.Selects(cells[3]) {
		t.Errorf("%s selects %t, %t, %t", s, s.Selects(cells[0]), s.Selects(cells[2]), s.Selects(cells[3]))
	}
}
