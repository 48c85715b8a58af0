package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
)

// ClusterPrograms are the programs of the clusters of an experiment, if it has any. It
// refuses what this machine cannot carry before it builds what is not here.
func (s File) ClusterPrograms(ctx context.Context, b gobuild.Builder, now time.Time) (map[string]string, error) {
	if s.Substrate != experiment.SubstrateKubernetes {
		return nil, nil
	}
	clusters := s.Kubernetes.Spec()
	if err := preflight.Refuse(&s.Topology, clusters, now); err != nil {
		return nil, err
	}
	return b.Paths(ctx, clusters.Needs)
}

// Suited refuses systems for which the file's clusters have not what they need. Such
// clusters may be for work by hand.
func (s File) Suited() error { return errors.Join(s.proxied(), s.metered()) }

// metered refuses systems that ask metrics-server where none is to run.
func (s File) metered() error {
	if s.Kubernetes.Spec().Metrics {
		return nil
	}
	for _, name := range s.Systems {
		if s.Stacks[name].AsksMetrics() {
			return console.Usage(fmt.Errorf("system %s asks metrics-server, which does not run", name), "write metrics: true below kubernetes")
		}
	}
	return nil
}

// proxied refuses systems for which nobody takes requests: on Kubernetes a client calls
// a NodePort.
func (s File) proxied() error {
	if s.Kubernetes == nil || s.Kubernetes.Proxy != spec.ProxyNone {
		return nil
	}
	for _, name := range s.Systems {
		if !slices.ContainsFunc(s.Stacks[name].Plugins, func(p *system.Plugin) bool { return p.Kind == system.KindBalancer }) {
			return console.Usage(fmt.Errorf("nobody takes requests for system %s: kubernetes.proxy is %s", name, spec.ProxyNone),
				"leave proxy out, or put a system of the kind "+system.KindBalancer+" into the stack; 'skerry up' takes such clusters up to work in by hand")
		}
	}
	return nil
}
