package run

import (
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

// Extras are what an experiment's clusters have beside what every one has.
func Extras(e *experiment.Experiment) cluster.Extras {
	k := e.Kubernetes
	if k == nil {
		return cluster.Extras{}
	}
	extras := cluster.Extras{Metrics: k.Metrics || k.Autoscale != nil, Registry: k.Registry, Capacity: map[topology.Ref]cluster.Capacity{}}
	for _, n := range k.Nodes {
		extras.Capacity[n.Node] = cluster.Capacity{MilliCPU: n.MilliCPU(), Memory: int64(n.Memory)}
	}
	return extras
}
