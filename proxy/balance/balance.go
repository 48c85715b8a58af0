// Package balance decides which endpoint of a Service gets the next connection. It is
// pure: what it knows comes in by Update, the time with every call, its randomness from
// the seed of New; it opens no connection and reads no clock. Time is a Duration since
// any one moment that the caller keeps to.
//
// A connection: Pick gives a Ticket, under which it counts as in flight; Done takes the
// ticket back with what came of it. Both cost the same however many endpoints there are.
// A Balancer serves one Service on one node and is not safe for concurrent use.
//
// Start at Balancer; the policies are a file each, and sim runs them against each other.
package balance

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// ErrNoEndpoint is of a Service that has no endpoint that takes connections.
var ErrNoEndpoint = errors.New("no endpoint takes connections")

// An Endpoint is one address that serves.
type Endpoint struct {
	ID   string // unique in its Service, such as 10.1.2.3:80
	Node string // where it runs; "" is told of nobody
}

// A Measured value was so at a time. The zero value is of nothing measured.
type Measured[T any] struct {
	Value T
	At    time.Duration
	Known bool
}

// Known is a value as measured at a time.
func Known[T any](value T, at time.Duration) Measured[T] {
	return Measured[T]{Value: value, At: at, Known: true}
}

// fresh says whether the value is known and no older than a limit.
func (m Measured[T]) fresh(now, limit time.Duration) bool {
	return m.Known && now-m.At <= limit
}

// or is the value, or another where nothing was measured.
func (m Measured[T]) or(other Measured[T]) Measured[T] {
	if m.Known {
		return m
	}
	return other
}

// Usage is what the Service's pods on a node use, as a share of their limits.
type Usage struct {
	CPU float64 `json:"cpu"`
	RAM float64 `json:"ram"`
}

// Queue is what the Service has at a node, whoever sent it.
type Queue struct {
	InFlight float64       `json:"inFlight"`  // there on average over the last report's time, not on the wire
	Service  time.Duration `json:"serviceNs"` // what one takes alone, on average over Served of them
	Served   float64       `json:"served"`    // 0: Service is not known
	Cores    float64       `json:"cores"`     // that may work at the same time; 0 is not known
	Said     time.Duration `json:"-"`         // when the oldest of it was, of what several have said; 0 is not known
}

// A Node has endpoints of the Service.
type Node struct {
	Name  string
	Local bool
	Far   bool // in another zone: what is taken for its round trip until that is measured
	Usage Measured[Usage]
	Queue Measured[Queue]
	RTT   Measured[time.Duration]
}

// A View is all that is known of a Service at a time.
type View struct {
	Endpoints []Endpoint
	Nodes     []Node
}

// An Outcome is what came of a connection.
type Outcome int

// The outcomes. Void tells nothing of the endpoint: the client left, or a policy changed.
const (
	Served Outcome = iota
	Failed
	Void
)

// A Ticket is a connection under way.
type Ticket struct {
	Endpoint string
	Node     string
	to       *endpoint
	at       *node
	begun    time.Duration
	answered bool
}

// A Balancer chooses for one Service.
type Balancer struct {
	options Options // with their defaults
	policy  policy
	back    time.Duration // when the next endpoint that is left out returns; 0 is never
	rand    *rand.Rand
	all     []*endpoint
	field   field
	byID    map[string]*endpoint
	byNode  map[string]*node
}

// field is what policies look at: the endpoints that take connections, in the order of the
// view, and their nodes.
type field struct {
	endpoints []*endpoint
	nodes     []*node
	local     *node // nil where no endpoint is local
	remote    []*endpoint
	rand      *rand.Rand
}

// endpoint is one with what this balancer has seen of it.
type endpoint struct {
	Endpoint
	at       *node
	inFlight int
	chosen   uint64
	latency  peak // of policy ewma
	standing standing
}

// node is one with what this balancer has seen of it.
type node struct {
	Node
	endpoints []*endpoint
	next      int // whose turn it is among the endpoints
	inFlight  int
	seen      observed
}

// policy chooses one of the endpoints that are there. It is asked after refresh, which
// comes with all that is learned, and told what each connection took.
type policy interface {
	refresh(f *field, now time.Duration)
	pick(f *field, now time.Duration) *endpoint
	observe(e *endpoint, now, took time.Duration)
}

// New is a balancer of a policy. Its random choices are those of the seed.
func New(o Options, seed uint64) (*Balancer, error) {
	b := &Balancer{rand: rand.New(rand.NewPCG(seed, 0)), byID: map[string]*endpoint{}, byNode: map[string]*node{}} //nolint:gosec // chooses, hides nothing
	b.field.rand = b.rand
	return b, b.SetPolicy(o, 0)
}

// SetPolicy has later picks made by another policy. Tickets stay good, and what was seen
// of endpoints is kept; those that were left out are not, by one that leaves none out.
func (b *Balancer) SetPolicy(o Options, now time.Duration) error {
	o = o.withDefaults()
	p, err := o.policy()
	if err != nil {
		return err
	}
	b.options, b.policy = o, p
	if !o.Eject {
		for _, e := range b.all {
			e.standing.until = 0
		}
	}
	b.gather(now)
	return nil
}

// Update takes a new view. Endpoints and nodes that were in the last keep what was seen
// of them, and what was known of nodes where the view knows nothing; connections to those
// that are gone still end by Done.
func (b *Balancer) Update(v View, now time.Duration) {
	b.nodes(v.Nodes, now)
	old := b.byID
	b.byID = make(map[string]*endpoint, len(v.Endpoints))
	b.all = b.all[:0]
	for _, e := range v.Endpoints {
		have := old[e.ID]
		if have == nil || have.Node != e.Node {
			have = &endpoint{Endpoint: e}
		}
		have.at = b.node(e.Node)
		b.byID[e.ID] = have
		b.all = append(b.all, have)
	}
	b.gather(now)
}

// nodes takes the nodes of a view.
func (b *Balancer) nodes(list []Node, now time.Duration) {
	old := b.byNode
	b.byNode = make(map[string]*node, len(list))
	for _, n := range list {
		have := old[n.Name]
		if have == nil {
			have = &node{}
		}
		have.learn(n.or(have.Node), now)
		b.byNode[n.Name] = have
	}
	for _, n := range old { // a policy may still have it
		n.endpoints = nil
	}
}

// or is the node with what was known of it, where nothing is.
func (n Node) or(was Node) Node {
	n.Usage, n.Queue, n.RTT = n.Usage.or(was.Usage), n.Queue.or(was.Queue), n.RTT.or(was.RTT)
	return n
}

// learn takes what is known of a node. A new report of its queue ends the time in which
// what this balancer has there was averaged.
func (n *node) learn(known Node, now time.Duration) {
	if known.Queue.Known && (!n.Queue.Known || known.Queue.At != n.Queue.At) {
		n.report(now)
	}
	n.Node = known
}

// Learn takes what is known of nodes by now; endpoints stay as they are.
func (b *Balancer) Learn(list []Node, now time.Duration) {
	for _, known := range list {
		if n := b.byNode[known.Name]; n != nil {
			n.learn(known, now)
		}
	}
	b.policy.refresh(&b.field, now)
}

// node is that of a name, with nothing known of it where the view had none.
func (b *Balancer) node(name string) *node {
	n := b.byNode[name]
	if n == nil {
		n = &node{Node: Node{Name: name}}
		b.byNode[name] = n
	}
	return n
}

// gather lists for the policy who takes connections.
func (b *Balancer) gather(now time.Duration) {
	if b.options.Eject {
		readmit(b.all, now)
	}
	f := &b.field
	f.endpoints, f.nodes, f.remote, f.local, b.back = f.endpoints[:0], f.nodes[:0], f.remote[:0], nil, 0
	for _, n := range b.byNode {
		n.endpoints = n.endpoints[:0]
	}
	for _, e := range b.all {
		if b.options.Eject && e.standing.out(now) {
			if b.back == 0 || e.standing.until < b.back {
				b.back = e.standing.until
			}
			continue
		}
		f.add(e)
	}
	b.policy.refresh(f, now)
}

// add takes an endpoint into the lists.
func (f *field) add(e *endpoint) {
	n := e.at
	f.endpoints = append(f.endpoints, e)
	if n.endpoints = append(n.endpoints, e); len(n.endpoints) == 1 {
		f.nodes = append(f.nodes, n)
	}
	if n.Local {
		f.local = n
	} else {
		f.remote = append(f.remote, e)
	}
}

// Pick chooses the endpoint of the next connection: none of those that it was tried to
// give to before, while there is another.
func (b *Balancer) Pick(now time.Duration, tried ...string) (Ticket, error) {
	if b.back != 0 && now >= b.back {
		b.gather(now)
	}
	if len(b.field.endpoints) == 0 {
		return Ticket{}, ErrNoEndpoint
	}
	e := b.policy.pick(&b.field, now)
	if slices.Contains(tried, e.ID) {
		e = b.field.other(e, tried)
	}
	return b.give(e, now), nil
}

// other is any that was not tried; an endpoint itself where all were.
func (f *field) other(e *endpoint, tried []string) *endpoint {
	n := len(f.endpoints)
	for first, i := f.rand.IntN(n), 0; i < min(n, len(tried)+1); i++ {
		if other := f.endpoints[(first+i)%n]; !slices.Contains(tried, other.ID) {
			return other
		}
	}
	return e
}

// Take chooses the endpoint of an ID, where it takes connections: of a client that stays
// with it.
func (b *Balancer) Take(id string, now time.Duration) (Ticket, bool) {
	e := b.byID[id]
	if e == nil || b.options.Eject && e.standing.out(now) {
		return Ticket{}, false
	}
	return b.give(e, now), true
}

// give counts a connection to an endpoint.
func (b *Balancer) give(e *endpoint, now time.Duration) Ticket {
	e.chosen++
	e.inFlight++
	e.at.move(now, 1)
	return Ticket{Endpoint: e.ID, Node: e.Node, to: e, at: e.at, begun: now}
}

// InFlight is what this balancer has at the servers of each node, on average since it was
// told of their queues; nil where it has nothing anywhere.
func (b *Balancer) InFlight(now time.Duration) (all map[string]float64) {
	for _, n := range b.field.nodes {
		n.move(now, 0)
		if span := now - n.seen.opened; span > 0 && n.seen.area > 0 {
			if all == nil {
				all = map[string]float64{}
			}
			all[n.Name] = b.options.atServer(n, now) * n.seen.area / float64(span)
		}
	}
	return all
}

// Answered tells that a connection's endpoint has begun to answer: the time that this
// took is its latency. Where it is not told, the connection's whole time is.
func (b *Balancer) Answered(t *Ticket, now time.Duration) {
	if !t.answered {
		t.answered = true
		b.policy.observe(t.to, now, now-t.begun)
		t.at.seen.served(now, now-t.begun)
	}
}

// Done ends a connection. A ticket is good once.
func (b *Balancer) Done(t Ticket, now time.Duration, o Outcome) {
	t.to.inFlight--
	t.at.move(now, -1)
	switch {
	case o == Void:
		return
	case o == Served:
		b.Answered(&t, now)
	case !t.answered:
		b.policy.observe(t.to, now, now-t.begun)
	}
	if b.options.Eject && t.to.standing.judge(now, o == Served, len(b.all)-len(b.field.endpoints), len(b.all)) {
		b.gather(now)
	}
}
