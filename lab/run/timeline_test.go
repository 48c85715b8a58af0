package run

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
)

const second = quantity.Duration(time.Second)

// The steps of a timeline are in the order of their times. At one time faults end, then
// links change, then other faults begin, so that a node can fail twice in a row.
func TestSteps(t *testing.T) {
	phases := []experiment.Phase{{}, {At: 2 * time.Second}, {At: 5 * time.Second}}
	faults := []experiment.Event{
		{Fault: experiment.Fault{Kill: "c1/head"}},
		{At: 2 * second, Fault: experiment.Fault{Freeze: "c1/worker", For: 3 * second}},
		{At: 5 * second, Fault: experiment.Fault{Reboot: "c1/worker"}},
		{At: 5 * second, Fault: experiment.Fault{Evict: "c2/default/service"}},
		{At: 6 * second, Fault: experiment.Fault{StopPlane: "c2", For: second}},
	}
	var got []string
	for _, s := range steps(phases, faults) {
		text := fmt.Sprintf("%s: phase %d", s.at, s.index)
		switch s.act {
		case faultBegins:
			text = fmt.Sprintf("%s: %s", s.at, faults[s.index].Words())
		case faultEnds:
			text = fmt.Sprintf("%s: undo %s", s.at, faults[s.index].Words())
		}
		got = append(got, text)
	}
	want := []string{
		"0s: kill c1/head",
		"2s: phase 1", "2s: freeze c1/worker",
		"5s: undo freeze c1/worker", "5s: phase 2", "5s: reboot c1/worker", "5s: evict c2/default/service",
		"6s: stop-plane c2", "7s: undo stop-plane c2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// followed is a lab in which a process of c1/head sleeps, with a follower of faults
// there under way, the context of its load and what ends that.
func followed(t *testing.T, faults ...experiment.Event) (lab *host.Lab, f *follower, load context.Context, interrupt context.CancelFunc) {
	t.Helper()
	o, _ := options(t, func(*Options) {})
	lab, err := host.Up(t.Context(), o.Experiment.Topology, host.Options{
		Name: o.LabName + strings.ToLower(strings.ReplaceAll(t.Name(), "Test", "-")), Agent: o.Agent, Backend: o.Backend, Bound: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(); err != nil {
			t.Error(err)
		}
	})
	if _, err := lab.Start(host.Command{Node: "c1/head", Name: "sleeper", Args: []string{"/bin/sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	scenario := o.Experiment.Scenarios[0]
	scenario.Timeline = faults
	a := &attempt{Turn: Turn{Cell: experiment.Cell{Scenario: scenario}}, seen: &evidence{phases: scenario.Phases()}}
	ctx, interrupt := context.WithCancel(context.WithoutCancel(t.Context()))
	f, load = (&runner{Options: o, lab: lab}).follow(ctx, a)
	return lab, f, load, interrupt
}

// stateOf the sleeper: S while it sleeps, T while it is frozen.
func stateOf(t *testing.T, lab *host.Lab) string {
	t.Helper()
	running, err := lab.Running()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(running, func(r host.Running) bool { return r.Name == "sleeper" })
	if i < 0 {
		return "gone"
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", running[i].Pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest[:1]
}

// eventually waits until something that another process sees has come about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 500 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 5 s", what)
}

// A run that is interrupted in the middle of faults undoes them, and says when.
func TestFaultsEndWithTheLoad(t *testing.T) {
	const ms = quantity.Duration(time.Millisecond)
	lab, f, load, interrupt := followed(t,
		experiment.Event{At: 20 * ms, Fault: experiment.Fault{Freeze: "c1/head:sleeper"}},
		experiment.Event{At: 30 * ms, Fault: experiment.Fault{Kill: "c2/head", For: 3600 * second}},
		experiment.Event{At: 3600 * second, Fault: experiment.Fault{Freeze: "c2/head"}},
	)
	other, err := host.Open(lab.Name)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "two faults in force", func() bool {
		other, err = host.Open(lab.Name)
		return err == nil && len(other.Faults) == 2
	})
	eventually(t, "the sleeper frozen", func() bool { return stateOf(t, other) == "T" })
	if load.Err() != nil {
		t.Error("the load was ended")
	}
	interrupt()
	if err := f.finish(load); err != nil {
		t.Error(err)
	}
	if other, err = host.Open(lab.Name); err != nil || len(other.Faults) > 0 {
		t.Errorf("in force are %+v, %v", other.Faults, err)
	}
	eventually(t, "the sleeper goes on", func() bool { return stateOf(t, other) == "S" })
	conn, err := lab.Dial(t.Context(), "c1/head", "10.2.0.1:1")
	if conn != nil || err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the node that was killed answers %v, %v", conn, err)
	}
	if len(f.made) != 2 || f.made[0].Fault != "freeze c1/head:sleeper" || f.made[1].Fault != "kill c2/head" {
		t.Fatalf("happened are %+v", f.made)
	}
	for _, c := range f.made {
		if c.LateNs < 0 || c.UndoneNs < c.AtNs+c.LateNs {
			t.Errorf("%+v", c)
		}
	}
	if got := f.missed(Turn{}); !strings.HasSuffix(got, "the load ended before the event at 1h0m0s") {
		t.Errorf("missed is %q", got)
	}
}

// Where a fault cannot begin, the load ends at once, those in force are undone, and what
// is wrong is said.
func TestBrokenTimeline(t *testing.T) {
	lab, f, load, interrupt := followed(t,
		experiment.Event{Fault: experiment.Fault{Freeze: "c1/head:sleeper"}},
		experiment.Event{At: 1, Fault: experiment.Fault{Kill: "c2/head:nobody"}},
	)
	defer interrupt()
	select {
	case <-load.Done():
	case <-time.After(10 * time.Second):
		t.Error("the load goes on")
	}
	const want = "timeline at 1ns: kill: c2/head:nobody: no such process runs"
	if err := f.finish(load); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	eventually(t, "the sleeper goes on", func() bool { return stateOf(t, lab) == "S" })
	if len(lab.Faults) > 0 {
		t.Errorf("in force are %+v", lab.Faults)
	}
}
