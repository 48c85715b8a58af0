package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

// example is an experiment of one cell, two repetitions, a link and an objective.
func example() *experiment.Experiment {
	return &experiment.Experiment{
		Name: "example",
		Topology: topology.Topology{
			Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}, {Name: "c2", Nodes: []string{"head"}}},
			Service:  "c1/head", Client: "c2/head",
		},
		Scenarios: []experiment.Scenario{{Name: "near", Links: []experiment.Link{{
			Between:    []topology.Ref{"c1", "c2"},
			Impairment: impair.Impairment{Delay: quantity.Duration(time.Millisecond)},
		}}}},
		Systems: []string{"direct"}, Workloads: []experiment.Workload{{Name: "hello-world"}},
		Load: experiment.Load{Iterations: 10}, Repetitions: 2,
		Objectives: []experiment.Objective{{Metric: "p50", Below: "10ms"}},
	}
}

// written is a run directory with complete repetitions of ten requests each, the
// first of a connection in 5 ms, the others in 2 ms.
func written(t *testing.T, repetitions int) store {
	t.Helper()
	s, err := create(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	e := example()
	if err := s.writeRecord(Record{Experiment: e, Seed: 7, Began: time.Unix(100, 0)}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= repetitions; n++ {
		turn := Turn{Cell: e.Cells()[0], Repetition: n}
		writeSamples(t, s, turn)
		result := Repetition{
			Cell: turn.Cell, Repetition: n, Path: []topology.Ref{"c2/head", "c1/head"},
			Proof: proof.Proof{Directions: []proof.Direction{
				{Name: "c1>c2", Seen: impair.Counters{Packets: 5, Lost: 1}}, {Name: "c2>c1", Seen: impair.Counters{Packets: 7}},
			}},
		}
		if err := s.complete(turn, result); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func writeSamples(t *testing.T, s store, turn Turn) {
	t.Helper()
	dir, err := s.begin(turn)
	if err != nil {
		t.Fatal(err)
	}
	var rows []sample.Request
	for i := range int32(10) {
		took := 2 * time.Millisecond
		if i == 0 {
			took = 5 * time.Millisecond
		}
		rows = append(rows, sample.Request{Index: i + 1, LastByteNs: took.Nanoseconds(), Status: 200})
	}
	f, err := os.Create(filepath.Join(dir, samplesFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sample.WriteRequests(f, rows), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestCollect(t *testing.T) {
	input, err := Collect(written(t, 2).dir)
	if err != nil {
		t.Fatal(err)
	}
	r := input.Results[0]
	if r.Summary.N != 18 || r.Summary.FirstN != 2 || r.Summary.Times.Median != 2*time.Millisecond || r.Summary.First != 5*time.Millisecond {
		t.Errorf("summary %+v", r.Summary)
	}
	if len(r.PerRepetition) != 2 || r.PerRepetition[1].N != 9 {
		t.Errorf("repetitions %+v", r.PerRepetition)
	}
	if len(r.Links) != 2 || r.Links[0].Seen.Packets != 10 || r.Links[0].Seen.Lost != 2 || r.Links[1].Seen.Packets != 14 {
		t.Errorf("links %+v", r.Links)
	}
	if !strings.Contains(r.HopMap.String(), "c2/head") || !strings.Contains(r.HopMap.String(), "c1/head") {
		t.Errorf("hop map %q", r.HopMap)
	}
	if len(input.Verdicts) != 1 || !input.Verdicts[0].Met || input.Provenance.Seed != 7 || input.Provenance.Took != 0 {
		t.Errorf("verdicts %+v, provenance %+v", input.Verdicts, input.Provenance)
	}
}

// What a system leaves beside its files, such as a socket or a pipe, is kept as it
// is, and held up by nothing.
func TestKeepsOddFiles(t *testing.T) {
	s := written(t, 0)
	turn := Turn{Cell: example().Cells()[0], Repetition: 1}
	writeSamples(t, s, turn)
	dir := s.partialDir(turn)
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "upper/c1-head"), 0o755), os.WriteFile(filepath.Join(dir, "upper/gate.log"), []byte("x"), 0o644),
		unix.Mkfifo(filepath.Join(dir, "upper/pipe"), 0o600), os.Symlink("nowhere", filepath.Join(dir, "link")),
		s.complete(turn, Repetition{Cell: turn.Cell, Repetition: 1}),
	); err != nil {
		t.Fatal(err)
	}
	if !s.has(turn) {
		t.Error("the repetition is not complete")
	}
}

// A repetition that is under way, or was when its run was killed, never counts,
// however much of it is there.
func TestPartialNeverCounts(t *testing.T) {
	s := written(t, 1)
	second := Turn{Cell: example().Cells()[0], Repetition: 2}
	writeSamples(t, s, second)
	if err := whole.JSON(filepath.Join(s.partialDir(second), repetitionFile), 0o644, Repetition{Cell: second.Cell, Repetition: 2}); err != nil {
		t.Fatal(err)
	}
	input, err := Collect(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := input.Results[0]; r.Summary.N != 9 || len(r.PerRepetition) != 1 {
		t.Errorf("the partial repetition counts: %+v", r.Summary)
	}
	// The next try begins with an empty directory.
	dir, err := s.begin(second)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the next try finds %v, %v", entries, err)
	}
}

func TestCollectNothing(t *testing.T) {
	input, err := Collect(written(t, 0).dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := input.Results[0]; r.Summary.Requests != 0 || r.HopMap.Start != "" || r.Links[0].Seen.Packets != 0 {
		t.Errorf("result %+v", r)
	}
	if v := input.Verdicts[0]; v.Met || !strings.Contains(v.Seen, "no figure in near/direct/hello-world") {
		t.Errorf("verdict %+v", v)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "nowhere")} {
		if _, err := Collect(dir); !errors.Is(err, ErrNoRun) {
			t.Errorf("got %v, want ErrNoRun", err)
		}
	}
}

// Damage is an error that names the file, not a figure.
func TestCollectDamaged(t *testing.T) {
	cell := filepath.Join(cellsDir, example().Cells()[0].ID(), "2")
	for _, file := range []string{recordFile, filepath.Join(cell, repetitionFile), filepath.Join(cell, samplesFile)} {
		for name, damage := range map[string]func(string) error{
			"empty": func(path string) error { return os.Truncate(path, 0) },
			"cut":   func(path string) error { return os.Truncate(path, 40) },
			"other": func(path string) error { return os.WriteFile(path, []byte("[]"), 0o644) },
			"bare":  func(path string) error { return os.WriteFile(path, []byte("{"), 0o644) },
		} {
			s := written(t, 2)
			path := filepath.Join(s.dir, file)
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			if _, err := Collect(s.dir); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %s: got %v", file, name, err)
			}
		}
	}
	for _, record := range []string{"{}", `{"experiment":{}}`, `{"experiment":{"repetitions":-1}}`} {
		s := written(t, 2)
		if err := os.WriteFile(filepath.Join(s.dir, recordFile), []byte(record), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Collect(s.dir); !errors.Is(err, ErrDamaged) {
			t.Errorf("the record %s: %v", record, err)
		}
	}
	s := written(t, 2)
	stray := example()
	stray.Scenarios[0].Timeline = []experiment.Event{{Down: true, Link: experiment.Link{Between: []topology.Ref{"c1", "c9"}}}}
	if err := s.writeRecord(Record{Experiment: stray}); err != nil {
		t.Fatal(err)
	}
	if _, err := Collect(s.dir); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "c1>c9") {
		t.Errorf("an event of a link that is not there: %v", err)
	}
	s = written(t, 2)
	if err := os.Remove(filepath.Join(s.dir, cell, samplesFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Collect(s.dir); !errors.Is(err, ErrDamaged) {
		t.Errorf("a repetition without samples: %v", err)
	}
}

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a/b")
	s, err := create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := create(dir); !errors.Is(err, ErrDirExists) {
		t.Errorf("got %v, want ErrDirExists", err)
	}
	// One that no run has begun in gives its name back.
	if err := s.removeEmpty(); err != nil {
		t.Fatal(err)
	}
	if s, err = create(dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.writeRecord(Record{}), s.removeEmpty()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, recordFile)); err != nil {
		t.Errorf("a run that has begun is removed: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := create(filepath.Join(file, "run")); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("below a file: %v", err)
	}
}

func TestLeft(t *testing.T) {
	const s = time.Second
	cases := []struct {
		name       string
		done, todo []time.Duration
		took, want time.Duration
	}{
		{"at first, as estimated", nil, []time.Duration{s, 3 * s}, 0, 4 * s},
		{"as fast as estimated", []time.Duration{2 * s}, []time.Duration{s, 3 * s}, 2 * s, 4 * s},
		{"twice as slow", []time.Duration{2 * s}, []time.Duration{s, 3 * s}, 4 * s, 8 * s},
		{"half as slow, cells unlike", []time.Duration{10 * s}, []time.Duration{4 * s}, 5 * s, 2 * s},
		{"nothing to do", []time.Duration{s}, nil, s, 0},
	}
	for _, c := range cases {
		if got := left(c.done, c.todo, c.took); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAgentError(t *testing.T) {
	ended := errors.New("exit status 1")
	cases := []struct{ text, message, hint string }{
		{"ready 1.2.3.4:80\nskerry-agent: error: no space left on device\nskerry-agent: hint: free space\n", "no space left on device", "free space"},
		{"skerry-agent: error: alone\n", "alone", ""},
		{"signal: killed, error: of another\n", "skerry-agent has ended: exit status 1", ""},
		{"", "skerry-agent has ended: exit status 1", ""},
	}
	for _, c := range cases {
		got, ok := errors.AsType[*AgentError](agentError(c.text, ended))
		if !ok || got.Message != c.message || got.Hint != c.hint {
			t.Errorf("%q: got %+v", c.text, got)
		}
	}
}

// Every repetition of every cell has one turn, and the seed alone orders them.
func TestTurns(t *testing.T) {
	e := example()
	e.Systems, e.Repetitions = []string{"direct", "other"}, 5
	turns := func(seed uint64) string {
		r := runner{Options: Options{Experiment: e, Seed: seed}}
		var text strings.Builder
		for _, turn := range r.turns() {
			text.WriteString(turn.Cell.System + " ")
			text.WriteByte(byte('0' + turn.Repetition))
			text.WriteByte('\n')
		}
		return text.String()
	}
	again := turns(1)
	if strings.Count(again, "\n") != 10 || again != turns(1) || again == turns(2) {
		t.Errorf("turns of seed 1:\n%sof seed 2:\n%s", turns(1), turns(2))
	}
	for _, want := range []string{"direct 1\n", "direct 5\n", "other 1\n", "other 5\n"} {
		if strings.Count(turns(3), want) != 1 {
			t.Errorf("%q is not there once in\n%s", want, turns(3))
		}
	}
}
