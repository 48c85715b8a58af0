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
	lab := new(topology.Topology)
	var all []netip.Prefix
	for i := range clustersMax {
		lab.Clusters = append(lab.Clusters, topology.Cluster{Name: fmt.Sprintf("c%d", i+1), Nodes: []string{"a", "b"}})
		all = append(all, topology.PodRange(i), topology.ServiceRange(i))
	}
	networks := lab.Networks()
	if len(networks) != clustersMax+1 { // one of data each, and mgmt
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
}
