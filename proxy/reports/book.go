package reports

import (
	"math"
	"slices"
	"time"

	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/snapshot"
)

const (
	// age is how old what a proxy has said may be: ten reports.
	age = time.Second
	// forgetAfter is when one who says nothing is forgotten, so that one who begins anew
	// with an earlier clock is heard again.
	forgetAfter = 10 * time.Second
	// serviceDecay is the time in which requests lose their weight in a service time, but
	// for a share of 1/e.
	serviceDecay = 5 * time.Second
	// rttWeight is the weight of a new round trip in the average.
	rttWeight = 0.2
	// peersMost bounds of how many is kept what they say.
	peersMost = 10_000
)

// A Book is what is known by reports. It is not for concurrent use.
type Book struct {
	node  string
	epoch int64
	peers map[string]*peer
	rates map[rateKey]*rate
}

// peer is who sends reports.
type peer struct {
	epoch    int64
	number   uint64
	heard    time.Duration // when, by our clock
	sent     time.Duration // of that, by its clock
	rtt      float64       // ns; 0 is not known
	services map[snapshot.Key]said
}

// said is what one has said of a Service.
type said struct {
	Service
	at time.Duration
}

type rateKey struct {
	service snapshot.Key
	node    string
}

// rate is what a node's pods have worked and answered lately.
type rate struct {
	worked time.Duration // as told last
	done   uint64        // by all, as told last
	spent  float64       // ns, those long ago decayed
	served float64
	at     time.Duration
}

// NewBook is that of a node's proxy, which began at an epoch: ns since 1970.
func NewBook(node string, epoch int64) *Book {
	return &Book{node: node, epoch: epoch, peers: map[string]*peer{}, rates: map[rateKey]*rate{}}
}

// Say notes what this proxy itself says: it is in the book as others are.
func (b *Book) Say(services []Service, now time.Duration) {
	p := b.peer(b.node)
	p.epoch, p.heard = b.epoch, now
	p.take(services, now)
}

func (b *Book) peer(node string) *peer {
	p := b.peers[node]
	if p == nil {
		p = &peer{services: map[snapshot.Key]said{}}
		b.peers[node] = p
	}
	return p
}

func (p *peer) take(services []Service, now time.Duration) {
	for _, s := range services {
		p.services[s.Key] = said{s, now}
	}
	for key, s := range p.services {
		if now-s.at > forgetAfter {
			delete(p.services, key)
		}
	}
}

// Hear takes a message, and says whether it is news: not one that came before, nor one of
// an earlier life of its sender.
func (b *Book) Hear(m *Message, now time.Duration) bool {
	p, known := b.peers[m.Node]
	if known && now-p.heard > forgetAfter {
		delete(b.peers, m.Node)
		known = false
	}
	switch {
	case m.Node == b.node, !known && len(b.peers) >= peersMost:
		return false
	case known && (m.Epoch < p.epoch || m.Epoch == p.epoch && m.Number <= p.number):
		return false
	}
	p = b.peer(m.Node)
	p.epoch, p.number, p.heard, p.sent = m.Epoch, m.Number, now, m.Sent
	if m.Echo.Epoch == b.epoch && m.Echo.Epoch != 0 {
		p.echoed(now - m.Echo.Sent - m.Echo.Held)
	}
	p.take(m.Services, now)
	return true
}

// echoed takes a round trip. One that is not positive is of a clock that cannot be.
func (p *peer) echoed(rtt time.Duration) {
	switch ns := float64(rtt); {
	case rtt <= 0:
	case p.rtt == 0:
		p.rtt = ns
	default:
		p.rtt += rttWeight * (ns - p.rtt)
	}
}

// Echo is the answer to the last that was heard of a node.
func (b *Book) Echo(node string, now time.Duration) Echo {
	p := b.peers[node]
	if p == nil || node == b.node {
		return Echo{}
	}
	return Echo{Epoch: p.epoch, Sent: p.sent, Held: now - p.heard}
}

// RTT is the round trip to a node, as reports took it.
func (b *Book) RTT(node string) balance.Measured[time.Duration] {
	p := b.peers[node]
	if p == nil || p.rtt == 0 {
		return balance.Measured[time.Duration]{}
	}
	return balance.Known(time.Duration(p.rtt), p.heard)
}

// About is what is known of a node that has pods of a Service.
func (b *Book) About(service snapshot.Key, node string, now time.Duration) balance.Node {
	n := balance.Node{Name: node, Local: node == b.node, RTT: b.RTT(node)}
	own, ok := b.fresh(node, service, now)
	if !ok || !own.Pods {
		return n
	}
	n.Usage = balance.Known(balance.Usage{CPU: own.CPU, RAM: own.RAM}, own.at)
	q := balance.Queue{Cores: own.Cores}
	var done uint64
	for name := range b.peers {
		s, ok := b.fresh(name, service, now)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(s.Flights, func(f Flight) bool { return f.Node == node }); i >= 0 {
			q.InFlight += s.Flights[i].InFlight
			done += s.Flights[i].Done
		}
	}
	r := b.rate(rateKey{service, node})
	r.add(own.Worked, done, q.InFlight > 0, now)
	if r.served > 0 {
		q.Service, q.Served = time.Duration(r.spent/r.served), r.served
	}
	n.Queue = balance.Known(q, now)
	return n
}

// fresh is what a node has said of a Service, if it is no older than age.
func (b *Book) fresh(node string, service snapshot.Key, now time.Duration) (said, bool) {
	p := b.peers[node]
	if p == nil {
		return said{}, false
	}
	s, ok := p.services[service]
	return s, ok && now-s.at <= age
}

func (b *Book) rate(key rateKey) *rate {
	r := b.rates[key]
	if r == nil {
		r = &rate{at: math.MinInt64}
		b.rates[key] = r
	}
	return r
}

// add takes what was worked and answered so far, and whether anything is asked now. A count
// that shrinks is of one who has begun anew, or is not heard any more: it begins anew here
// as well, as after a silence. What pods work while nobody asks, as when they start, is for
// no request.
func (r *rate) add(worked time.Duration, done uint64, asked bool, now time.Duration) {
	if r.at != math.MinInt64 {
		keep := math.Exp(-float64(now-r.at) / float64(serviceDecay))
		r.spent *= keep
		r.served *= keep
		heard := now-r.at <= age && worked >= r.worked && done >= r.done
		if heard && (asked || done > r.done) {
			r.spent += float64(worked - r.worked)
			r.served += float64(done - r.done)
		}
	}
	r.worked, r.done, r.at = worked, done, now
}

// Forget drops what is told of Services that are gone.
func (b *Book) Forget(service snapshot.Key) {
	for _, p := range b.peers {
		delete(p.services, service)
	}
	for key := range b.rates {
		if key.service == service {
			delete(b.rates, key)
		}
	}
}
