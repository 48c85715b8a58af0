package run_test

import (
	"testing"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/run"
)

// What a file says of nodes, clusters are given in their own units.
func TestExtras(t *testing.T) {
	e := &experiment.Experiment{}
	if got := run.Extras(e); got.Metrics || got.Registry || len(got.Capacity) != 0 {
		t.Errorf("of nothing come %+v", got)
	}
	e.Kubernetes = &experiment.Kubernetes{Metrics: true, Registry: true, Nodes: []experiment.NodeCapacity{{Node: "c1/head", CPU: 0.29, Memory: 1 << 30}}}
	got := run.Extras(e)
	if !got.Metrics || !got.Registry || got.Capacity["c1/head"] != (cluster.Capacity{MilliCPU: 290, Memory: 1 << 30}) {
		t.Errorf("got %+v", got)
	}
	// An autoscaler asks metrics-server.
	e.Kubernetes = &experiment.Kubernetes{Autoscale: &experiment.Autoscale{Max: 2, CPU: 50}}
	if got := run.Extras(e); !got.Metrics {
		t.Errorf("an autoscaler comes with %+v", got)
	}
}
