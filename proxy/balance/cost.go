package balance

import (
	"cmp"
	"math"
	"time"
)

// What is taken for a round trip that nobody has measured.
const (
	rttNear = time.Millisecond
	rttFar  = 10 * time.Millisecond
)

// A remote node is taken where its cost and leaveFixed are below leaveShare of home's.
const (
	leaveFixed = 500 * time.Microsecond
	leaveShare = 0.9
)

// fewAtHome is how many this proxy may have in flight at home and try nobody whose round
// trip is not known: a client that has its answer may ask again before the last has ended.
const fewAtHome = 2

// A node of fewer than idleMost requests a core idles now and then; from there on the weight of
// a queue falls, the sooner the greater idleFall is.
const (
	idleMost = 1.6
	idleFall = 6
)

// What left home lately is an average over that many requests, and taken for leftMost at most.
const (
	leftSpan = 64
	leftMost = 0.9
)

// leastShare is the least share of a request's time that it is taken to be at the server.
const leastShare = 0.02

// crowdMost is how many proxies at most are taken to do as this one does.
const crowdMost = 4

// priorServed is how many requests' worth a service time that is usual elsewhere weighs
// against what is known of a node: with few requests that is chance, and a node that had
// one long one would never be asked again.
const priorServed = 10

// cost takes the endpoint where a request is expected to take the least time: round trips
// on the wire, then the service time, longer by what waits there. It compares home with
// two random others, and leaves home only for a clear gain.
//
// Proxies that know the same would all go the same way at once, and be told so a report
// later. So what this one has sent somewhere since the last report counts for as many as
// do the same: the ratio of what is in flight at the remote nodes to what this proxy has
// there.
//
// What is not known has a stand-in, in this order: without a fresh queue, what this proxy
// itself has in flight there; without a service time, the least latency seen less the
// round trips, then what is usual elsewhere; without cores, what is usual elsewhere, so
// that nobody seems faster for not having told yet; without a round trip, what is usual
// so far away. Where nothing is known, home costs nothing, so it is home, and without one
// any; a home where this proxy has few in flight is not left for a node whose round trip
// is not known.
type cost struct {
	Options
	usual time.Duration // the service time over all nodes; 0 is not known
	cores float64       // of a node, on average over those that are known; 0 is not known
	crowd float64       // how many proxies do as this one does
	left  float64       // the share of requests that left home lately
}

func (p *cost) refresh(f *field, now time.Duration) {
	var there, own, served, worked, cores, told float64
	p.usual = 0
	for _, n := range f.nodes {
		q := n.Queue.Value
		if n.Queue.Known && q.Cores > 0 {
			cores, told = cores+q.Cores, told+1
		}
		served += q.Served
		worked += q.Served * float64(q.Service)
		if !n.Local && n.Queue.fresh(now, p.QueueAge) {
			there += q.InFlight
			own += p.atServer(n, now) * n.seen.share
		}
		if s := p.least(n, now); s > 0 && (p.usual == 0 || s < p.usual) {
			p.usual = s
		}
	}
	p.cores = cores / max(1, told)
	p.crowd = min(crowdMost, max(1, there/max(own, 1e-3)))
	if served > 0 {
		p.usual = time.Duration(worked / served)
	}
}

func (p *cost) observe(*endpoint, time.Duration, time.Duration) {}

func (p *cost) pick(f *field, now time.Duration) *endpoint {
	if len(f.remote) == 0 {
		return f.lighter(f.local, now)
	}
	a, b := f.two(f.remote)
	if nearer, other := p.ofEndpoint(a, now), p.ofEndpoint(b, now); other < nearer || other == nearer && b.inFlight < a.inFlight {
		a = b
	}
	if f.local == nil {
		return a
	}
	home := f.lighter(f.local, now)
	if !p.leaves(home, a, now) {
		p.left -= p.left / leftSpan
		return home
	}
	p.left += (1 - p.left) / leftSpan
	return a
}

// leaves says whether a request does better away than at home, by more than a little.
func (p *cost) leaves(home, away *endpoint, now time.Duration) bool {
	if !away.at.RTT.fresh(now, p.RTTAge) && home.at.inFlight < fewAtHome {
		return false
	}
	gamma := p.weight(away.at, now)
	return p.weighed(away, gamma, now)+float64(leaveFixed) < leaveShare*p.weighed(home, gamma, now)
}

// weight is how much a queue weighs where home is left for a node. At 1 it is the time
// that it takes. More has cores worked that would idle, at the price of longer ways; so it
// falls to 1 where more than idleMost a core are at that node. It is as many times more as
// requests come for each that stays: the sooner the next comes, the less has to wait for home
// not to idle.
func (p *cost) weight(away *node, now time.Duration) float64 {
	load := p.queue(away, now) / max(1, p.coresOf(away))
	comeForOne := 1 / (1 - min(p.left, leftMost))
	return 1 + (p.Gamma-1)*comeForOne/(1+math.Pow(load/idleMost, idleFall))
}

// lighter is of two of a node's endpoints the one with less in flight, for what it is worth.
func (f *field) lighter(n *node, now time.Duration) *endpoint {
	a, b := f.two(n.endpoints)
	if b.crowded(now) < a.crowded(now) {
		return b
	}
	return a
}

// crowded is how many have to share an endpoint with the next request: more while it is back
// only lately.
func (e *endpoint) crowded(now time.Duration) float64 {
	return float64(e.inFlight+1) / e.standing.share(now)
}

// ofEndpoint is what the next request is expected to cost at an endpoint, in ns: more
// while it is back only lately.
func (p *cost) ofEndpoint(e *endpoint, now time.Duration) float64 {
	return p.weighed(e, p.Gamma, now)
}

// weighed is that with another weight of what waits there.
func (p *cost) weighed(e *endpoint, gamma float64, now time.Duration) float64 {
	n := e.at
	wire := float64(p.RoundTrips) * float64(p.rtt(n, now))
	return (wire + p.alone(n, now)*(1+gamma*p.waiting(n, now))) / e.standing.share(now)
}

// alone is what a request takes at a node where nobody waits, in ns: longer than its CPU time
// where there is less than a core for it.
func (p *cost) alone(n *node, now time.Duration) float64 {
	return float64(p.service(n, now)) / min(1, p.coresOf(n))
}

// explain is what a request costs at an endpoint as it is compared with those at home, or of
// home with the nearest that is not.
func (p *cost) explain(e *endpoint, f *field, now time.Duration) *CostTerms {
	away := e
	for _, r := range f.remote {
		if e.at.Local && (away == e || p.ofEndpoint(r, now) < p.ofEndpoint(away, now)) {
			away = r
		}
	}
	weight := p.Gamma
	if f.local != nil && !away.at.Local {
		weight = p.weight(away.at, now)
	}
	return &CostTerms{
		Total: time.Duration(p.weighed(e, weight, now)), Wire: time.Duration(p.RoundTrips) * p.rtt(e.at, now),
		Service: time.Duration(p.alone(e.at, now)), Waiting: p.waiting(e.at, now), Weight: weight,
	}
}

// waiting is how many service times the next request waits at a node.
func (p *cost) waiting(n *node, now time.Duration) float64 {
	cores := max(1, p.coresOf(n))
	return max(0, (p.queue(n, now)+1-cores)/cores)
}

// coresOf a node are how many may work there, 1 where that is known of none.
func (p *cost) coresOf(n *node) float64 {
	if n.Queue.Known && n.Queue.Value.Cores > 0 {
		return n.Queue.Value.Cores
	}
	return cmp.Or(p.cores, 1)
}

// queue is what is taken to be at a node's servers: what it reported, and what this proxy
// and those that do as it does have sent there since.
func (p *cost) queue(n *node, now time.Duration) float64 {
	atServer := p.atServer(n, now)
	own := atServer * float64(n.inFlight)
	if !n.Queue.fresh(now, p.QueueAge) {
		return own
	}
	crowd := p.crowd
	if n.Local {
		crowd = 1
	}
	return max(own, n.Queue.Value.InFlight+crowd*(own-atServer*n.seen.share))
}

// atServer is the share of this proxy's requests to a node that are at the server and not
// on the wire.
func (o *Options) atServer(n *node, now time.Duration) float64 {
	if n.Local || n.seen.latency == 0 {
		return 1
	}
	wire := float64(o.RoundTrips) * float64(o.rtt(n, now))
	return min(1, max(leastShare, 1-wire/n.seen.latency))
}

// rtt is the round trip to a node.
func (o *Options) rtt(n *node, now time.Duration) time.Duration {
	switch {
	case n.Local:
		return 0
	case n.RTT.fresh(now, o.RTTAge):
		return n.RTT.Value
	case n.Far:
		return rttFar
	default:
		return rttNear
	}
}

// service is what a request takes alone at a node: 0 is not known.
func (p *cost) service(n *node, now time.Duration) time.Duration {
	if q := n.Queue.Value; q.Served > 0 {
		return time.Duration((q.Served*float64(q.Service) + priorServed*float64(p.usual)) / (q.Served + priorServed))
	}
	if s := p.least(n, now); s > 0 {
		return s
	}
	return p.usual
}

// least is a service time by the least latency seen.
func (p *cost) least(n *node, now time.Duration) time.Duration {
	if n.seen.least == 0 {
		return 0
	}
	return max(0, n.seen.least-time.Duration(p.RoundTrips)*p.rtt(n, now))
}

// Weights are for data planes that cannot count what is in flight: each endpoint's share
// of new connections, by the inverse of its cost, in the order of the view. They add up
// to 1; an endpoint that is left out has none. Other policies share equally.
func (b *Balancer) Weights(now time.Duration) []float64 {
	weights := make([]float64, len(b.all))
	sum := 0.0
	for i, e := range b.all {
		if b.options.Eject && e.standing.out(now) {
			continue
		}
		weights[i] = 1
		if p, ok := b.policy.(*cost); ok {
			weights[i] = 1 / (max(p.ofEndpoint(e, now), float64(leaveFixed)) * float64(len(e.at.endpoints)))
		}
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}

// seenDecay is the time in which an observed latency loses its weight but for 1/e.
const seenDecay = 500 * time.Millisecond

// leastPeriod is for how long at least the least latency is kept; twice that at most.
const leastPeriod = 10 * time.Second

// observed is what this proxy has seen of its own connections to a node.
type observed struct {
	latency       float64       // ns, a moving average of those served
	at            time.Duration // of the last of them
	least         time.Duration // the least latency of this period and the last
	lately        time.Duration // of this period alone
	period        time.Duration // when this one began
	share         float64       // in flight on average over the time of the last report
	area          float64       // in flight × ns since the last report
	opened, moved time.Duration // when that began, and when in flight last changed
}

// move counts connections that begin, or end.
func (n *node) move(now time.Duration, by int) {
	n.seen.area += float64(n.inFlight) * float64(now-n.seen.moved)
	n.seen.moved = now
	n.inFlight += by
}

// report ends the time of a report: what was in flight in it, on average, is kept.
func (n *node) report(now time.Duration) {
	n.move(now, 0)
	if span := now - n.seen.opened; span > 0 {
		n.seen.share = n.seen.area / float64(span)
	}
	n.seen.area, n.seen.opened = 0, now
}

// served takes the latency of a request.
func (o *observed) served(now, took time.Duration) {
	keep := math.Exp(-float64(now-o.at) / float64(seenDecay))
	if o.latency == 0 {
		keep = 0
	}
	o.latency = o.latency*keep + float64(took)*(1-keep)
	o.at = now
	if now-o.period > leastPeriod {
		o.least, o.lately, o.period = o.lately, 0, now
	}
	if o.lately == 0 || took < o.lately {
		o.lately = took
	}
	if o.least == 0 || o.lately < o.least {
		o.least = o.lately
	}
}
