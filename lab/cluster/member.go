package cluster

import (
	"net/netip"

	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// member is a node of a cluster.
type member struct {
	topology.Node
	pods netip.Prefix
}

// podGroup is the control group of the lab that the node's pods are below.
func (m member) podGroup() string { return host.PodGroup(m.Node) }

// process is the name in the lab of a program of the node.
func (m member) process(program string) string { return program + "-" + m.Host() }

// membersOf cluster i, from 0, in their order: the first has the control plane.
func membersOf(t *topology.Topology, cluster int, network spec.Network) []member {
	var all []member
	for _, n := range t.Nodes() {
		if n.Cluster == t.Clusters[cluster].Name {
			all = append(all, member{n, network.PodsOf(len(all))})
		}
	}
	return all
}
