package topology_test

import (
	"fmt"
	"net/netip"
	"testing"

	"skerry.dev/skerry/lab/topology"
)

// No two ranges of the largest lab that there can be share an address, nor does one
// with the nodes' networks.
func TestRanges(t *testing.T) {
	const clustersMax = 32
	lab := &topology.Topology{Dual: true}
	var all []netip.Prefix
	for i := range clustersMax {
		lab.Clusters = append(lab.Clusters, topology.Cluster{Name: fmt.Sprintf("c%d", i+1), Nodes: []string{"a", "b"}})
		all = append(all, topology.PodRange(i), topology.ServiceRange(i), topology.PodRange6(i), topology.ServiceRange6(i))
	}
	networks := lab.Networks()
	if len(networks) != 2*clustersMax+1 { // two of data each, and mgmt
		t.Errorf("the nodes are in %v", networks)
	}
	all = append(all, networks...)
	for i, one := range all {
		for _, other := range all[:i] {
			if one.Overlaps(other) {
				t.Errorf("%s and %s overlap", one, other)
			}
		}
	}
	if got := topology.PodRange(0).String() + " " + topology.ServiceRange(1).String(); got != "10.101.0.0/16 10.202.0.0/16" {
		t.Errorf("got %s", got)
	}
	if got := topology.PodRange6(0).String() + " " + topology.ServiceRange6(31).String(); got != "fd73:6b65:7279:8100::/56 fd73:6b65:7279:120::/112" {
		t.Errorf("of IPv6: got %s", got)
	}
}

// Every node of the largest cluster has pods of IPv6 in a range of its own, within its
// cluster's and in no other's.
func TestNodePodRanges(t *testing.T) {
	const clustersMax, nodesMax = 32, 200
	seen := map[netip.Prefix]bool{}
	for i := range clustersMax {
		for j := range nodesMax {
			p := topology.NodePodRange6(i, j)
			if p != p.Masked() || seen[p] || !topology.PodRange6(i).Overlaps(p) || p.Bits() <= topology.PodRange6(i).Bits() {
				t.Fatalf("node %d of cluster %d has %s", j, i, p)
			}
			seen[p] = true
		}
	}
	if got := topology.NodePodRange6(1, 2).String(); got != "fd73:6b65:7279:8203::/64" {
		t.Errorf("node 3 of cluster 2 has %s", got)
	}
}
