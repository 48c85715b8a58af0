package topology

import "net/netip"

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

// Networks are those that the nodes have addresses in, each once.
func (t *Topology) Networks() []netip.Prefix {
	var all []netip.Prefix
	seen := map[netip.Prefix]bool{}
	for _, n := range t.Nodes() {
		for _, p := range []netip.Prefix{n.Data.Masked(), n.Mgmt.Masked()} {
			if !seen[p] {
				seen[p], all = true, append(all, p)
			}
		}
	}
	return all
}
