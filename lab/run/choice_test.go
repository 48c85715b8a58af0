package run_test

import (
	"slices"
	"testing"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/run"
)

// Whatever a file may choose of its clusters, clusters have.
func TestChoice(t *testing.T) {
	if !slices.Equal(experiment.CNIs(), cluster.CNIs()) || !slices.Equal(experiment.Proxies(), cluster.Proxies()) {
		t.Errorf("files name %v and %v, clusters have %v and %v", experiment.CNIs(), experiment.Proxies(), cluster.CNIs(), cluster.Proxies())
	}
	e := &experiment.Experiment{}
	if got := run.Choice(e); got != (cluster.Choice{}) {
		t.Errorf("nothing is chosen as %+v", got)
	}
	e.Kubernetes = &experiment.Kubernetes{CNI: experiment.CNIBridge, Proxy: experiment.ProxyIPTables}
	for text, into := range map[string]*experiment.CIDR{"10.244.0.0/16": &e.Kubernetes.Pods, "10.96.0.0/16": &e.Kubernetes.Services} {
		if err := into.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	got := run.Choice(e)
	if got.CNI != "bridge" || got.Proxy != "iptables" || got.Pods.String() != "10.244.0.0/16" || got.Services.String() != "10.96.0.0/16" {
		t.Errorf("chosen are %+v", got)
	}
}
