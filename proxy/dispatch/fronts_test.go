package dispatch_test

import (
	"net/netip"
	"slices"
	"testing"

	"skerry.dev/skerry/proxy/capture"
	"skerry.dev/skerry/proxy/route"
	"skerry.dev/skerry/proxy/snapshot"
)

func TestFronts(t *testing.T) {
	table, _ := tableOf(t, service(func(s *snapshot.Service) { s.ExternalIPs = []netip.Addr{netip.MustParseAddr("192.0.2.1")} }, endpoint("10.0.1.1", "n1")))
	w := table.Fronts(0, func(_ snapshot.Protocol, _ *snapshot.Service, at netip.AddrPort, by route.Entry) uint16 {
		if by == route.ExternalIP {
			return 0
		}
		return 4480
	})
	four := capture.NodePort{Protocol: snapshot.TCP, Port: 30080}
	if len(w.Services) != 1 || len(w.NodePorts) != 1 || w.NodePorts[four] != 4480 {
		t.Errorf("%+v", w)
	}
}

// Who calls where nobody may serve is to be refused, and who calls from outside where somebody
// serves this node alone is not to be brought, each by the address that he calls by; that is told
// when it changes and only then.
func TestFrontsOfSome(t *testing.T) {
	const carries, refuses = 4480, 4484
	here, far := endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2")
	internal := func(s *snapshot.Service) { s.InternalLocal = true }
	external := func(s *snapshot.Service) { s.ExternalLocal = true }
	table, _ := tableOf(t, service(nil, here))
	for _, c := range []struct {
		name              string
		change            snapshot.Change
		fronts            bool
		address, nodePort uint16
		inside            bool // the node's port
	}{
		{"another serves", service(nil, far), false, carries, carries, false},
		{"nobody does", service(nil), true, refuses, refuses, false},
		{"still nobody", service(nil), false, refuses, refuses, false},
		{"one that is not here", service(internal, far), true, refuses, carries, false},
		{"one that is not here, for who calls from elsewhere", service(external, far), true, carries, carries, true},
		{"still none here", service(external, far, far), false, carries, carries, true},
		{"one here", service(external, here), true, carries, carries, false},
		{"nobody at all", service(external), true, refuses, refuses, false},
	} {
		fronts, err := table.Update(c.change)
		if err != nil {
			t.Fatal(err)
		}
		w := table.Fronts(refuses, func(snapshot.Protocol, *snapshot.Service, netip.AddrPort, route.Entry) uint16 { return carries })
		service, node := capture.Service{Protocol: snapshot.TCP, At: at}, capture.NodePort{Protocol: snapshot.TCP, Port: 30080}
		if fronts != c.fronts || w.Services[service] != c.address || w.NodePorts[node] != c.nodePort || w.Inside.Services[service] || w.Inside.NodePorts[node] != c.inside {
			t.Errorf("%s: told %v, %+v", c.name, fronts, w)
		}
	}
}

// Where this node's pods are is told when it is known, and once.
func TestFrontsOfPods(t *testing.T) {
	table, _ := tableOf(t, service(nil, endpoint("10.0.1.1", "n1")))
	pods := []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}
	nodes := snapshot.Change{Nodes: map[string]*snapshot.Node{"n1": {Name: "n1", Pods: pods}, "n2": {Name: "n2", Pods: []netip.Prefix{netip.MustParsePrefix("10.0.2.0/24")}}}}
	for _, news := range []bool{true, false} {
		fronts, err := table.Update(nodes)
		w := table.Fronts(0, func(snapshot.Protocol, *snapshot.Service, netip.AddrPort, route.Entry) uint16 { return 0 })
		if fronts != news || err != nil || !slices.Equal(w.Inside.Pods, pods) {
			t.Errorf("told %v, %v: %v", fronts, err, w.Inside.Pods)
		}
	}
}

// Of two Services that want one address it is for the first by name; for the other when that
// goes, whatever became of either before.
func TestOneAddressOfTwo(t *testing.T) {
	shared := netip.MustParseAddrPort("192.0.2.1:80")
	of := func(name, cluster, endpointAt string) snapshot.Change {
		key := snapshot.Key{Namespace: "default", Name: name}
		c := service(func(s *snapshot.Service) {
			s.Key, s.ExternalIPs, s.ClusterIPs, s.Ports[0].NodePort = key, []netip.Addr{shared.Addr()}, []netip.Addr{netip.MustParseAddr(cluster)}, 0
		}, endpoint(endpointAt, "n1"))
		return snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{key: c.Services[web]}}
	}
	blue, green := of("blue", "10.96.0.7", "10.0.1.1"), of("green", "10.96.0.8", "10.0.1.2")
	table, _ := tableOf(t, green)
	is := func(want string) {
		t.Helper()
		if got := chosen(t, table, shared, client); got != want {
			t.Errorf("it goes to %s, not %s", got, want)
		}
	}
	is("10.0.1.2")
	update(t, table, blue)
	is("10.0.1.1")
	update(t, table, of("green", "10.96.0.8", "10.0.1.3"))
	is("10.0.1.1")
	if fronts, err := table.Update(snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{{Namespace: "default", Name: "blue"}: nil}}); !fronts || err != nil {
		t.Errorf("fronts %v, %v", fronts, err)
	}
	is("10.0.1.3")
	if w := table.Fronts(0, func(snapshot.Protocol, *snapshot.Service, netip.AddrPort, route.Entry) uint16 { return 4480 }); len(w.Services) != 2 {
		t.Errorf("%+v", w)
	}
}
