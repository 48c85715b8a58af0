package topology

import (
	"encoding/binary"
	"net/netip"
)

// Pods and Services of a cluster of Kubernetes have addresses beside those of its
// nodes: cluster i (from 1) has pods in 10.(100+i).0.0/16 and Services in
// 10.(200+i).0.0/16, so that no two clusters of a lab share one.
const podsBase, servicesBase = 100, 200

// PodRange is where the pods of cluster i (from 0) have their addresses.
func PodRange(i int) netip.Prefix { return rangeAt(podsBase + i + 1) }

// ServiceRange is where the Services of cluster i (from 0) have their addresses.
func ServiceRange(i int) netip.Prefix { return rangeAt(servicesBase + i + 1) }

func rangeAt(site int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(site), 0, 0}), 16)
}

// Addresses of IPv6 are of one /48 for local use (RFC 4193), by the 16 bits that follow
// it: cluster i (from 1) has its data network in i, its Services in 0x100 + i, and its
// pods in the 256 from 0x8000 + 256 i on.
const (
	servicesBase6, podsBase6 = 0x100, 0x8000
	nodeBits6                = 8
	// routerHost6 is where the WAN's router is in a data network.
	routerHost6 = 0xffff
)

// global is the number of that /48 behind fd00::/8, "skery" in ASCII. RFC 4193 has a
// site draw its own; these addresses never leave a lab, and are the same in each.
var global = [5]byte{0x73, 0x6b, 0x65, 0x72, 0x79}

// PodRange6 is where the pods of cluster i (from 0) have their addresses of IPv6, a /64
// for each node.
func PodRange6(i int) netip.Prefix {
	const length = 56
	return netip.PrefixFrom(addr6(podsBase6+uint16(i+1)<<nodeBits6, 0), length)
}

// NodePodRange6 is where those of its node j (from 0) have theirs.
func NodePodRange6(i, j int) netip.Prefix {
	const length = 64
	return netip.PrefixFrom(addr6(podsBase6+uint16(i+1)<<nodeBits6+uint16(j+1), 0), length)
}

// ServiceRange6 is where the Services of cluster i (from 0) have theirs: an API server
// takes no more than 20 bits.
func ServiceRange6(i int) netip.Prefix {
	const length = 112
	return netip.PrefixFrom(addr6(servicesBase6+uint16(i+1), 0), length)
}

// dataAt6 is a host in the data network of cluster i (from 0).
func dataAt6(i int, host uint16) netip.Prefix {
	const length = 64
	return netip.PrefixFrom(addr6(uint16(i+1), host), length)
}

func addr6(subnet, host uint16) netip.Addr {
	const prefix, subnetAt, hostAt = 0xfd, 6, 14
	a := [16]byte{prefix}
	copy(a[1:], global[:])
	binary.BigEndian.PutUint16(a[subnetAt:], subnet)
	binary.BigEndian.PutUint16(a[hostAt:], host)
	return netip.AddrFrom16(a)
}

// Networks are those that the nodes have addresses in, each once.
func (t *Topology) Networks() []netip.Prefix {
	var all []netip.Prefix
	seen := map[netip.Prefix]bool{}
	for _, n := range t.Nodes() {
		for _, p := range []netip.Prefix{n.Data.Masked(), n.Mgmt.Masked(), n.Data6.Masked()} {
			if p.IsValid() && !seen[p] {
				seen[p], all = true, append(all, p)
			}
		}
	}
	return all
}
