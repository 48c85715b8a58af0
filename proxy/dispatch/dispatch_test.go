package dispatch_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/dispatch"
	"skerry.dev/skerry/proxy/snapshot"
)

var (
	web    = snapshot.Key{Namespace: "default", Name: "web"}
	client = netip.MustParseAddrPort("10.0.9.9:40000")
	at     = netip.MustParseAddrPort("10.96.0.5:80")
	nodeAt = netip.MustParseAddrPort("10.1.0.1:30080")
)

// clock is time that the test sets.
type clock struct{ now time.Duration }

func (c *clock) read() time.Duration { return c.now }

func endpoint(ip, node string) snapshot.Endpoint {
	return snapshot.Endpoint{Addr: netip.MustParseAddrPort(ip + ":8080"), Node: node, PodUID: "uid-" + ip, Ready: true, Serving: true}
}

func service(change func(*snapshot.Service), endpoints ...snapshot.Endpoint) snapshot.Change {
	s := &snapshot.Service{
		Key: web, Policy: balance.RoundRobin, ClusterIPs: []netip.Addr{at.Addr()},
		Ports: []snapshot.Port{{Name: "http", Protocol: snapshot.TCP, Port: 80, NodePort: 30080, Endpoints: endpoints}},
	}
	if change != nil {
		change(s)
	}
	return snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{web: s}}
}

func tableOf(t *testing.T, c snapshot.Change) (*dispatch.Table, *clock) {
	t.Helper()
	k := &clock{}
	table := dispatch.NewTable("n1", k.read)
	update(t, table, c)
	return table, k
}

func update(t *testing.T, table *dispatch.Table, c snapshot.Change) {
	t.Helper()
	if _, err := table.Update(c); err != nil {
		t.Fatal(err)
	}
}

// chosen is the endpoint of a connection that ends at once.
func chosen(t *testing.T, table *dispatch.Table, target netip.AddrPort, from netip.AddrPort) string {
	t.Helper()
	h, err := table.Choose(snapshot.TCP, target, from)
	if err != nil {
		return err.Error()
	}
	table.Done(h, balance.Served)
	return h.Endpoint.Addr().String()
}

func TestFinds(t *testing.T) {
	table, _ := tableOf(t, service(nil, endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2")))
	for _, target := range []netip.AddrPort{at, nodeAt} {
		seen := map[string]bool{}
		for range 4 {
			seen[chosen(t, table, target, client)] = true
		}
		if !seen["10.0.1.1"] || !seen["10.0.2.1"] {
			t.Errorf("at %s %v are chosen", target, seen)
		}
	}
	for _, c := range []struct {
		protocol snapshot.Protocol
		at       string
	}{{snapshot.TCP, "10.96.0.5:81"}, {snapshot.TCP, "10.96.0.6:80"}, {snapshot.UDP, "10.96.0.5:80"}} {
		if _, err := table.Choose(c.protocol, netip.MustParseAddrPort(c.at), client); !errors.Is(err, dispatch.ErrNoService) {
			t.Errorf("%s %s: %v", c.protocol, c.at, err)
		}
	}
	update(t, table, service(nil))
	if _, err := table.Choose(snapshot.TCP, at, client); !errors.Is(err, dispatch.ErrNoEndpoint) {
		t.Errorf("without endpoints: %v", err)
	}
	update(t, table, snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{web: nil}})
	if _, err := table.Choose(snapshot.TCP, at, client); !errors.Is(err, dispatch.ErrNoService) {
		t.Errorf("without the Service: %v", err)
	}
}

// Clients from outside have this node's endpoints alone, where the Service says so; the node
// and its own pods have all.
func TestExternalLocal(t *testing.T) {
	local := func(s *snapshot.Service) { s.ExternalLocal, s.HealthPort = true, 31000 }
	ending := endpoint("10.0.1.2", "n1")
	ending.Ready, ending.Terminating = false, true
	table, _ := tableOf(t, service(local, endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2"), ending))
	update(t, table, snapshot.Change{Nodes: map[string]*snapshot.Node{
		"n1": {Name: "n1", Addrs: []netip.Addr{nodeAt.Addr()}, Pods: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24")}},
	}})
	for range 4 {
		if got := chosen(t, table, nodeAt, client); got != "10.0.1.1" {
			t.Errorf("from outside %s is chosen", got)
		}
	}
	for what, c := range map[string]struct{ at, from netip.AddrPort }{
		"from within":                    {at, client},
		"from this node, from outside":   {nodeAt, nodeAt},
		"from a pod here, from outside":  {nodeAt, netip.MustParseAddrPort("10.0.1.9:40000")},
		"from a pod, in an IPv6 address": {nodeAt, netip.MustParseAddrPort("[::ffff:10.0.1.9]:40000")},
	} {
		seen := map[string]bool{}
		for range 4 {
			seen[chosen(t, table, c.at, c.from)] = true
		}
		if len(seen) != 2 {
			t.Errorf("%s %v are chosen", what, seen)
		}
	}
	if x := table.Explain(web); len(x) != 2 || x[0].TrafficPolicy != "Cluster" || x[1].TrafficPolicy != "Local" || len(x[1].Endpoints) != 1 {
		t.Errorf("explained as %+v", x)
	}
	update(t, table, service(local, ending, endpoint("10.0.2.1", "n2")))
	if got, h := chosen(t, table, nodeAt, client), table.Health()[web]; got != "10.0.1.2" || h.Local != 0 || h.Port != 31000 {
		t.Errorf("the last one here ends: %s is chosen, and a load balancer is told %+v", got, h)
	}
}

// Who may not call at a load balancer's address is refused there, and nowhere else.
func TestSourceRanges(t *testing.T) {
	balanced := netip.MustParseAddrPort("192.0.2.1:80")
	table, _ := tableOf(t, service(func(s *snapshot.Service) {
		s.LoadBalancerIPs, s.SourceRanges = []netip.Addr{balanced.Addr()}, []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	}, endpoint("10.0.1.1", "n1")))
	if _, err := table.Choose(snapshot.TCP, balanced, client); !errors.Is(err, dispatch.ErrNotAllowed) {
		t.Errorf("from elsewhere: %v", err)
	}
	for at, from := range map[netip.AddrPort]netip.AddrPort{balanced: netip.MustParseAddrPort("198.51.100.7:1"), at: client, nodeAt: client} {
		if got := chosen(t, table, at, from); got != "10.0.1.1" {
			t.Errorf("%s to %s: %s", from, at, got)
		}
	}
}

// A client stays with its endpoint for as long as the Service says, unless that goes or
// fails.
func TestAffinity(t *testing.T) {
	stays := func(s *snapshot.Service) { s.Affinity = time.Minute }
	both := []snapshot.Endpoint{endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2")}
	table, k := tableOf(t, service(stays, both...))
	first := chosen(t, table, at, client)
	for i := range 5 {
		k.now += 30 * time.Second // each call begins the minute anew
		if got := chosen(t, table, at, client); got != first {
			t.Errorf("call %d goes to %s, not %s", i, got, first)
		}
	}
	other := netip.MustParseAddrPort("10.0.9.8:1")
	if got := chosen(t, table, at, other); got == first {
		t.Errorf("another client has %s as well", got)
	}
	k.now += 61 * time.Second
	seen := map[string]bool{chosen(t, table, at, other): true, chosen(t, table, at, client): true}
	if len(seen) != 2 {
		t.Errorf("after their time both clients have %v", seen)
	}
	was := chosen(t, table, at, client)
	h, err := table.Choose(snapshot.TCP, at, client)
	if err != nil {
		t.Fatal(err)
	}
	table.Done(h, balance.Failed)
	if got := chosen(t, table, at, client); got == was {
		t.Errorf("it stays with %s, which failed", got)
	}
	for _, e := range both {
		if e.Addr.Addr().String() == was {
			update(t, table, service(stays, e))
		}
	}
	if got := chosen(t, table, at, client); got != was {
		t.Errorf("it has %s, though only %s is left", got, was)
	}
}

// An endpoint that did not take a client's connection is not chosen for that again while there
// is another, whatever the policy.
func TestTried(t *testing.T) {
	here, there, third := endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2"), endpoint("10.0.2.2", "n2")
	for _, policy := range balance.Policies() {
		for range 20 {
			table, _ := tableOf(t, service(func(s *snapshot.Service) { s.Policy, s.Affinity = policy, time.Minute }, here, there, third))
			var tried []netip.AddrPort
			for range 3 {
				h, err := table.Choose(snapshot.TCP, at, client, tried...)
				if err != nil {
					t.Fatal(err)
				}
				table.Done(h, balance.Failed)
				if slices.Contains(tried, h.Endpoint) {
					t.Errorf("%s: after %v %s is tried", policy, tried, h.Endpoint)
				}
				tried = append(tried, h.Endpoint)
			}
			if h, err := table.Choose(snapshot.TCP, at, client, tried...); err != nil {
				t.Errorf("%s: all were tried: %v", policy, err)
			} else {
				table.Done(h, balance.Served)
			}
		}
	}
}

// Whose turn it is stays so when other endpoints come and go, and what is known of nodes is.
func TestEndpointsChange(t *testing.T) {
	first, second := endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2")
	table, _ := tableOf(t, service(nil, first, second, endpoint("10.0.2.2", "n2")))
	seen := map[string]int{}
	for i := range 60 {
		update(t, table, service(nil, first, second, endpoint(fmt.Sprint("10.0.2.", 2+i%2), "n2")))
		seen[chosen(t, table, at, client)]++
	}
	if seen["10.0.1.1"] != 20 || seen["10.0.2.1"] != 20 {
		t.Errorf("a third endpoint is another each time, and of 60 connections went %v", seen)
	}
	cost := func(s *snapshot.Service) { s.Policy = balance.Cost }
	update(t, table, service(cost, first, second))
	table.Learn([]snapshot.Key{web}, func(_ snapshot.Key, node string) balance.Node {
		return balance.Node{Name: node, RTT: balance.Known(5*time.Millisecond, 0)}
	})
	update(t, table, service(cost, first, second, endpoint("10.0.2.2", "n2")))
	for _, e := range table.Explain(web)[0].Endpoints {
		if e.RTT == nil {
			t.Errorf("a pod has come, and of the node of %s is known %+v", e.ID, e.Knowledge)
		}
	}
}

// A connection that fails late does not take away the endpoint that its client has found
// meanwhile, and one that is tried again goes there.
func TestAffinityOfMany(t *testing.T) {
	table, _ := tableOf(t, service(func(s *snapshot.Service) { s.Affinity = time.Minute }, endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2"), endpoint("10.0.2.2", "n2")))
	hold := func(tried ...netip.AddrPort) *dispatch.Held {
		h, err := table.Choose(snapshot.TCP, at, client, tried...)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first, second := hold(), hold()
	table.Done(first, balance.Failed)
	found := hold(first.Endpoint)
	table.Done(second, balance.Failed)
	if again := hold(second.Endpoint); again.Endpoint != found.Endpoint {
		t.Errorf("one connection is at %s, another of the client goes to %s", found.Endpoint, again.Endpoint)
	}
	if got := chosen(t, table, at, client); got != found.Endpoint.Addr().String() {
		t.Errorf("the client has found %s, and goes to %s", found.Endpoint, got)
	}
}

// What is held while endpoints, policies and Services change is counted where it was, and
// comes to nothing.
func TestHeldThroughChanges(t *testing.T) {
	a, b := endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2")
	table, k := tableOf(t, service(nil, a, b))
	var held []*dispatch.Held
	hold := func() {
		h, err := table.Choose(snapshot.TCP, at, client)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, h)
	}
	for range 4 {
		hold()
	}
	update(t, table, service(func(s *snapshot.Service) { s.Policy = balance.Cost }, a, b))
	hold()
	update(t, table, service(func(s *snapshot.Service) { s.ExternalLocal = true }, a, b))
	hold()
	k.now += time.Second
	total := 0
	for _, e := range table.Explain(web)[0].Endpoints {
		total += e.InFlight
	}
	if total != len(held) {
		t.Errorf("%d are counted of %d that are held", total, len(held))
	}
	f := table.Flights()
	if len(f) != 1 || len(f[0].ByNode) != 2 || fmt.Sprint(f[0].Pods) != "[uid-10.0.1.1]" {
		t.Errorf("flights are %+v", f)
	}
	update(t, table, snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{web: nil}})
	for _, h := range held {
		table.Answered(h)
		table.Done(h, balance.Served)
	}
	if f := table.Flights(); len(f) != 0 {
		t.Errorf("without Services flights are %+v", f)
	}
}

// An endpoint serves as long as it is there and does, be it only until it ends.
func TestServes(t *testing.T) {
	e := endpoint("10.0.1.1", "n1")
	table, _ := tableOf(t, service(nil, e))
	h, err := table.Choose(snapshot.TCP, at, client)
	if err != nil {
		t.Fatal(err)
	}
	ending, ended := e, e
	ending.Ready, ending.Terminating = false, true
	ended.Ready, ended.Serving = false, false
	other := endpoint("10.0.1.2", "n1")
	for what, c := range map[string]struct {
		with []snapshot.Endpoint
		want bool
	}{
		"one more":                {[]snapshot.Endpoint{e, other}, true},
		"it ends and serves":      {[]snapshot.Endpoint{ending, other}, true},
		"it serves no more":       {[]snapshot.Endpoint{ended, other}, false},
		"another has its place":   {[]snapshot.Endpoint{other}, false},
		"it is back, alone there": {[]snapshot.Endpoint{e}, true},
	} {
		update(t, table, service(nil, c.with...))
		for range 2 {
			if got := table.Serves(h); got != c.want {
				t.Errorf("%s: it serves: %v", what, got)
			}
		}
	}
}

// What is learned of nodes is what the next choice rests on.
func TestLearn(t *testing.T) {
	table, k := tableOf(t, service(func(s *snapshot.Service) { s.Policy = balance.RAP }, endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2")))
	learn := func(cpu map[string]float64) {
		table.Learn([]snapshot.Key{web, {Name: "gone"}}, func(_ snapshot.Key, node string) balance.Node {
			return balance.Node{Name: node, Usage: balance.Known(balance.Usage{CPU: cpu[node]}, 0)}
		})
	}
	learn(map[string]float64{"n1": 0.2, "n2": 0.2})
	if got := chosen(t, table, at, client); got != "10.0.1.1" {
		t.Errorf("home is free, and %s is chosen", got)
	}
	k.now += 2 * time.Second // RAP looks for a best node once a cycle
	learn(map[string]float64{"n1": 1, "n2": 0.2})
	if got := chosen(t, table, at, client); got != "10.0.2.1" {
		t.Errorf("home is busy, and %s is chosen", got)
	}
}

// A node that learns its zone keeps to hints for it.
func TestZone(t *testing.T) {
	a, b := endpoint("10.0.1.1", "n1"), endpoint("10.0.2.1", "n2")
	a.ForZones, b.ForZones = []string{"east"}, []string{"west"}
	table, _ := tableOf(t, service(func(s *snapshot.Service) { s.Policy = "" }, a, b))
	update(t, table, snapshot.Change{Nodes: map[string]*snapshot.Node{
		"n1": {Name: "n1", Zone: "west", Addrs: []netip.Addr{netip.MustParseAddr("10.1.0.1")}}, "n2": {Name: "n2"},
	}})
	for range 4 {
		if got := chosen(t, table, at, client); got != "10.0.2.1" {
			t.Errorf("in the west %s is chosen", got)
		}
	}
	update(t, table, snapshot.Change{Nodes: map[string]*snapshot.Node{"n2": nil}})
	if n := table.Nodes(); len(n) != 1 || n["n1"][0].String() != "10.1.0.1" {
		t.Errorf("nodes are %v", n)
	}
}

// Of a Service that nobody here calls, and that has no pods here, nothing is measured; its
// fronts are told anew only when they change.
func TestNobodyCalls(t *testing.T) {
	far := service(nil, endpoint("10.0.0.1", "n2"), endpoint("10.0.0.2", "n3"))
	table, k := tableOf(t, far)
	if f := table.Flights(); len(f) != 0 {
		t.Errorf("flights %+v", f)
	}
	if x := table.Explain(web); len(x) != 1 || len(x[0].Endpoints) != 2 {
		t.Errorf("its first choice rests on %+v", x)
	}
	if f := table.Flights(); len(f) != 0 {
		t.Errorf("having been asked about: flights %+v", f)
	}
	update(t, table, service(nil, endpoint("10.0.0.1", "n1")))
	if f := table.Flights(); len(f) != 1 {
		t.Errorf("with a pod here: flights %+v", f)
	}
	update(t, table, far)
	if f := table.Flights(); len(f) != 0 {
		t.Errorf("without it again: flights %+v", f)
	}
	for what, c := range map[string]struct {
		change func(*snapshot.Service)
		fronts bool
	}{
		"a policy":      {func(s *snapshot.Service) { s.Policy = balance.Random }, false},
		"an address":    {func(s *snapshot.Service) { s.ExternalIPs = []netip.Addr{netip.MustParseAddr("192.0.2.1")} }, true},
		"a balancer":    {func(s *snapshot.Service) { s.LoadBalancerIPs = []netip.Addr{netip.MustParseAddr("192.0.2.2")} }, true},
		"a node's port": {func(s *snapshot.Service) { s.Ports[0].NodePort = 30081 }, true},
	} {
		update(t, table, far)
		fronts, err := table.Update(service(c.change, endpoint("10.0.0.3", "n2")))
		if fronts != c.fronts || err != nil {
			t.Errorf("%s changes: fronts %v, %v", what, fronts, err)
		}
	}
	chosen(t, table, at, client)
	if f := table.Flights(); len(f) != 1 || f[0].ByNode["n2"].Done != 1 {
		t.Errorf("called once: flights %+v", f)
	}
	update(t, table, service(nil, endpoint("10.0.0.1", "n1")))
	if f := table.Flights(); len(f) != 1 || f[0].ByNode["n2"] != (dispatch.Flight{}) {
		t.Errorf("its node is gone: flights %+v", f)
	}
	held, err := table.Choose(snapshot.TCP, at, client)
	if err != nil {
		t.Fatal(err)
	}
	update(t, table, far)
	k.now += time.Hour
	if f := table.Flights(); len(f) != 1 {
		t.Errorf("a connection lasts: flights %+v", f)
	}
	table.Done(held, balance.Served)
	if f, alive := table.Flights(), table.Alive(); len(f) != 0 || len(alive) != 0 {
		t.Errorf("nobody has called for an hour: flights %+v, alive are %v", f, alive)
	}
	chosen(t, table, at, client)
	if f := table.Flights(); len(f) != 1 {
		t.Errorf("called again: flights %+v", f)
	}
	if fronts, err := table.Update(snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{web: nil}}); !fronts || err != nil || len(table.Flights()) != 0 {
		t.Errorf("gone: fronts %v, %v, flights %+v", fronts, err, table.Flights())
	}
}
