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
		name               string
		service            snapshot.Service
		endpoints          []string
		internal, external string
		local              int
	}{
		{name: "those that are ready", endpoints: []string{"w1/a r", "w2/b n", "w2/b r", "w3/c t"}, internal: "0 2", external: "0 2", local: 1},
		{name: "without one, those that end and serve", endpoints: []string{"w1/a n", "w2/b t"}, internal: "1", external: "1"},
		{
			name: "internal traffic stays here", service: snapshot.Service{InternalLocal: true},
			endpoints: []string{"w1/a r", "w2/b r"}, internal: "0", external: "0 1", local: 1,
		},
		{
			name: "here is nobody: dropped, not sent away", service: snapshot.Service{InternalLocal: true, ExternalLocal: true},
			endpoints: []string{"w2/b r"}, internal: "", external: "",
		},
		{
			name: "here is one that ends", service: snapshot.Service{ExternalLocal: true},
			endpoints: []string{"w1/a t", "w2/b r"}, internal: "1", external: "0", local: 1,
		},
		{name: "hints of zones", endpoints: []string{"w1/a r z:b", "w2/b r z:a", "w3/c r z:a"}, internal: "1 2", external: "1 2", local: 1},
		{name: "hints of nodes go before", endpoints: []string{"w1/a r z:a n:w2", "w2/b r z:b n:w1"}, internal: "1", external: "1", local: 1},
		{name: "one without a hint: none counts", endpoints: []string{"w1/a r", "w2/b r z:a"}, internal: "0 1", external: "0 1", local: 1},
		{name: "none for this zone: none counts", endpoints: []string{"w1/a r z:b", "w2/b r z:b"}, internal: "0 1", external: "0 1", local: 1},
		{name: "one that is not ready has no say", endpoints: []string{"w1/a r z:a", "w2/b n"}, internal: "0", external: "0", local: 1},
		{
			name: "local traffic has no use for hints", service: snapshot.Service{InternalLocal: true},
			endpoints: []string{"w1/a r z:b", "w2/b r z:a"}, internal: "0", external: "1", local: 1,
		},
		{
			name: "a policy of ours chooses among all", service: snapshot.Service{Policy: "cost"},
			endpoints: []string{"w1/a r z:a", "w2/b r z:b"}, internal: "0 1", external: "0 1", local: 1,
		},
		{
			name: "but keeps to traffic policies", service: snapshot.Service{Policy: "cost", InternalLocal: true},
			endpoints: []string{"w1/a r", "w2/b r"}, internal: "0", external: "0 1", local: 1,
		},
	} {
		got := route.Of(&c.service, &snapshot.Port{Endpoints: endpoints(t, c.endpoints...)}, at)
		if which(got.Internal) != c.internal || which(got.External) != c.external || got.Local != c.local {
			t.Errorf("%s: internal %q, external %q, local %d; not %q, %q, %d",
				c.name, which(got.Internal), which(got.External), got.Local, c.internal, c.external, c.local)
		}
	}
}

func TestNoZoneOfOwn(t *testing.T) {
	got := route.Of(&snapshot.Service{}, &snapshot.Port{Endpoints: endpoints(t, "w2/b r z:a")}, route.Place{Node: "w1"})
	if which(got.Internal) != "0" {
		t.Errorf("internal %q", which(got.Internal))
	}
}
