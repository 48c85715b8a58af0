package cluster

import (
	"net/netip"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// network is the addresses that a cluster gives to pods and Services. Cluster i
// (from 1) has pods in 10.(100+i).0.0/16, of its node j in 10.(100+i).j.0/24, and
// Services in 10.(200+i).0.0/16; the nodes' own are topology's.
type network struct{ pods, services netip.Prefix }

const (
	podsBase, servicesBase = 100, 200
	// Hosts in the Services' range that are given away at the start.
	apiHost, dnsHost = 1, 10
)

// networkOf is that of cluster i, from 0.
func networkOf(cluster int) network {
	site := byte(cluster + 1)
	return network{
		pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, podsBase + site, 0, 0}), 16),
		services: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, servicesBase + site, 0, 0}), 16),
	}
}

// podsOf node j, from 0.
func (n network) podsOf(node int) netip.Prefix {
	address := n.pods.Addr().As4()
	address[2] = byte(node + 1)
	return netip.PrefixFrom(netip.AddrFrom4(address), 24)
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
	pods netip.Prefix
}

// podGroup is the control group of the lab that the node's pods are below.
func (m member) podGroup() string { return host.PodGroup(m.Node) }

// process is the name in the lab of a program of the node.
func (m member) process(program string) string { return program + "-" + m.Host() }

// members of cluster i, from 0, in their order: the first has the control plane.
func members(t *topology.Topology, cluster int) []member {
	var all []member
	for _, n := range t.Nodes() {
		if n.Cluster == t.Clusters[cluster].Name {
			all = append(all, member{n, networkOf(cluster).podsOf(len(all))})
		}
	}
	return all
}
