package run

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

// near is a system whose clients call the workload at the entry itself.
const near = `name: near
kind: interconnect
summary: is called at each entry
hosts:
  route: [client, entry]
  address: "{{.Entry.IP}}:{{.Entry.Port}}"
`

// atEntries has the example enter at two nodes that serve, by Skerry's load and by ab
// where that is here.
func atEntries(t *testing.T, o *Options) {
	t.Helper()
	stack, err := system.Load(fstest.MapFS{"near/system.yaml": {Data: []byte(near)}}, "near")
	if err != nil {
		t.Fatal(err)
	}
	o.Stacks = map[string]*system.Stack{"near": stack}
	e := o.Experiment
	e.Topology.Clusters[0].Nodes = []string{"head", "two", "idle"}
	e.Topology.Replicas = []topology.Ref{"c1/two"}
	e.Topology.Entries = []topology.Ref{"c1/head", "c1/idle", "c1/two"}
	e.Systems, e.Repetitions = []string{"near"}, 1
	e.Load = experiment.Load{Ratio: []string{"4:0:2"}, Duration: quantity.Duration(time.Second)}
	if _, err := exec.LookPath("ab"); err != nil {
		return
	}
	e.Load.Tool = []string{experiment.ToolSkerry, experiment.ToolAB}
	ab, err := program.Find(t.Context(), experiment.ToolAB, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Tools = map[string]program.Program{experiment.ToolAB: ab}
}

// Requests enter at two nodes of three in the ratio asked for, and nobody asks the third, where
// nothing listens.
func TestEntries(t *testing.T) {
	o, _ := realRun(t, func(o *Options) { atEntries(t, o) })
	input, err := Collect(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range input.Results {
		if r.Summary.Errors != 0 || r.Summary.N < 100 || len(r.Rejected) > 0 {
			t.Errorf("%s: %+v, rejected %q", r.Cell, r.Summary, r.Rejected)
		}
		checkEntries(t, r)
		if why := strings.Join(r.Oracle.Notes, " "); strings.Contains(why, "Little") || !strings.Contains(why, "2 of 6 threads call another entry") {
			t.Errorf("%s: notes %q", r.Cell, r.Oracle.Notes)
		}
		for _, name := range []string{"service", "service-c1-two"} {
			if i := slices.IndexFunc(r.Uses, func(u report.Use) bool { return u.Name == name }); i < 0 || r.Uses[i].CPU <= 0 {
				t.Errorf("%s: %s has used %+v", r.Cell, name, r.Uses)
			}
		}
		checkLoads(t, o, Turn{Cell: r.Cell, Repetition: 1})
	}
}

// A replica that is broken answers nobody, and the others all.
func TestBrokenReplica(t *testing.T) {
	o, _ := realRun(t, func(o *Options) {
		atEntries(t, o)
		o.Experiment.Topology.Broken, o.Experiment.Load.Tool = []topology.Ref{"c1/two"}, nil
	})
	input, err := Collect(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range input.Results {
		if len(r.Entries) != 3 || r.Entries[0].Rate <= 0 || r.Entries[2].Rate != 0 || r.Summary.Errors == 0 || r.Summary.N == 0 {
			t.Errorf("%s: entries %+v, %d answers, %d errors", r.Cell, r.Entries, r.Summary.N, r.Summary.Errors)
		}
	}
}

// checkEntries holds the entries to the ratio: all threads are as fast.
func checkEntries(t *testing.T, r report.Result) {
	t.Helper()
	if len(r.Entries) != 3 || r.Entries[1].Node != "c1/idle" || r.Entries[1].Rate != 0 || r.Entries[2].Threads != 2 {
		t.Fatalf("%s: entries %+v", r.Cell, r.Entries)
	}
	a, b := r.Entries[0].Rate, r.Entries[2].Rate
	if b <= 0 || a < 1.5*b || a > 2.5*b || a+b < 0.999*r.Observed.Rate || a+b > 1.001*r.Observed.Rate {
		t.Errorf("%s: %g and %g of %g requests a second, want two thirds and one", r.Cell, a, b, r.Observed.Rate)
	}
}

// checkLoads looks at the rows, and at what was started.
func checkLoads(t *testing.T, o Options, turn Turn) {
	t.Helper()
	repetition, err := store{o.Dir}.last(turn)
	if err != nil {
		t.Fatal(err)
	}
	loads := slices.DeleteFunc(repetition.Uses, func(u host.Use) bool { return u.Name != loadName })
	if len(loads) != 1 || loads[0].CPU <= 0 || loads[0].Node != "c2/head" {
		t.Errorf("%s: loads have used %+v", turn.Cell, repetition.Uses)
	}
	requests, err := readSamples(filepath.Join(store{o.Dir}.turnDir(turn), samplesFile))
	if err != nil {
		t.Fatal(err)
	}
	threads := map[int32]bool{}
	for _, q := range requests {
		threads[q.Thread] = true
	}
	if turn.Cell.Tool == "" {
		if len(threads) != 6 {
			t.Errorf("%s: rows of the threads %v", turn.Cell, threads)
		}
		return
	}
	if !threads[0] || !threads[4] || len(threads) != 2 {
		t.Errorf("%s: rows of the threads %v, want the first of each entry", turn.Cell, threads)
	}
	for _, want := range []string{"http://10.1.0.1:8080/ & ", "http://10.1.0.2:8080/"} {
		if text := strings.Join(repetition.Command, " "); !strings.Contains(text, want) || strings.Contains(text, "10.1.0.3") {
			t.Errorf("%s: the command is %q", turn.Cell, text)
		}
	}
}

// What an entry has answered goes by the numbers of the threads; warm-up and failures
// do not count.
func TestAtEntries(t *testing.T) {
	cell := experiment.Cell{Sender: experiment.Sender{Ratio: "2:0:1"}, Threads: 3}
	nodes := []topology.Ref{"c1/a", "c1/b", "c1/c"}
	c := &collection{cell: cell, Resources: report.Resources{Entries: entriesOf(cell, nodes)}}
	c.atEntries([]sample.Request{
		{Thread: 0}, {Thread: 1}, {Thread: 1}, {Thread: 2}, {Thread: 2, Warmup: true}, {Thread: 1, Error: "timeout"}, {Thread: 3}, {Thread: -1},
	}, 100)
	want := []report.Entry{{Node: "c1/a", Threads: 2, Rate: 75}, {Node: "c1/b"}, {Node: "c1/c", Threads: 1, Rate: 25}}
	if !slices.Equal(c.Entries, want) {
		t.Errorf("got %+v, want %+v", c.Entries, want)
	}
	c.atEntries(nil, 0)
	if !slices.Equal(c.Entries, want) {
		t.Errorf("after a repetition without an answer: %+v", c.Entries)
	}
	addresses := []string{"x:1", "y:1", "x:1"}
	if got := called(cell, addresses); !slices.Equal(got, []string{"x:1"}) {
		t.Errorf("called are %q", got)
	}
	moving := cell
	moving.Rotate = 1
	if got := called(moving, addresses); len(got) < 2 {
		t.Errorf("threads that go from entry to entry call %v", got)
	}
	if got := entriesOf(moving, nodes); got != nil {
		t.Errorf("they are nobody's: %v", got)
	}
	if got := called(experiment.Cell{Threads: 3}, addresses[:1]); !slices.Equal(got, []string{"x:1"}) {
		t.Errorf("without a ratio %q are called", got)
	}
}
