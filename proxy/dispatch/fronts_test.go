package dispatch_test

import (
	"net/netip"
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

// Who calls where nobody may serve is to be refused, by the address that he calls by, and that is
// told when it changes and only then.
func TestFrontsRefused(t *testing.T) {
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
	}{
		{"another serves", service(nil, far), false, carries, carries},
		{"nobody does", service(nil), true, refuses, refuses},
		{"still nobody", service(nil), false, refuses, refuses},
		{"one that is not here", service(internal, far), true, refuses, carries},
		{"one that is not here, for who calls from elsewhere", service(external, far), true, carries, carries},
		{"one here", service(internal, here), false, carries, carries},
	} {
		fronts, err := table.Update(c.change)
		if err != nil {
			t.Fatal(err)
		}
		w := table.Fronts(refuses, func(snapshot.Protocol, *snapshot.Service, netip.AddrPort, route.Entry) uint16 { return carries })
		address, nodePort := w.Services[capture.Service{Protocol: snapshot.TCP, At: at}], w.NodePorts[capture.NodePort{Protocol: snapshot.TCP, Port: 30080}]
		if fronts != c.fronts || address != c.address || nodePort != c.nodePort {
			t.Errorf("%s: told %v, %d, %d", c.name, fronts, address, nodePort)
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
