package run

import (
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
)

// Choice is what an experiment chooses of its clusters.
func Choice(e *experiment.Experiment) cluster.Choice {
	k := e.Kubernetes
	if k == nil {
		return cluster.Choice{}
	}
	return cluster.Choice{CNI: k.CNI, Proxy: k.Proxy, Pods: k.Pods.Prefix, Services: k.Services.Prefix}
}
