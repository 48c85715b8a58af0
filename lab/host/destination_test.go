package host_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// path is what packets from one node to another are to meet.
type path struct {
	from, to topology.Ref
	delay    time.Duration
	// lossy paths lose a part of their packets, which none of the others does.
	lossy bool
}

// destinations impairs three sites in every way that overlaps: nodes of one
// cluster, clusters, nodes in place of their clusters, nodes without what their
// clusters have, and one direction alone.
func destinations() ([]host.Link, []path) {
	lossy := delay(30)
	lossy.Loss = 0.3
	links := both("c1", "c2", delay(12))
	links = append(links, both("c1/one", "c2/one", impair.Impairment{})...)
	links = append(links,
		host.Link{From: "c1/head", To: "c1/one", Does: delay(4)},
		host.Link{From: "c1/head", To: "c1/two", Does: delay(8)},
		host.Link{From: "c1/head", To: "c2/head", Does: delay(20)},
		host.Link{From: "c1", To: "c3", Does: lossy},
		host.Link{From: "c1/two", To: "c3/head", Does: delay(16)},
	)
	return links, []path{
		{"c1/head", "c1/one", 4 * time.Millisecond, false},
		{"c1/head", "c1/two", 8 * time.Millisecond, false},
		{"c1/one", "c1/head", 0, false},
		{"c1/head", "c2/head", 20 * time.Millisecond, false},
		{"c1/head", "c2/one", 12 * time.Millisecond, false},
		{"c2/head", "c1/head", 12 * time.Millisecond, false},
		{"c1/one", "c2/one", 0, false},
		{"c2/one", "c1/one", 0, false},
		{"c1/head", "c3/head", 30 * time.Millisecond, true},
		{"c1/two", "c3/head", 16 * time.Millisecond, false},
		{"c3/head", "c1/head", 0, false},
		{"c2/head", "c3/head", 0, false},
	}
}

// In one lab, at the same time, packets to each destination meet what was asked for
// it and nothing else.
func TestEachDestinationHasItsLink(t *testing.T) {
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		t.Skip("needs br_netfilter: packets inside a cluster are bridged")
	}
	lab := up(t, "destinations", topology.Topology{
		Clusters: []topology.Cluster{
			{Name: "c1", Nodes: []string{"head", "one", "two"}},
			{Name: "c2", Nodes: []string{"head", "one"}},
			{Name: "c3", Nodes: []string{"head"}},
		},
		Service: "c1/head", Client: "c2/head",
	})
	links, paths := destinations()
	set(t, lab, links...)
	wantPaths(t, lab, paths)

	// The same after a change: what was exempt has a link, and what had one is exempt.
	if _, err := lab.ChangeLinks(t.Context(), append(both("c1", "c2", delay(6)),
		host.Link{From: "c1/one", To: "c2/one", Does: delay(18)},
		host.Link{From: "c1/head", To: "c2/head"},
		host.Link{From: "c2/head", To: "c1/head"},
	), 1); err != nil {
		t.Fatal(err)
	}
	wantPaths(t, lab, []path{
		{"c1/one", "c2/one", 18 * time.Millisecond, false},
		{"c2/one", "c1/one", 6 * time.Millisecond, false},
		{"c1/head", "c2/head", 0, false},
		{"c2/head", "c1/head", 0, false},
		{"c1/head", "c2/one", 6 * time.Millisecond, false},
		{"c1/head", "c1/one", 0, false},
	})
}

// wantPaths sends over all paths at once.
func wantPaths(t *testing.T, lab *host.Lab, paths []path) {
	t.Helper()
	const n, interval = 100, 2 * time.Millisecond
	var together sync.WaitGroup
	for _, p := range paths {
		d := openDatagrams(t, lab, p.from, p.to, true)
		together.Go(func() {
			all, err := d.crossed(n, interval)
			if err != nil {
				t.Errorf("%s to %s: %v", p.from, p.to, err)
				return
			}
			least := time.Hour
			for _, a := range all {
				least = min(least, a.took)
			}
			if lost := n - len(all); p.lossy != (lost > 0) || p.lossy && (lost < 10 || lost > 55) {
				t.Errorf("%s to %s: %d of %d lost", p.from, p.to, lost, n)
			}
			// The least of them: what the machine's other work adds is in the others.
			if least < p.delay || least > p.delay+time.Millisecond {
				t.Errorf("%s to %s takes %s, want %s", p.from, p.to, least, p.delay)
			}
		})
	}
	together.Wait()
}
