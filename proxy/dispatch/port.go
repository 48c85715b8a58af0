package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/route"
	"skerry.dev/skerry/proxy/snapshot"
)

// staysMost bounds how many clients are remembered of a port with session affinity; of more
// than that those are forgotten whose time is over, and any eighth.
const staysMost = 100_000

// port is a port of a Service, with who serves by each traffic policy.
type port struct {
	*snapshot.Port
	service *snapshot.Service

	mu             sync.Mutex
	cluster, local side
	stays          map[netip.Addr]stay
}

// side is who may serve by a traffic policy, and who chooses among them: nobody until a
// client of this node calls, since of many Services a node calls few.
type side struct {
	policy   string // Kubernetes' name of it
	options  balance.Options
	routes   []snapshot.Endpoint
	balancer *balance.Balancer
	addrs    map[string]netip.AddrPort
	done     map[string]uint64 // by node: how many it has answered
	held     int
	last     time.Duration // when one was chosen
	asleep   bool          // that is long ago
}

// stay is a client that keeps its endpoint.
type stay struct {
	endpoint string
	until    time.Duration
}

// Held is a choice: an endpoint that counts as in use until Done.
type Held struct {
	Endpoint netip.AddrPort
	client   netip.Addr
	port     *port
	side     *side
	ticket   balance.Ticket
	seen     *snapshot.Port // as the port was when the endpoint was last seen there
}

// port is one of a Service: the one that was there, as it is now, so that what is held of
// it is counted where it was.
func (t *Table) port(s *snapshot.Service, p *snapshot.Port, was *service) (*port, error) {
	now := was.port(p)
	if now == nil {
		now = &port{cluster: side{policy: "Cluster"}, local: side{policy: "Local"}, stays: map[netip.Addr]stay{}}
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	now.Port, now.service = p, s
	options := balance.Options{Policy: cmp.Or(s.Policy, balance.Cost), MaxCPU: percent(s.Options.MaxCPU), MaxRAM: percent(s.Options.MaxRAM)}
	if err := options.Check(); err != nil {
		return nil, err
	}
	r := route.Of(s, p, t.at)
	return now, errors.Join(t.serve(now, &now.cluster, r.Cluster, options), t.serve(now, &now.local, r.Local, options))
}

// audience are whom somebody serves of those who call by an entry.
func (p *port) audience(by route.Entry) route.Audience {
	p.mu.Lock()
	defer p.mu.Unlock()
	return route.Routes{Cluster: p.cluster.routes, Local: p.local.routes}.For(p.service, by)
}

// audiences are those of each port, at the Service's own address and at others; of no Service none.
func (s *service) audiences() (all []route.Audience) {
	if s == nil {
		return nil
	}
	for _, p := range s.ports {
		all = append(all, p.audience(route.ClusterIP), p.audience(route.NodePort))
	}
	return all
}

// percent is a share.
func percent(n int) float64 { return float64(n) / 100 }

// port is the one that was at a port before; nil where there was none.
func (s *service) port(p *snapshot.Port) *port {
	if s == nil {
		return nil
	}
	for _, old := range s.ports {
		if old.Protocol == p.Protocol && old.Port.Port == p.Port {
			return old
		}
	}
	return nil
}

// serve has a side these endpoints from now on, by these options.
func (t *Table) serve(p *port, s *side, routes []snapshot.Endpoint, o balance.Options) error {
	was := s.options
	s.options, s.routes = o, routes
	if s.balancer == nil {
		return nil
	}
	if o != was { // a policy that goes on knows whose turn it is
		if err := s.balancer.SetPolicy(o, t.now()); err != nil {
			return err
		}
	}
	t.see(p.service.Key, s)
	return nil
}

// wake has somebody choose among a side's endpoints.
func (t *Table) wake(key snapshot.Key, s *side) (err error) {
	if s.asleep = false; s.balancer != nil {
		return nil
	}
	if s.balancer, err = balance.New(s.options, maphash.String(t.seed, key.String())); err != nil {
		return err
	}
	s.done = map[string]uint64{}
	t.see(key, s)
	return nil
}

// see has who chooses know the endpoints.
func (t *Table) see(key snapshot.Key, s *side) {
	s.addrs = make(map[string]netip.AddrPort, len(s.routes))
	nodes := map[string]bool{}
	for _, e := range s.routes {
		s.addrs[e.Addr.String()] = e.Addr
		nodes[e.Node] = true
	}
	maps.DeleteFunc(s.done, func(node string, _ uint64) bool { return !nodes[node] })
	s.balancer.Update(t.view(key, s.routes, nil), t.now())
}

// view is what a balancer is to know: endpoints, and what is known of their nodes.
func (t *Table) view(key snapshot.Key, routes []snapshot.Endpoint, about About) balance.View {
	var v balance.View
	seen := map[string]bool{}
	for _, e := range routes {
		v.Endpoints = append(v.Endpoints, balance.Endpoint{ID: e.Addr.String(), Node: e.Node})
		if seen[e.Node] {
			continue
		}
		seen[e.Node] = true
		n := balance.Node{Name: e.Node}
		if about != nil {
			n = about(key, e.Node)
		}
		n.Local, n.Far = e.Node == t.at.Node, e.Zone != t.at.Zone
		v.Nodes = append(v.Nodes, n)
	}
	return v
}

// About is what is known of a node that has pods of a Service.
type About func(service snapshot.Key, node string) balance.Node

// choose names an endpoint.
func (t *Table) choose(f *front, client netip.Addr, tried []netip.AddrPort) (*Held, error) {
	p := f.port
	p.mu.Lock()
	defer p.mu.Unlock()
	if !route.Admits(p.service, f.entry, client, t.at) {
		return nil, fmt.Errorf("%w: %s, %s", ErrNotAllowed, p.service.Key, client)
	}
	s, now := &p.cluster, t.now()
	if route.Local(p.service, f.entry, client, t.at) {
		s = &p.local
	}
	if s.balancer == nil || s.asleep {
		if err := t.wake(p.service.Key, s); err != nil {
			return nil, err
		}
		t.lives(p.service.Key)
	}
	before := names(tried)
	ticket, ok := p.again(s, client, now, before)
	if !ok {
		var err error
		if ticket, err = s.balancer.Pick(now, before...); err != nil {
			return nil, ErrNoEndpoint
		}
	}
	if p.service.Affinity > 0 {
		p.remember(client, ticket.Endpoint, now)
	}
	s.held++
	s.last = now
	return &Held{Endpoint: s.addrs[ticket.Endpoint], client: client, port: p, side: s, ticket: ticket, seen: p.Port}, nil
}

// names are those that balancers have for endpoints.
func names(endpoints []netip.AddrPort) (all []string) {
	for _, e := range endpoints {
		all = append(all, e.String())
	}
	return all
}

// again is the endpoint that a client had, where it is still there and was not tried.
func (p *port) again(s *side, client netip.Addr, now time.Duration, tried []string) (balance.Ticket, bool) {
	if p.service.Affinity == 0 {
		return balance.Ticket{}, false
	}
	was, ok := p.stays[client]
	if !ok || now > was.until || slices.Contains(tried, was.endpoint) {
		return balance.Ticket{}, false
	}
	return s.balancer.Take(was.endpoint, now)
}

// remember has a client come back to its endpoint.
func (p *port) remember(client netip.Addr, endpoint string, now time.Duration) {
	if len(p.stays) >= staysMost {
		for c, s := range p.stays { // those whose time is over, and any eighth
			if now > s.until || len(p.stays) > staysMost*7/8 {
				delete(p.stays, c)
			}
		}
	}
	p.stays[client] = stay{endpoint, now + p.service.Affinity}
}

// Answered tells that the endpoint has begun to answer.
func (t *Table) Answered(h *Held) {
	h.port.mu.Lock()
	defer h.port.mu.Unlock()
	h.side.balancer.Answered(&h.ticket, t.now())
}

// Done ends what is held.
func (t *Table) Done(h *Held, o balance.Outcome) {
	h.port.mu.Lock()
	defer h.port.mu.Unlock()
	h.side.held--
	h.side.balancer.Done(h.ticket, t.now(), o)
	if o == balance.Served {
		h.side.done[h.ticket.Node]++
	}
	if o == balance.Failed && h.port.stays[h.client].endpoint == h.ticket.Endpoint {
		delete(h.port.stays, h.client) // it would fail again
	}
}

// Serves says whether what is held is still there, and serves, if only until it ends.
func (t *Table) Serves(h *Held) bool {
	h.port.mu.Lock()
	defer h.port.mu.Unlock()
	if now := h.port.Port; h.seen != now && slices.ContainsFunc(now.Endpoints, func(e snapshot.Endpoint) bool {
		return e.Addr == h.Endpoint && (e.Ready || e.Serving)
	}) {
		h.seen = now
	}
	return h.seen == h.port.Port
}

// Flights are what this node has sent to the endpoints of a Service: of each node what is
// at its servers, on average since the last Learn, and what it has answered so far.
type Flights struct {
	Service snapshot.Key
	ByNode  map[string]Flight
	// Pods are those of this node, by their UIDs.
	Pods []string
}

// A Flight is what was sent to a node.
type Flight struct {
	InFlight float64
	Done     uint64
}

// Flights are those of every Service that clients of this node have called lately, or that
// has pods here.
func (t *Table) Flights() []Flights {
	t.mu.RLock()
	defer t.mu.RUnlock()
	now := t.now()
	var all []Flights
	for _, key := range t.Alive() {
		s := t.services[key]
		if s == nil || !t.stays(s, now) {
			continue
		}
		f := Flights{Service: key, ByNode: map[string]Flight{}, Pods: s.pods}
		for _, p := range s.ports {
			p.flights(f.ByNode, now)
		}
		all = append(all, f)
	}
	return all
}

// flights adds what the port has sent.
func (p *port) flights(to map[string]Flight, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.called() {
		for node, inFlight := range s.balancer.InFlight(now) {
			f := to[node]
			f.InFlight += inFlight
			to[node] = f
		}
		for node, done := range s.done {
			f := to[node]
			f.Done += done
			to[node] = f
		}
	}
}

// called are the sides that clients of this node have called lately.
func (p *port) called() []*side {
	return slices.DeleteFunc([]*side{&p.cluster, &p.local}, func(s *side) bool { return s.balancer == nil || s.asleep })
}

// sides are those that a Service's traffic policies name, and those that were called.
func (p *port) sides() (all []*side) {
	if !p.service.InternalLocal || p.cluster.balancer != nil {
		all = append(all, &p.cluster)
	}
	if p.service.InternalLocal || p.service.ExternalLocal || p.local.balancer != nil {
		all = append(all, &p.local)
	}
	return all
}

// Learn has the balancers of Services know what is known of nodes now.
func (t *Table) Learn(services []snapshot.Key, about About) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	now := t.now()
	for _, key := range services {
		s := t.services[key]
		if s == nil {
			continue
		}
		for _, p := range s.ports {
			p.mu.Lock()
			for _, side := range p.called() {
				side.balancer.Learn(t.view(key, side.routes, about).Nodes, now)
			}
			p.mu.Unlock()
		}
	}
}

// Explain says of each port of a Service what its next choice rests on; nothing where
// there is no such Service.
func (t *Table) Explain(key snapshot.Key) []Explanation {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.services[key]
	if s == nil {
		return nil
	}
	var all []Explanation
	for _, p := range s.ports {
		p.mu.Lock()
		for _, side := range p.sides() {
			if side.balancer == nil { // what its first choice would rest on
				if asked := (*side); t.wake(key, &asked) == nil {
					side = &asked
				}
			}
			all = append(all, Explanation{Service: key.String(), Port: p.Port.Port, Protocol: p.Protocol, TrafficPolicy: side.policy, Explanation: side.balancer.Explain(t.now())})
		}
		p.mu.Unlock()
	}
	return all
}

// Keys are those of all Services, sorted.
func (t *Table) Keys() []snapshot.Key {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(t.services), func(a, b snapshot.Key) int { return strings.Compare(a.String(), b.String()) })
}

// An Explanation is of a port of a Service, for clients that a traffic policy is for.
type Explanation struct {
	Service       string            `json:"service"`
	Port          uint16            `json:"port"`
	Protocol      snapshot.Protocol `json:"protocol"`
	TrafficPolicy string            `json:"trafficPolicy"` // Cluster or Local
	balance.Explanation
}
