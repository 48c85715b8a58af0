// Package spec says what the Kubernetes clusters of a lab are to be: by which CNI and
// proxy pods are reached, in which ranges addresses lie, and what nodes have. It is
// pure: lab/cluster/preflight says whether a machine can carry it, lab/cluster makes it
// real. Start at Spec.
package spec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"skerry.dev/skerry/lab/topology"
)

// Spec is what can be chosen of clusters; all of a lab have the same. Its zero value is
// the default.
type Spec struct {
	// CNI gives pods their addresses and ways: one of CNIs; ptp where it is empty.
	CNI string
	// Proxy is how kube-proxy leads to the pods of Services: one of Proxies; nftables
	// where it is empty.
	Proxy string
	// Pods and Services are the ranges of addresses of every cluster alike. Of one that
	// is not valid, each cluster has its own.
	Pods, Services netip.Prefix
	// Capacity of the nodes that have less than the machine, by their names.
	Capacity map[topology.Ref]Capacity
	// Metrics has metrics-server run, which kubectl top and autoscalers ask.
	Metrics bool
	// Registry has the lab keep images that this machine pushes and that nodes pull.
	Registry bool
}

// Names of a CNI.
const (
	// CNIPtp gives each pod a link to its node, which routes between them.
	CNIPtp = "ptp"
	// CNIBridge joins the pods of a node by a bridge; the nodes route.
	CNIBridge = "bridge"
	// CNIFlannel is a bridge in each node, and tunnels between them.
	CNIFlannel = "flannel"
)

// Names of a proxy: modes of kube-proxy, or that there is none.
const (
	ProxyNFTables = "nftables"
	ProxyIPTables = "iptables"
	ProxyIPVS     = "ipvs"
	ProxyNone     = "none"
)

// CNIs lists the names that a Spec may have.
func CNIs() []string { return []string{CNIPtp, CNIBridge, CNIFlannel} }

// Proxies lists the names that a Spec may have.
func Proxies() []string { return []string{ProxyNFTables, ProxyIPTables, ProxyIPVS, ProxyNone} }

// MetricsServer is a program of kube.Catalogue.
const MetricsServer = "metrics-server"

var errNode = errors.New("there is no such node")

// Complete has the defaults in place of what is empty, and refuses names that there
// are not.
func (s Spec) Complete(t *topology.Topology) (Spec, error) {
	s.CNI, s.Proxy = cmp.Or(s.CNI, CNIPtp), cmp.Or(s.Proxy, ProxyNFTables)
	switch {
	case !slices.Contains(CNIs(), s.CNI):
		return s, fmt.Errorf("there is no CNI %q", s.CNI)
	case !slices.Contains(Proxies(), s.Proxy):
		return s, fmt.Errorf("there is no proxy %q", s.Proxy)
	}
	for _, node := range slices.Sorted(maps.Keys(s.Capacity)) {
		if _, err := t.Node(node); err != nil {
			return s, fmt.Errorf("capacity of node %s: %w", node, errNode)
		}
		if err := s.Capacity[node].check(); err != nil {
			return s, fmt.Errorf("capacity of node %s: %w", node, err)
		}
	}
	return s, nil
}

// programs that belong to one CNI alone.
var ofCNI = map[string][]string{
	"bridge":  {CNIBridge, CNIFlannel},
	"flannel": {CNIFlannel},
}

// Needs says whether clusters start a program of kube.Catalogue.
func (s Spec) Needs(program string) bool {
	if program == MetricsServer {
		return s.Metrics
	}
	of, some := ofCNI[program]
	return !some || slices.Contains(of, s.CNI)
}

// Bridged says that the pods of a node share a bridge.
func (s Spec) Bridged() bool { return s.CNI == CNIBridge || s.CNI == CNIFlannel }

// Tunnels says that what goes from node to node does so by routes that are not the
// lab's.
func (s Spec) Tunnels() bool { return s.CNI == CNIFlannel }

// Plugins of CNI that containerd calls.
func (s Spec) Plugins() []string {
	main := CNIPtp
	if s.Bridged() {
		main = CNIBridge
	}
	return []string{main, "loopback", "host-local", "portmap", "tuning"}
}

// MTU of pods' interfaces, 0 for that of their node's: a tunnel takes its headers of
// each packet.
func (s Spec) MTU() int {
	const ethernet, vxlan = 1500, 50
	if s.Tunnels() {
		return ethernet - vxlan
	}
	return 0
}
