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
	// pods that it has; pods6 are not valid where the lab is not dual.
	pods, pods6 netip.Prefix
}

// podRanges are those of its pods, as Kubernetes lists them.
func (m member) podRanges() []string {
	all := []string{m.pods.String()}
	if m.pods6.IsValid() {
		all = append(all, m.pods6.String())
	}
	return all
}

// hosts are the names and addresses by which the node is called.
func (m member) hosts() []string {
	all := []string{m.Host(), m.Data.Addr().String(), m.Mgmt.Addr().String()}
	if m.Data6.IsValid() {
		all = append(all, m.Data6.Addr().String())
	}
	return all
}

// podGroup is the control group of the lab that the node's pods are below.
func (m member) podGroup() string { return host.PodGroup(m.Node) }

// process is the name in the lab of a program of the node.
func (m member) process(program string) string { return program + "-" + m.Host() }

// membersOf cluster i, from 0, in their order: the first has the control plane.
func membersOf(t *topology.Topology, cluster int, network spec.Network) []member {
	var all []member
	for _, n := range t.Nodes() {
		if n.Cluster != t.Clusters[cluster].Name {
			continue
		}
		m := member{Node: n, pods: network.PodsOf(len(all))}
		if t.Dual {
			m.pods6 = topology.NodePodRange6(cluster, len(all))
		}
		all = append(all, m)
	}
	return all
}

// pair is two ranges, or two addresses, as Kubernetes writes them: that of IPv6 follows
// where there is one.
func pair[T interface {
	IsValid() bool
	String() string
}](four, six T) string {
	if !six.IsValid() {
		return four.String()
	}
	return four.String() + "," + six.String()
}
