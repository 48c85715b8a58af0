package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/topology"
)

// square is two clusters of two nodes.
func square() *topology.Topology {
	return &topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head", "worker"}}},
		Service:  "c1/worker", Client: "c2/worker",
	}
}

func TestFlowOf(t *testing.T) {
	slow := impair.Impairment{Delay: quantity.Duration(time.Millisecond)}
	link := func(from, to topology.Ref, i impair.Impairment) experiment.Link {
		return experiment.Link{From: from, To: to, Impairment: i}
	}
	for _, c := range []struct {
		name string
		// links of the scenario, of which the first is probed.
		links    []experiment.Link
		from, to topology.Ref
		ok       bool
	}{
		{"clusters", []experiment.Link{link("c1", "c2", slow)}, "c1/worker", "c2/worker", true},
		{"back", []experiment.Link{link("c2", "c1", slow)}, "c2/worker", "c1/worker", true},
		{"nodes", []experiment.Link{link("c1/head", "c2/worker", slow)}, "c1/head", "c2/worker", true},
		{"nodes of one cluster", []experiment.Link{link("c1/worker", "c1/head", slow)}, "c1/worker", "c1/head", true},
		{"beside a link of nodes", []experiment.Link{link("c1", "c2", slow), link("c1/worker", "c2/worker", slow)}, "c1/worker", "c2/head", true},
		{
			"beside one that does nothing",
			[]experiment.Link{link("c1", "c2", slow), link("c1/worker", "c2/worker", impair.Impairment{})}, "c1/worker", "c2/head", true,
		},
		{"beside links of all nodes", []experiment.Link{
			link("c1", "c2", slow), link("c1/worker", "c2/worker", slow), link("c1/worker", "c2/head", slow),
			link("c1/head", "c2/worker", slow), link("c1/head", "c2/head", slow),
		}, "", "", false},
	} {
		s := experiment.Scenario{Links: c.links}
		f, ok := flowOf(square(), s.Directions(), s.Directions()[0])
		if ok != c.ok || f.from != c.from || f.to != c.to || ok && !slices.Equal(f.asked, impair.Stages{slow}) {
			t.Errorf("%s: got %+v, %v, want %s to %s, %v", c.name, f, ok, c.from, c.to, c.ok)
		}
	}
}

// Delays are timed on all directions at once, before any burst; bursts of one
// direction end before those of the next begin.
func TestSchedule(t *testing.T) {
	ms := quantity.Duration(time.Millisecond)
	flows := []flow{
		{asked: impair.Stages{{Delay: ms, Rate: 1e8}}},
		{asked: impair.Stages{{Delay: 5 * ms, Jitter: ms}}},
		{asked: impair.Stages{{Delay: ms, Rate: 1e9}}},
	}
	plan, end := schedule(flows)
	var want int
	var last time.Duration
	bursting := -1
	for _, f := range flows {
		packets, _ := proof.Bursts(f.asked...)
		want += len(proof.Delays(f.asked...)) + len(packets)
	}
	for i, d := range plan {
		if d.At < last || d.At > end {
			t.Fatalf("packet %d is due at %s, the one before at %s, the end at %s", i, d.At, last, end)
		}
		last = d.At
		switch {
		case d.Burst == 0 && bursting >= 0:
			t.Fatalf("packet %d times a delay after the first burst", i)
		case d.Burst > 0 && d.flow < bursting:
			t.Fatalf("packet %d is of flow %d, after bursts of flow %d", i, d.flow, bursting)
		case d.Burst > 0:
			bursting = d.flow
		}
	}
	if len(plan) != want || bursting != 2 {
		t.Errorf("%d packets, the last burst of flow %d; want %d, and 2", len(plan), bursting, want)
	}
	if plan, end := schedule(nil); len(plan) != 0 || end > silence {
		t.Errorf("without flows: %d packets until %s", len(plan), end)
	}
}

func TestLongest(t *testing.T) {
	ms := quantity.Duration(time.Millisecond)
	uniform := flow{asked: impair.Stages{{Delay: 5 * ms, Jitter: 2 * ms}}}
	normal := flow{asked: impair.Stages{{Delay: 5 * ms, Jitter: 2 * ms, Distribution: impair.Normal}}}
	if got := longest([]flow{{}, uniform}); got != 7*time.Millisecond {
		t.Errorf("uniform: %s, want 7ms", got)
	}
	if got := longest([]flow{normal, uniform}); got != 13*time.Millisecond {
		t.Errorf("normal: %s, want 13ms", got)
	}
}

// A run shares its bound of false rejections among all its tests.
func TestAlpha(t *testing.T) {
	lossy := experiment.Cell{Scenario: experiment.Scenario{Links: []experiment.Link{
		{Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Loss: 0.1}},
	}}}
	turns := []Turn{{Cell: lossy, Repetition: 1}, {Cell: lossy, Repetition: 2}, {Cell: experiment.Cell{}}}
	if got, want := alpha(turns), proof.Alpha(4*proof.Tests(impair.Impairment{Loss: 0.1})); got != want {
		t.Errorf("got %g, want %g", got, want)
	}
}

func TestRejectionText(t *testing.T) {
	turn := Turn{Cell: example().Cells()[0], Repetition: 2}
	const cell = "rejected: near/direct/hello-world 1 thread kept, repetition 2, try 1 of 3: "
	for reasons, want := range map[string]string{"one": cell + "one", "one two three": cell + "one (and 2 more)"} {
		if got := rejection(turn, 1, strings.Fields(reasons)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// keepTry leaves a try as a run does: the counting one, or a rejected one.
func keepTry(t *testing.T, s store, turn Turn, try int, reasons ...string) {
	t.Helper()
	writeSamples(t, s, turn)
	result := Repetition{
		Cell: turn.Cell, Repetition: turn.Repetition, Try: try, Proof: proof.Proof{Reasons: reasons},
		Began: time.Unix(int64(try), 0), Ended: time.Unix(int64(try)+60, 0),
	}
	keep := s.complete
	if result.Proof.Rejected() {
		keep = s.reject
	}
	if err := keep(turn, result); err != nil {
		t.Fatal(err)
	}
}

func TestTries(t *testing.T) {
	s := written(t, 0)
	turn := Turn{Cell: example().Cells()[0], Repetition: 1}
	want := func(done, counts bool, numbers ...int) {
		t.Helper()
		tries, err := s.tries(turn)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, r := range tries {
			got = append(got, r.Try)
		}
		if !slices.Equal(got, numbers) || s.done(turn) != done || s.has(turn) != counts {
			t.Errorf("tries %v, done %v, counts %v; want %v, %v, %v", got, s.done(turn), s.has(turn), numbers, done, counts)
		}
	}
	want(false, false)
	keepTry(t, s, turn, 1, "late")
	want(false, false, 1)
	writeSamples(t, s, turn) // under way
	want(false, false, 1)
	keepTry(t, s, turn, 2, "late again")
	want(false, false, 1, 2)
	keepTry(t, s, turn, 3)
	want(true, true, 1, 2, 3)
	// Each with its samples, to look at.
	for _, name := range []string{"1.rejected-1", "1.rejected-2", "1"} {
		if rows, err := readSamples(filepath.Join(filepath.Dir(s.turnDir(turn)), name, samplesFile)); err != nil || len(rows) != 10 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	turn.Repetition = 2
	for try := 1; try <= triesMax; try++ {
		keepTry(t, s, turn, try, "late")
	}
	want(true, false, 1, 2, 3)
	if last, err := s.last(turn); err != nil || last.Try != triesMax {
		t.Errorf("last try %d, %v", last.Try, err)
	}
}

// A damaged try is an error that names its file.
func TestTriesDamaged(t *testing.T) {
	s := written(t, 0)
	turn := Turn{Cell: example().Cells()[0], Repetition: 1}
	keepTry(t, s, turn, 1, "late")
	path := filepath.Join(s.rejectedDir(turn, 1), repetitionFile)
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tries(turn); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// Where the folder of a damaged try was removed, as the hint says, the next has a number
// of its own, and a repetition that was rejected for good stays so.
func TestTriesWithoutADamagedOne(t *testing.T) {
	s := written(t, 1)
	turn := Turn{Cell: example().Cells()[0], Repetition: 2}
	for _, want := range []int{1, 2, 3} {
		tries, err := s.tries(turn)
		if err != nil || nextTry(tries) != want {
			t.Fatalf("try %d is to follow %d, %v", nextTry(tries), want-1, err)
		}
		keepTry(t, s, turn, want, "late")
		if want == 2 {
			if err := os.RemoveAll(s.rejectedDir(turn, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if input, err := Collect(s.dir); err != nil || input.Results[0].Rejected == "" {
		t.Errorf("rejected %q, %v", input.Results[0].Rejected, err)
	}
}

// A cell that was rejected meets no objective, however fast the repetitions that count.
func TestRejectedMeetsNothing(t *testing.T) {
	s := written(t, 1)
	turn := Turn{Cell: example().Cells()[0], Repetition: 2}
	for try := 1; try <= triesMax; try++ {
		keepTry(t, s, turn, try, "late")
	}
	input, err := Collect(s.dir)
	if err != nil || input.Results[0].Rejected == "" {
		t.Fatalf("rejected %q, %v", input.Results[0].Rejected, err)
	}
	if v := input.Verdicts[0]; v.Met || !strings.Contains(v.Seen, "no figure in near/direct/hello-world") {
		t.Errorf("verdict %+v", v)
	}
}

// A repetition whose every try was rejected is done: it is counted as such, with
// none of its requests, and a run that goes on leaves it alone.
func TestRejectedIsDone(t *testing.T) {
	s := written(t, 1)
	turn := Turn{Cell: example().Cells()[0], Repetition: 2}
	for try := 1; try <= triesMax; try++ {
		status, err := Look(s.dir)
		if err != nil || status.Done != 1 || status.Rejected != 0 || status.State != Stopped {
			t.Errorf("before try %d: %+v, %v", try, status, err)
		}
		keepTry(t, s, turn, try, "late")
	}
	status, err := Look(s.dir)
	if err != nil || status.State != Complete || status.Done != 2 || status.Rejected != 1 || status.Requests != 10 {
		t.Errorf("after the last: %+v, %v", status, err)
	}
	if err := Resume(t.Context(), Options{Dir: s.dir}); err != nil {
		t.Fatal(err)
	}
	if record, err := s.record(); err != nil || !record.Ended.Equal(time.Unix(63, 0)) {
		t.Errorf("record %+v, %v", record, err)
	}
}
