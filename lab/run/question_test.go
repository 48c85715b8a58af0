package run

import (
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

// A datagram's answer is waited for over the longest way of all scenarios.
func TestPatience(t *testing.T) {
	e := example()
	e.Scenarios = append(e.Scenarios, experiment.Scenario{Name: "orbit", Links: []experiment.Link{{
		Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Delay: quantity.Duration(300 * time.Millisecond)},
	}}})
	direct, err := system.Load(systems.FS, "direct")
	if err != nil {
		t.Fatal(err)
	}
	r := runner{Options: Options{Experiment: e, Stacks: map[string]*system.Stack{"direct": direct}}}
	if got, want := r.patience(), 1300*time.Millisecond; got != want {
		t.Errorf("%s over a round trip of 600 ms, want %s", got, want)
	}
	r.Experiment.Scenarios = []experiment.Scenario{{Name: "here"}}
	if got := r.patience(); got != datagramPatience {
		t.Errorf("%s without links, want %s", got, datagramPatience)
	}
}
