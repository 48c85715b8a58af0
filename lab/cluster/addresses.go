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
type network struct{ pods, services netip.Prefix }

// Hosts in the Services' range that are given away at the start.
const apiHost, dnsHost = 1, 10

// networkOf is that of cluster i, from 0.
func (c Choice) networkOf(cluster int) network {
	n := network{pods: topology.PodRange(cluster), services: topology.ServiceRange(cluster)}
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
func (c Choice) members(t *topology.Topology, cluster int) []member {
	var all []member
	own := c.networkOf(cluster)
	for _, n := range t.Nodes() {
		if n.Cluster == t.Clusters[cluster].Name {
			all = append(all, member{n, own.podsOf(len(all))})
		}
	}
	return all
}
