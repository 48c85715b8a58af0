package spec

import (
	"encoding/binary"
	"net/netip"

	"skerry.dev/skerry/lab/topology"
)

// Network is the addresses that a cluster gives to pods and Services. Those of nodes
// are topology's.
type Network struct {
	Pods, Services netip.Prefix
	// Pods6 and Services6 are those of IPv6, always the cluster's own; not valid where
	// the lab is not dual.
	Pods6, Services6 netip.Prefix
}

// Hosts in the Services' range that are given away at the start.
const apiHost, dnsHost = 1, 10

// Network of cluster i, from 0: what is chosen for all, or of topology's ranges its own.
func (s Spec) Network(t *topology.Topology, cluster int) Network {
	n := Network{Pods: topology.PodRange(cluster), Services: topology.ServiceRange(cluster)}
	if t.Dual {
		n.Pods6, n.Services6 = topology.PodRange6(cluster), topology.ServiceRange6(cluster)
	}
	if s.Pods.IsValid() {
		n.Pods = s.Pods
	}
	if s.Services.IsValid() {
		n.Services = s.Services
	}
	return n
}

// PodsOf node j, from 0: the (j+1)-th /24 behind the first.
func (n Network) PodsOf(node int) netip.Prefix {
	const length, hostBits = 24, 8
	address := n.Pods.Addr().As4()
	number := binary.BigEndian.Uint32(address[:]) + uint32(node+1)<<hostBits
	binary.BigEndian.PutUint32(address[:], number)
	return netip.PrefixFrom(netip.AddrFrom4(address), length)
}

// API is the address of the Service "kubernetes".
func (n Network) API() netip.Addr { return n.service(apiHost) }

// DNS is the address of CoreDNS.
func (n Network) DNS() netip.Addr { return n.service(dnsHost) }

func (n Network) service(host byte) netip.Addr {
	address := n.Services.Addr().As4()
	address[3] = host
	return netip.AddrFrom4(address)
}
