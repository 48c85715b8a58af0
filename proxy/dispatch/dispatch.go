// Package dispatch stands between what is known of a cluster's Services and who carries
// their connections: it finds the Service that a client called, has its balancer choose an
// endpoint among those that route allows, and keeps count. Start at Table.
//
// A Table takes changes of the snapshot by Update, and what proxies know of nodes by
// Tick, ten times a second. Choose and Done cost the same however many Services there are.
package dispatch

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"skerry.dev/skerry/proxy/capture"
	"skerry.dev/skerry/proxy/route"
	"skerry.dev/skerry/proxy/snapshot"
)

// Why a connection is refused.
var (
	ErrNoService  = errors.New("no Service has that address")
	ErrNoEndpoint = errors.New("the Service has no endpoint that may serve it")
	ErrNotAllowed = errors.New("the Service's loadBalancerSourceRanges do not have the client")
)

// A Table is all Services, seen from a node.
type Table struct {
	at   route.Place
	now  func() time.Duration
	seed maphash.Seed

	mu        sync.RWMutex
	services  map[snapshot.Key]*service
	nodes     map[string]*snapshot.Node
	addresses claims[capture.Service]
	nodePorts claims[capture.NodePort]

	// alive are the Services of which something is to be known ten times a second: clients
	// of this node have called them lately, or they have pods here.
	aliveMu sync.Mutex
	alive   map[snapshot.Key]bool
}

// service is one Service.
type service struct {
	*snapshot.Service
	ports []*port
	pods  []string            // of this node, by their UIDs
	ready map[netip.Addr]bool // of this node
}

// NewTable is that of a node, without Services. Now is the time since any one moment.
func NewTable(node string, now func() time.Duration) *Table {
	return &Table{
		at: route.Place{Node: node}, now: now, seed: maphash.MakeSeed(),
		services: map[snapshot.Key]*service{}, nodes: map[string]*snapshot.Node{},
		addresses: newClaims[capture.Service](), nodePorts: newClaims[capture.NodePort](), alive: map[snapshot.Key]bool{},
	}
}

// Update takes a change, and says whether Fronts are others than before. Connections under way
// stay where they are.
func (t *Table) Update(c snapshot.Change) (fronts bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pods := t.at.Pods
	moved := t.takeNodes(c.Nodes)
	fronts = !slices.Equal(pods, t.at.Pods)
	var errs []error
	for key, s := range c.Services {
		was := t.services[key]
		audiences := was.audiences()
		if was != nil {
			t.withdraw(was)
		}
		if s == nil || was == nil || !sameFronts(was.Service, s) {
			fronts = true
		}
		if s == nil {
			delete(t.services, key)
			t.dies(key)
			continue
		}
		errs = append(errs, t.put(key, s, was))
		fronts = fronts || !slices.Equal(audiences, t.services[key].audiences())
	}
	if moved {
		for key, s := range t.services {
			t.withdraw(s)
			errs = append(errs, t.put(key, s.Service, s))
		}
	}
	return fronts, errors.Join(errs...)
}

// sameFronts says whether clients call two versions of a Service at the same addresses and
// ports, and are carried by the same data plane.
func sameFronts(a, b *snapshot.Service) bool {
	return a.Options.Dataplane == b.Options.Dataplane && slices.Equal(a.ClusterIPs, b.ClusterIPs) && slices.Equal(a.ExternalIPs, b.ExternalIPs) && slices.Equal(a.LoadBalancerIPs, b.LoadBalancerIPs) &&
		slices.EqualFunc(a.Ports, b.Ports, func(p, q snapshot.Port) bool {
			return p.Protocol == q.Protocol && p.Port == q.Port && p.NodePort == q.NodePort
		})
}

// lives notes that something is to be known of a Service from now on, dies that nothing is.
func (t *Table) lives(key snapshot.Key) {
	t.aliveMu.Lock()
	defer t.aliveMu.Unlock()
	t.alive[key] = true
}

func (t *Table) dies(key snapshot.Key) {
	t.aliveMu.Lock()
	defer t.aliveMu.Unlock()
	delete(t.alive, key)
}

// Alive are the Services that clients of this node have called lately, or that have pods here.
func (t *Table) Alive() []snapshot.Key {
	t.aliveMu.Lock()
	defer t.aliveMu.Unlock()
	return slices.Collect(maps.Keys(t.alive))
}

// Asking are those of them that want to know from metrics.k8s.io what their pods use.
func (t *Table) Asking() []snapshot.Key {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.DeleteFunc(t.Alive(), func(key snapshot.Key) bool {
		s := t.services[key]
		return s == nil || s.Options.Usage != snapshot.UsageMetrics
	})
}

// takeNodes takes what became of nodes, and says whether this one is in another zone now.
func (t *Table) takeNodes(nodes map[string]*snapshot.Node) bool {
	for name, n := range nodes {
		if n == nil {
			delete(t.nodes, name)
		} else {
			t.nodes[name] = n
		}
	}
	was := t.at.Zone
	if n := t.nodes[t.at.Node]; n != nil {
		t.at = route.Place{Node: n.Name, Zone: n.Zone, Addrs: n.Addrs, Pods: n.Pods, Own: t.at.Own}
	}
	return t.at.Zone != was
}

// Own takes the addresses that this node's interfaces have.
func (t *Table) Own(addrs map[netip.Addr]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at.Own = addrs
}

// put has a Service as it is now, with what its ports had seen before.
func (t *Table) put(key snapshot.Key, s *snapshot.Service, was *service) error {
	now := &service{Service: s, ready: map[netip.Addr]bool{}}
	for i := range s.Ports {
		p, err := t.port(s, &s.Ports[i], was)
		if err != nil {
			return fmt.Errorf("service %s: %w", key, err)
		}
		now.ports = append(now.ports, p)
		now.addHere(s.Ports[i].Endpoints, t.at.Node)
	}
	t.services[key] = now
	if len(now.pods) > 0 || now.called() {
		t.lives(key)
	} else {
		t.dies(key)
	}
	for _, p := range now.ports {
		t.announce(now, p)
	}
	return nil
}

// called says whether clients of this node have called the Service.
func (s *service) called() bool {
	return slices.ContainsFunc(s.ports, func(p *port) bool { return len(p.called()) > 0 })
}

// addHere adds the endpoints of this node, each once.
func (s *service) addHere(endpoints []snapshot.Endpoint, node string) {
	for _, e := range endpoints {
		if e.Node != node {
			continue
		}
		if e.PodUID != "" && !slices.Contains(s.pods, e.PodUID) {
			s.pods = append(s.pods, e.PodUID)
		}
		if e.Ready {
			s.ready[e.Addr.Addr()] = true
		}
	}
}

// announce has clients that call a port find it.
func (t *Table) announce(s *service, p *port) {
	for at, by := range s.addresses(p) {
		t.addresses.claim(at, &front{p, by})
	}
	for _, at := range s.nodePorts(p) {
		t.nodePorts.claim(at, &front{p, route.NodePort})
	}
}

// nodePorts of a port of the Service: one for each family of its own addresses.
func (s *service) nodePorts(p *port) (all []capture.NodePort) {
	for _, a := range s.ClusterIPs {
		if at := (capture.NodePort{Protocol: p.Protocol, Port: p.NodePort, Is6: a.Is6()}); p.NodePort != 0 && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// addresses of a port of the Service.
func (s *service) addresses(p *port) map[capture.Service]route.Entry {
	all := map[capture.Service]route.Entry{}
	add := func(by route.Entry, addrs []netip.Addr) {
		for _, a := range addrs {
			all[capture.Service{Protocol: p.Protocol, At: netip.AddrPortFrom(a, p.Port.Port)}] = by
		}
	}
	add(route.ExternalIP, s.ExternalIPs)
	add(route.LoadBalancer, s.LoadBalancerIPs)
	add(route.ClusterIP, s.ClusterIPs)
	return all
}

// withdraw takes a Service's addresses out.
func (t *Table) withdraw(s *service) {
	for _, p := range s.ports {
		for at := range s.addresses(p) {
			t.addresses.release(at, p)
		}
		for _, at := range s.nodePorts(p) {
			t.nodePorts.release(at, p)
		}
	}
}

// Fronts are where clients call: for each the proxy's port, as of says, or 0 for what is
// not to be brought; where nobody serves, that which refuses. A node's port is of no address.
func (t *Table) Fronts(refuses uint16, of func(p snapshot.Protocol, service *snapshot.Service, at netip.AddrPort, by route.Entry) uint16) capture.Wanted {
	t.mu.RLock()
	defer t.mu.RUnlock()
	w := capture.Wanted{
		Services: map[capture.Service]uint16{}, NodePorts: map[capture.NodePort]uint16{},
		Inside: capture.Inside{Services: map[capture.Service]bool{}, NodePorts: map[capture.NodePort]bool{}, Pods: t.at.Pods},
	}
	portOf := func(f *front, p snapshot.Protocol, at netip.AddrPort) (to uint16, inside bool) {
		audience := f.port.audience(f.entry)
		if audience == route.Nobody {
			return refuses, false
		}
		return of(p, f.port.service, at, f.entry), audience == route.Inside
	}
	for at, f := range t.addresses.fronts {
		if to, inside := portOf(f, at.Protocol, at.At); to != 0 {
			w.Services[at] = to
			if inside {
				w.Inside.Services[at] = true
			}
		}
	}
	for at, f := range t.nodePorts.fronts {
		anywhere := netip.IPv4Unspecified()
		if at.Is6 {
			anywhere = netip.IPv6Unspecified()
		}
		if to, inside := portOf(f, at.Protocol, netip.AddrPortFrom(anywhere, at.Port)); to != 0 {
			w.NodePorts[at] = to
			if inside {
				w.Inside.NodePorts[at] = true
			}
		}
	}
	return w
}

// Health is what a Service's health check port is to answer: how many endpoints of this node
// are ready. One that ends is not, though it may serve: no more clients are to be sent here.
type Health struct {
	Port  uint16
	Local int
}

// Health is that of every Service which has such a port.
func (t *Table) Health() map[snapshot.Key]Health {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := map[snapshot.Key]Health{}
	for key, s := range t.services {
		if s.HealthPort != 0 {
			all[key] = Health{Port: s.HealthPort, Local: len(s.ready)}
		}
	}
	return all
}

// Nodes are the addresses of all nodes.
func (t *Table) Nodes() map[string][]netip.Addr {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := map[string][]netip.Addr{}
	for name, n := range t.nodes {
		all[name] = n.Addrs
	}
	return all
}

// find is who was called.
func (t *Table) find(protocol snapshot.Protocol, target netip.AddrPort) *front {
	if f := t.addresses.fronts[capture.Service{Protocol: protocol, At: target}]; f != nil {
		return f
	}
	return t.nodePorts.fronts[capture.NodePort{Protocol: protocol, Port: target.Port(), Is6: target.Addr().Is6()}]
}

// Choose names an endpoint for a client that called a target: none of those that were tried
// for it, while there is another.
func (t *Table) Choose(protocol snapshot.Protocol, target, client netip.AddrPort, tried ...netip.AddrPort) (*Held, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	f := t.find(protocol, target)
	if f == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoService, target)
	}
	return t.choose(f, client.Addr().Unmap(), tried)
}
