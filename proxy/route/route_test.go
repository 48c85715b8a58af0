package route_test

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"skerry.dev/skerry/proxy/route"
	"skerry.dev/skerry/proxy/snapshot"
)

// endpoints are written as "node/zone state hints": state r is ready, t ends and serves,
// n is neither; hints are n:NODE or z:ZONE.
func endpoints(t *testing.T, lines ...string) []snapshot.Endpoint {
	t.Helper()
	var all []snapshot.Endpoint
	for i, line := range lines {
		f := strings.Fields(line)
		node, zone, _ := strings.Cut(f[0], "/")
		e := snapshot.Endpoint{
			Addr: netip.AddrPortFrom(netip.MustParseAddr("10.0.0."+strconv.Itoa(i)), 80), Node: node, Zone: zone,
			Ready: f[1] == "r", Serving: f[1] != "n", Terminating: f[1] == "t",
		}
		for _, h := range f[2:] {
			if n, ok := strings.CutPrefix(h, "n:"); ok {
				e.ForNodes = append(e.ForNodes, n)
			} else {
				e.ForZones = append(e.ForZones, strings.TrimPrefix(h, "z:"))
			}
		}
		all = append(all, e)
	}
	return all
}

// which are the endpoints by the last part of their addresses.
func which(of []snapshot.Endpoint) string {
	var s []string
	for _, e := range of {
		a := e.Addr.Addr().As4()
		s = append(s, strconv.Itoa(int(a[3])))
	}
	return strings.Join(s, " ")
}

func TestRoutes(t *testing.T) {
	at := route.Place{Node: "w1", Zone: "a"}
	for _, c := range []struct {
		name           string
		policy         string
		endpoints      []string
		cluster, local string
	}{
		{name: "those that are ready", endpoints: []string{"w1/a r", "w2/b n", "w2/b r", "w3/c t"}, cluster: "0 2", local: "0"},
		{name: "without one, those that end and serve", endpoints: []string{"w1/a n", "w2/b t"}, cluster: "1"},
		{name: "here is nobody: dropped, not sent away", endpoints: []string{"w2/b r"}, cluster: "0"},
		{name: "here is one that ends", endpoints: []string{"w1/a t", "w2/b r"}, cluster: "1", local: "0"},
		{name: "hints of zones", endpoints: []string{"w1/a r z:b", "w2/b r z:a", "w3/c r z:a"}, cluster: "1 2", local: "0"},
		{name: "hints of nodes go before", endpoints: []string{"w1/a r z:a n:w2", "w2/b r z:b n:w1"}, cluster: "1", local: "0"},
		{name: "one without a hint: none counts", endpoints: []string{"w1/a r", "w2/b r z:a"}, cluster: "0 1", local: "0"},
		{name: "none for this zone: none counts", endpoints: []string{"w1/a r z:b", "w2/b r z:b"}, cluster: "0 1", local: "0"},
		{name: "one that is not ready has no say", endpoints: []string{"w1/a r z:a", "w2/b n"}, cluster: "0", local: "0"},
		{name: "of those that end hints do not count", endpoints: []string{"w2/b t z:a", "w3/c t z:b"}, cluster: "0 1"},
		{name: "a policy of ours chooses among all", policy: "cost", endpoints: []string{"w1/a r z:a", "w2/b r z:b"}, cluster: "0 1", local: "0"},
	} {
		got := route.Of(&snapshot.Service{Policy: c.policy}, &snapshot.Port{Endpoints: endpoints(t, c.endpoints...)}, at)
		if which(got.Cluster) != c.cluster || which(got.Local) != c.local {
			t.Errorf("%s: Cluster %q, Local %q; not %q, %q", c.name, which(got.Cluster), which(got.Local), c.cluster, c.local)
		}
	}
}

func TestNoZoneOfOwn(t *testing.T) {
	got := route.Of(&snapshot.Service{}, &snapshot.Port{Endpoints: endpoints(t, "w2/b r z:a")}, route.Place{Node: "w1"})
	if which(got.Cluster) != "0" {
		t.Errorf("Cluster %q", which(got.Cluster))
	}
}

// place is a node of two families, whose pods are in 10.244.1.0/24.
func place() route.Place {
	return route.Place{
		Node: "w1", Addrs: []netip.Addr{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fd00::1")},
		Pods: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}, Own: map[netip.Addr]bool{netip.MustParseAddr("192.0.2.2"): true},
	}
}

// Each way in has its own traffic policy; a node and its own pods have all endpoints where
// others from outside have the node's.
func TestLocal(t *testing.T) {
	for _, c := range []struct {
		internal, external bool
		by                 route.Entry
		client             string
		want               bool
	}{
		{true, false, route.ClusterIP, "10.244.1.7", true},
		{true, false, route.NodePort, "192.0.2.9", false},
		{false, true, route.ClusterIP, "192.0.2.9", false},
		{false, true, route.NodePort, "192.0.2.9", true},
		{false, true, route.LoadBalancer, "2001:db8::9", true},
		{true, true, route.NodePort, "10.244.2.7", true},
		{true, true, route.NodePort, "10.244.1.7", false},
		{true, true, route.LoadBalancer, "fd00::1", false},
		{true, true, route.NodePort, "127.0.0.1", false},
		{true, true, route.LoadBalancer, "192.0.2.2", false}, // which an interface has
	} {
		s := &snapshot.Service{InternalLocal: c.internal, ExternalLocal: c.external}
		if got := route.Local(s, c.by, netip.MustParseAddr(c.client), place()); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Source ranges are for a load balancer's addresses alone, and each for its own family.
func TestAdmits(t *testing.T) {
	for _, c := range []struct {
		ranges string
		by     route.Entry
		client string
		want   bool
	}{
		{"", route.LoadBalancer, "192.0.2.9", true},
		{"192.0.2.0/24", route.LoadBalancer, "192.0.2.9", true},
		{"192.0.2.0/24", route.LoadBalancer, "198.51.100.9", false},
		{"192.0.2.0/24", route.NodePort, "198.51.100.9", true},
		{"192.0.2.0/24", route.ClusterIP, "198.51.100.9", true},
		{"192.0.2.0/24", route.LoadBalancer, "2001:db8::9", true},
		{"192.0.2.0/24 2001:db8::/64", route.LoadBalancer, "2001:db8:1::9", false},
		{"0.0.0.0/0", route.LoadBalancer, "198.51.100.9", true},
		{"10.1.0.0/16", route.LoadBalancer, "203.0.113.1", true},
		{"192.0.2.0/24", route.LoadBalancer, "203.0.113.1", false},
	} {
		s := &snapshot.Service{LoadBalancerIPs: []netip.Addr{netip.MustParseAddr("203.0.113.1")}}
		for _, r := range strings.Fields(c.ranges) {
			s.SourceRanges = append(s.SourceRanges, netip.MustParsePrefix(r))
		}
		if got := route.Admits(s, c.by, netip.MustParseAddr(c.client), place()); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
