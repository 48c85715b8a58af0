package experiment_test

import (
	"testing"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
)

// A talker speaks its own protocol, whatever that of the load is, and nothing comes back.
func TestOneWayCells(t *testing.T) {
	e := &experiment.Experiment{
		Scenarios: []experiment.Scenario{{Name: "near"}}, Systems: []string{"bare-metal"},
		Workloads: []experiment.Workload{{Name: "listener", Size: experiment.List[quantity.Size]{64}}},
		Load:      experiment.Load{Rate: experiment.List[quantity.Frequency]{8000}, Duration: quantity.Duration(10e9), Threads: experiment.List[int]{8}, Protocol: []string{"tcp"}},
	}
	c := e.Cells()[0]
	if there, back := c.Bodies(); !c.OneWay() || there != 64 || back != 0 || c.Dial() != 0 {
		t.Errorf("%s: %s there and %s back, %d round trips before", c, there, back, c.Dial())
	}
	if want := "near/bare-metal/listener 64B 8 threads 8000/s constant oneway kept"; c.String() != want {
		t.Errorf("it is %q, want %q", c, want)
	}
	if name, ok := experiment.Broker(experiment.ProtocolOneWay); ok {
		t.Errorf("%s is taken for a broker", name)
	}
}
