package cluster

import (
	"encoding/binary"
	"net/netip"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// network is the addresses that a cluster gives to pods and Services: those that are
// chosen for all clusters, or of topology's ranges its own. Node j (from 1) has pods
// in the j-th /24 behind the first; the nodes' own are topology's.
type network struct {
	pods, services netip.Prefix
	// pods6 and services6 are those of IPv6, always the cluster's own; not valid where
	// the lab is not dual.
	pods6, services6 netip.Prefix
}

// Hosts in the Services' range that are given away at the start.
const apiHost, dnsHost = 1, 10

// networkOf is that of cluster i, from 0.
func (c Choice) networkOf(t *topology.Topology, cluster int) network {
	n := network{pods: topology.PodRange(cluster), services: topology.ServiceRange(cluster)}
	if t.Dual {
		n.pods6, n.services6 = topology.PodRange6(cluster), topology.ServiceRange6(cluster)
	}
	if c.Pods.IsValid() {
		n.pods = c.Pods
	}
	if c.Services.IsValid() {
		n.services = c.Services
	}
	return n
}

// podsOf node j, from 0.
func (n network) podsOf(node int) netip.Prefix {
	const length, hostBits = 24, 8
	address := n.pods.Addr().As4()
	number := binary.BigEndian.Uint32(address[:]) + uint32(node+1)<<hostBits
	binary.BigEndian.PutUint32(address[:], number)
	return netip.PrefixFrom(netip.AddrFrom4(address), length)
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

// api is the address of the Service "kubernetes", dns that of CoreDNS.
func (n network) api() netip.Addr { return n.service(apiHost) }
func (n network) dns() netip.Addr { return n.service(dnsHost) }

func (n network) service(host byte) netip.Addr {
	address := n.services.Addr().As4()
	address[3] = host
	return netip.AddrFrom4(address)
}

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

// members of cluster i, from 0, in their order: the first has the control plane.
func (c Choice) members(t *topology.Topology, cluster int) []member {
	var all []member
	own := c.networkOf(t, cluster)
	for _, n := range t.Nodes() {
		if n.Cluster != t.Clusters[cluster].Name {
			continue
		}
		m := member{Node: n, pods: own.podsOf(len(all))}
		if t.Dual {
			m.pods6 = topology.NodePodRange6(cluster, len(all))
		}
		all = append(all, m)
	}
	return all
}
