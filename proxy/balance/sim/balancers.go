package sim

import (
	"math"
	"time"

	"skerry.dev/skerry/proxy/balance"
)

// balancers are one a node, and what they are told.
type balancers struct {
	of    []*balance.Balancer
	index map[string]int
	views []balance.View
}

func newBalancers(c Case, o balance.Options, seed uint64) (*balancers, error) {
	b := &balancers{index: map[string]int{}}
	for i := range c.Nodes {
		b.index[nodeName(i)] = i
	}
	o.RoundTrips = c.RoundTrips
	for at := range c.Nodes {
		own, err := balance.New(o, seed*uint64(len(c.Nodes))+uint64(at))
		if err != nil {
			return nil, err
		}
		var v balance.View
		for i := range c.Nodes {
			name := nodeName(i)
			v.Endpoints = append(v.Endpoints, balance.Endpoint{ID: name, Node: name})
			v.Nodes = append(v.Nodes, balance.Node{Name: name, Local: i == at, RTT: balance.Known(c.Delay, 0)})
		}
		own.Update(v, 0)
		b.of, b.views = append(b.of, own), append(b.views, v)
	}
	return b, nil
}

func (b *balancers) pick(r *run, at int) (int, balance.Ticket) {
	t, err := b.of[at].Pick(r.now)
	if err != nil {
		panic(err) // every node has a pod
	}
	return b.index[t.Node], t
}

func (b *balancers) done(r *run, q *request) {
	outcome := balance.Served
	if q.failed {
		outcome = balance.Failed
	}
	b.of[q.at].Done(q.ticket, r.now, outcome)
}

// reportUsage tells every balancer what each node uses.
func (b *balancers) reportUsage(r *run) {
	for i := range r.servers {
		s := &r.servers[i]
		s.tally(r.now)
		cpu := balance.Known(balance.Usage{CPU: s.usage(r.Reports.Usage)}, r.now)
		for at := range b.views {
			b.views[at].Nodes[i].Usage = cpu
		}
	}
	for at, own := range b.of {
		own.Learn(b.views[at].Nodes, r.now)
	}
}

// reportQueue tells every balancer what a node has in flight.
func (b *balancers) reportQueue(r *run, i int) {
	s := &r.servers[i]
	s.tally(r.now)
	queue := balance.Known(s.queue(r.Reports.Queue), r.now)
	for at, own := range b.of {
		n := &b.views[at].Nodes[i]
		n.Queue, n.RTT = queue, balance.Known(r.rtt(at, i), r.now)
		own.Learn(b.views[at].Nodes, r.now)
	}
}

// usage is the share of its cores that the server used in the last so long.
func (s *server) usage(span time.Duration) float64 {
	u := s.worked / (float64(span) * float64(s.cores))
	s.worked = 0
	return u
}

// queue is what the server tells of the last so long.
func (s *server) queue(span time.Duration) balance.Queue {
	q := balance.Queue{InFlight: s.queued / float64(span), Cores: float64(s.cores), Served: s.services}
	if s.services > 0 {
		q.Service = time.Duration(s.spent / s.services)
	}
	s.queued = 0
	keep := math.Exp(-float64(span) / float64(serviceDecay))
	s.spent, s.services = keep*s.spent, keep*s.services
	return q
}

// serviceDecay is the time in which requests lose their weight in a service time, but for
// a share of 1/e.
const serviceDecay = 5 * time.Second
