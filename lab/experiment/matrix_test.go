package experiment_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// TestPlan writes down what a plan of each valid file would show: cells,
// directions, hop maps and order.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		path []topology.Ref
	}{
		{"quickstart", []topology.Ref{"c2/worker", "c2/head", "c1/head", "c1/worker"}},
		{"every-key", []topology.Ref{"site-b/n3", "site-b/n3", "site-b/n1", "site-a/n2", "site-a/n1", "site-a/n1"}},
		{"ratio", []topology.Ref{"c2/client", "c1/one"}},
	} {
		e := read(t, "testdata/"+c.name+".yaml")
		var out strings.Builder
		cells := e.Cells()
		for i, cell := range cells {
			fmt.Fprintf(&out, "cell %d %s %s, about %s\n", i, cell.ID(), cell, e.Estimate(cell).Round(time.Millisecond))
		}
		for _, s := range e.Scenarios {
			there, back := slices.Clone(c.path), slices.Clone(c.path)
			slices.Reverse(back)
			fmt.Fprintf(&out, "scenario %s\n  there %s\n  back  %s\n", s.Name, s.HopMap(there), s.HopMap(back))
			for _, d := range s.Directions() {
				fmt.Fprintf(&out, "  %s per %s, delay %s\n", d.Name(), d.Unit, d.Delay)
			}
		}
		fmt.Fprintf(&out, "order of seed 7:")
		for _, slot := range experiment.Order(7, cells, e.Repetitions) {
			fmt.Fprintf(&out, " %d.%d", slot.Cell, slot.Repetition)
		}
		golden(t, "testdata/"+c.name+".txt", out.String()+"\n")
	}
}

func TestCellID(t *testing.T) {
	cell := read(t, "testdata/quickstart.yaml").Cells()[3]
	id := cell.ID()
	if again := read(t, "testdata/quickstart.yaml").Cells()[3].ID(); again != id {
		t.Errorf("two readings of a cell have the names %s and %s", id, again)
	}
	// The least difference that a file can express is another cell.
	other := cell
	other.Scenario.Links = slices.Clone(cell.Scenario.Links)
	cell.Scenario.Name, other.Scenario.Name = "x", "x"
	other.Scenario.Links = []experiment.Link{{From: "c1", To: "c2", Impairment: impair.Impairment{Loss: 1e-12}}}
	cell.Scenario.Links = []experiment.Link{{From: "c1", To: "c2", Impairment: impair.Impairment{Loss: 2e-12}}}
	if cell.ID() == other.ID() {
		t.Errorf("losses of %s and %s have the name %s", cell.Scenario.Links[0].Loss, other.Scenario.Links[0].Loss, id)
	}
}

func TestOrder(t *testing.T) {
	const scenarios, systems, repetitions = 10, 5, 8
	var cells []experiment.Cell
	for i := range scenarios * systems {
		c := experiment.Cell{System: strconv.Itoa(i % systems)}
		c.Threads = i / systems
		cells = append(cells, c)
	}
	order := experiment.Order(1, cells, repetitions)
	if len(order) != len(cells)*repetitions {
		t.Fatalf("%d slots, want %d", len(order), len(cells)*repetitions)
	}
	var blocks [][]int
	for r := range repetitions {
		var block []int
		for i, s := range order[r*len(cells) : (r+1)*len(cells)] {
			if s.Repetition != r+1 {
				t.Fatalf("repetition %d stands in block %d", s.Repetition, r+1)
			}
			if first := i - i%systems; i > first && cells[s.Cell].Threads != cells[block[first]].Threads {
				t.Fatalf("block %d has cell %d apart from those that differ in their system alone", r+1, s.Cell)
			}
			block = append(block, s.Cell)
		}
		blocks = append(blocks, slices.Clone(block))
		slices.Sort(block)
		for want, got := range block {
			if got != want {
				t.Fatalf("block %d lacks cell %d", r+1, want)
			}
		}
	}
	first := func(block int) []int { return blocks[block][:systems] }
	if slices.Equal(blocks[0], blocks[1]) || slices.IsSorted(blocks[0]) || slices.IsSorted(first(0)) && slices.IsSorted(first(1)) {
		t.Error("the blocks are not shuffled, each on its own")
	}
	if !slices.Equal(order, experiment.Order(1, cells, repetitions)) {
		t.Error("the same seed gives another order")
	}
	if slices.Equal(order, experiment.Order(2, cells, repetitions)) {
		t.Error("another seed gives the same order")
	}
}

func TestHopMapOfNoWay(t *testing.T) {
	s := read(t, "testdata/quickstart.yaml").Scenarios[1]
	if got := s.HopMap([]topology.Ref{"c1/head", "c1/head"}).String(); got != "c1/head" {
		t.Errorf("client and service on one node: %q", got)
	}
	if got := s.HopMap(nil).String(); got != "" {
		t.Errorf("no path: %q", got)
	}
}

func TestEstimate(t *testing.T) {
	e := read(t, "testdata/quickstart.yaml")
	base := e.Cells()[0]
	base.Scenario = experiment.Scenario{Links: []experiment.Link{{
		Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Delay: quantity.Duration(10 * time.Millisecond), Rate: 8e6},
	}}}
	base.Iterations, base.Warmup, base.Size = 90, 10, 1000
	// rest is what a repetition takes besides its requests.
	rest := func(c experiment.Cell) time.Duration {
		c.Iterations, c.Warmup = 0, 0
		return e.Estimate(c)
	}
	for _, c := range []struct {
		name   string
		change func(*experiment.Cell)
		want   time.Duration // of one request
	}{
		{"kept: a round trip and the body there and back", func(*experiment.Cell) {}, 22 * time.Millisecond},
		{"new: two round trips", func(c *experiment.Cell) { c.Connection = experiment.ConnectionNew }, 42 * time.Millisecond},
		{"recv: the body there", func(c *experiment.Cell) { c.Workload = "payload-recv" }, 21 * time.Millisecond},
		{"static: 1000 bytes back", func(c *experiment.Cell) { c.Workload, c.Size = "static-reply", 0 }, 21 * time.Millisecond},
		{"four threads share the rate", func(c *experiment.Cell) { c.Threads = 4 }, 28 * time.Millisecond},
		{"sleep and think", func(c *experiment.Cell) {
			c.Workload, c.Size, c.Time, c.Think = "sleep", 0, quantity.Duration(time.Second), quantity.Duration(time.Second)
		}, 2010 * time.Millisecond}, // one pause less than there are requests
		{"one way", func(c *experiment.Cell) {
			c.Scenario.Links = []experiment.Link{{From: "c2", To: "c1", Impairment: base.Scenario.Links[0].Impairment}}
		}, 11 * time.Millisecond},
	} {
		cell := base
		c.change(&cell)
		if got := (e.Estimate(cell) - rest(cell)) / 100; (got - c.want).Abs() > time.Microsecond {
			t.Errorf("%s: %v a request, want %v", c.name, got, c.want)
		}
	}
	// By way of another node, over two links of which the second is the slower.
	base.Scenario.Links = append(base.Scenario.Links, experiment.Link{
		Between: []topology.Ref{"c1/head", "c1/worker"}, Impairment: impair.Impairment{Delay: quantity.Duration(5 * time.Millisecond), Rate: 4e6},
	})
	if got := (e.Estimate(base, "c2/worker", "c1/head", "c1/worker") - rest(base)) / 100; (got - 34*time.Millisecond).Abs() > time.Microsecond {
		t.Errorf("over two links: %v a request, want 34ms", got)
	}
	base.Size, base.Iterations, base.Threads = 1<<30, 10_000_000, 1024
	base.Scenario.Links[0].Rate = 1
	if got := e.Estimate(base); got != 1<<63-1 {
		t.Errorf("longer than 290 years: %v", got)
	}
}

// A proof takes the time of its packets: 24 of them 0.4 ms apart, or 96 where there
// is jitter, in all directions at once; three bursts one direction after the other;
// twice, before and after the load.
func TestEstimateHasTheProofs(t *testing.T) {
	e := read(t, "testdata/quickstart.yaml")
	const ms = quantity.Duration(time.Millisecond)
	between := func(does impair.Impairment) []experiment.Link {
		return []experiment.Link{{Between: []topology.Ref{"c1", "c2"}, Impairment: does}}
	}
	none := e.Estimate(experiment.Cell{})
	for _, c := range []struct {
		name     string
		scenario experiment.Scenario
		want     time.Duration
	}{
		{"no link", experiment.Scenario{}, 0},
		{"a link that does nothing", experiment.Scenario{Links: between(impair.Impairment{})}, 0},
		{"delay", experiment.Scenario{Links: between(impair.Impairment{Delay: 10 * ms})}, 2 * 20200 * time.Microsecond},
		{"delay and loss", experiment.Scenario{Links: between(impair.Impairment{Delay: 10 * ms, Loss: 0.01})}, 2 * 23200 * time.Microsecond},
		{"one direction", experiment.Scenario{
			Links: []experiment.Link{{From: "c1", To: "c2", Impairment: impair.Impairment{Delay: 10 * ms}}},
		}, 2 * 20200 * time.Microsecond},
		{"jitter", experiment.Scenario{Links: between(impair.Impairment{Delay: 10 * ms, Jitter: 5 * ms})}, 2 * (95*500 + 1000 + 15000) * time.Microsecond},
		// A burst is of 50 frames, which fill half of the queue, and begins 1.1 times
		// their time after the one before.
		{"rate", experiment.Scenario{Links: between(impair.Impairment{Rate: 1e9})}, 2 * (10200*time.Microsecond + 2*3*666160)},
		{"a link that is cut at the end", experiment.Scenario{
			Links:    between(impair.Impairment{Delay: 10 * ms}),
			Timeline: []experiment.Event{{At: ms, Down: true, Link: experiment.Link{Between: []topology.Ref{"c1", "c2"}}}},
		}, (20200 + 13200) * time.Microsecond},
		{"a trace", experiment.Scenario{Links: between(impair.Impairment{Trace: "lte"})}, 0},
	} {
		if got := e.Estimate(experiment.Cell{Scenario: c.scenario}) - none; (got - c.want).Abs() > time.Microsecond {
			t.Errorf("%s: the proofs take %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCoreBudget(t *testing.T) {
	cells := read(t, "testdata/quickstart.yaml").Cells()
	plain, linked := cells[0], cells[4]
	if plain.Scenario.Name != "lcl" || linked.Scenario.Name != "edg10" {
		t.Fatalf("cells are %s and %s", plain, linked)
	}
	gateways := experiment.Need{Processes: 2}
	overlay := experiment.Need{BusyLoops: 1, Processes: 1}
	for _, c := range []struct {
		name   string
		cell   experiment.Cell
		system experiment.Need
		want   experiment.Need
		least  int // cores
	}{
		{"no links", plain, experiment.Need{}, experiment.Need{BusyLoops: 0, Processes: 2}, 1},
		{"gateways", plain, gateways, experiment.Need{BusyLoops: 0, Processes: 4}, 1},
		{"links", linked, gateways, experiment.Need{BusyLoops: 1, Processes: 5}, 2},
		{"links and a busy system", linked, overlay, experiment.Need{BusyLoops: 2, Processes: 4}, 3},
	} {
		b := c.cell.CoreBudget(c.system)
		if got := b.Total(); got != c.want {
			t.Errorf("%s: needs %+v, want %+v", c.name, got, c.want)
		}
		if err := b.NotRunnable(c.least); err != nil {
			t.Errorf("%s: on %d cores: %v", c.name, c.least, err)
		}
		if err := b.NotRunnable(c.least - 1); c.least > 1 && !errors.Is(err, experiment.ErrNotRunnable) {
			t.Errorf("%s: runs on %d cores: %v", c.name, c.least-1, err)
		}
	}
	err := linked.CoreBudget(overlay).NotRunnable(2)
	want := "not runnable here: 2 busy loops (1 of the link emulator, 1 of the system) and the rest of the lab need 3 cores, this host has 2"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// A rate is a level of the matrix, and its cells have names and lengths of their own.
func TestOpenLoopCells(t *testing.T) {
	e := &experiment.Experiment{
		Scenarios: []experiment.Scenario{{Name: "plain"}}, Systems: []string{"direct"}, Workloads: []experiment.Workload{{Name: "hello-world"}},
		Load: experiment.Load{Rate: experiment.List[quantity.Frequency]{200, 0.5}, Duration: quantity.Duration(10 * time.Second)},
	}
	cells := e.Cells()
	if len(cells) != 2 || cells[0].ID() == cells[1].ID() {
		t.Fatalf("cells %v, want two that differ", cells)
	}
	for i, want := range []string{"plain/direct/hello-world 1 thread 200/s constant kept", "plain/direct/hello-world 1 thread 0.5/s constant kept"} {
		if got := cells[i].String(); got != want {
			t.Errorf("cell %d is %q, want %q", i, got, want)
		}
		if got, want := e.Estimate(cells[i]), 10*time.Second; got < want || got > want+time.Second {
			t.Errorf("cell %d takes %s, want %s and its set-up", i, got, want)
		}
	}
}

// A protocol is a factor like any other, but that http/1.1 leaves no trace in a
// cell: those that were measured before there were others keep their names.
func TestProtocolCells(t *testing.T) {
	e := &experiment.Experiment{
		Scenarios: []experiment.Scenario{{Name: "plain"}}, Systems: []string{"direct"},
		Workloads: []experiment.Workload{{Name: "payload-echo", Size: experiment.List[quantity.Size]{1000}}},
		Load:      experiment.Load{Iterations: 10},
	}
	before := e.Cells()
	e.Load.Protocol = experiment.Protocols()
	cells := e.Cells()
	for i, want := range []struct {
		label   string
		timeout time.Duration
	}{
		{"plain/direct/payload-echo 1KB 1 thread kept", 30 * time.Second},
		{"plain/direct/payload-echo 1KB 1 thread http/2 kept", 30 * time.Second},
		{"plain/direct/payload-echo 1KB 1 thread tcp kept", 30 * time.Second},
		{"plain/direct/payload-echo 1KB 1 thread udp kept", time.Second},
	} {
		if got := cells[i]; got.String() != want.label || got.Timeout.Std() != want.timeout {
			t.Errorf("cell %d is %q with a timeout of %s, want %q with %s", i, got, got.Timeout, want.label, want.timeout)
		}
	}
	if len(cells) != 4 || cells[0].ID() != before[0].ID() || cells[0].ID() == cells[1].ID() {
		t.Errorf("%d cells; the first is %s, before %s", len(cells), cells[0].ID(), before[0].ID())
	}
	e.Load.Timeout = quantity.Duration(5 * time.Second)
	if got := e.Cells()[3].Timeout.Std(); got != 5*time.Second {
		t.Errorf("udp has a timeout of %s, the file says 5s", got)
	}
	udp := e.Cells()[3]
	udp.Connection = experiment.ConnectionNew
	if got, want := e.Estimate(udp), e.Estimate(e.Cells()[3]); got != want {
		t.Errorf("a new socket takes %s, want no dial beside %s", got, want)
	}
}
