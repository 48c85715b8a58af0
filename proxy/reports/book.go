package reports

import (
	"maps"
	"math"
	"time"

	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/snapshot"
)

const (
	// age is how old what a proxy has said may be: ten reports, or ageRounds times as many as it
	// takes until all peers have heard one.
	age       = time.Second
	ageRounds = 2
	// ageWords is how old it may be of a Service of which is spoken more seldom, since nobody calls
	// it there: as many times as long as between the last two. So one may be lost.
	ageWords = 2.5
	// Seldom is how seldom that is at most, for each of rounds.
	Seldom = 10 * Every
	// silence is after how long without a word one who begins anew with an earlier clock is
	// heard again.
	silence = 10 * time.Second
	// answerMost is how long an answer may take, on busy nodes that are far apart: less than
	// silence, within which nothing that came is heard again.
	answerMost = 5 * time.Second
	// allWithin is when one who was heard of has said all that there is, also where a report was
	// lost: what nobody calls is said once a second. It is for each of rounds.
	allWithin = 3 * time.Second
	// forgetAfter is when what nobody has said, or asked for, is forgotten.
	forgetAfter = time.Minute
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
	node   string
	epoch  int64
	peers  map[string]*peer
	rates  map[rateKey]*rate
	pruned time.Duration // when
}

// peer is who sends reports.
type peer struct {
	epoch    int64 // of the last that came, as are the next three
	number   uint64
	heard    time.Duration // when, by our clock
	sent     time.Duration // by its clock
	owed     bool          // it waits to hear this proxy
	rtt      float64       // ns; 0 is not known
	rttAt    time.Duration
	since    time.Duration // when it was believed first
	services map[snapshot.Key]*said
}

// said is what one has said of a Service: its Flights are in flights, each as said last.
type said struct {
	Service
	at      time.Duration
	every   time.Duration     // what was between the last two times
	flights map[string]flight // by node
}

type flight struct {
	Flight
	at time.Duration
}

type rateKey struct {
	service snapshot.Key
	node    string
}

// rate is what a node's pods have worked and answered lately.
type rate struct {
	worked time.Duration // since it was looked at last
	done   uint64        // the same, by all
	spent  float64       // ns, those long ago decayed
	served float64
	at     time.Duration // when it was looked at
}

// NewBook is that of a node's proxy, which began at an epoch: ns since 1970.
func NewBook(node string, epoch int64) *Book {
	return &Book{node: node, epoch: epoch, peers: map[string]*peer{}, rates: map[rateKey]*rate{}}
}

// Say notes what this proxy itself says: it is in the book as others are.
func (b *Book) Say(services []Service, now time.Duration) {
	p := b.peer(b.node)
	p.heard = now
	b.take(b.node, p, services, now)
	if now-b.pruned > silence {
		b.prune(now)
	}
}

func (b *Book) peer(node string) *peer {
	p := b.peers[node]
	if p == nil {
		p = &peer{services: map[snapshot.Key]*said{}}
		b.peers[node] = p
	}
	return p
}

// take takes what one says. Counts only grow: by how much is what is worked and answered
// since it said so last. What was never said is 0, once all has been.
func (b *Book) take(node string, p *peer, services []Service, now time.Duration) {
	all := node == b.node || now-p.since > allWithin*time.Duration(rounds(len(b.peers)))
	for _, s := range services {
		was := p.services[s.Key]
		if was == nil {
			was = &said{Service: s, at: now, flights: map[string]flight{}}
			p.services[s.Key] = was
		}
		if r := b.rates[rateKey{s.Key, node}]; r != nil {
			r.worked += max(0, s.Worked-was.Worked)
		}
		for _, f := range s.Flights {
			before, known := was.flights[f.Node]
			if r := b.rates[rateKey{s.Key, f.Node}]; r != nil && (known || all) && f.Done > before.Done {
				r.done += f.Done - before.Done
			}
			was.flights[f.Node] = flight{f, now}
		}
		s.Flights = nil
		if since := now - was.at; since >= Every/2 { // not of the same report
			was.every = min(since, Seldom*time.Duration(rounds(len(b.peers))))
		}
		was.Service, was.at = s, now
	}
}

// prune forgets what has been of no use for long.
func (b *Book) prune(now time.Duration) {
	b.pruned = now
	old := func(at time.Duration) bool { return now-at > forgetAfter }
	maps.DeleteFunc(b.peers, func(_ string, p *peer) bool { return old(p.heard) })
	maps.DeleteFunc(b.rates, func(_ rateKey, r *rate) bool { return old(r.at) })
	for _, p := range b.peers {
		maps.DeleteFunc(p.services, func(_ snapshot.Key, s *said) bool { return old(s.at) })
		for _, s := range p.services {
			maps.DeleteFunc(s.flights, func(_ string, f flight) bool { return old(f.at) })
		}
	}
}

// Hear takes a message, and says whether it is news: not one that came before, nor one of
// an earlier life of its sender, nor one that lay somewhere. It counts if it answers what
// this proxy has said, within answerMost: so whatever is sent again, even of who has long
// gone, changes nothing.
func (b *Book) Hear(m *Message, now time.Duration) bool {
	p := b.peers[m.Node]
	switch {
	case m.Node == b.node, p == nil && len(b.peers) >= peersMost:
		return false
	case p != nil && now-p.heard <= silence && (m.Epoch < p.epoch || m.Epoch == p.epoch && m.Number <= p.number):
		return false
	}
	p = b.peer(m.Node)
	rtt := now - m.Echo.Sent - m.Echo.Held
	answers := m.Echo.Epoch == b.epoch && rtt > 0 && rtt <= answerMost
	anew := m.Epoch != p.epoch
	if anew {
		*p = peer{services: map[snapshot.Key]*said{}}
	}
	if anew || answers { // what does not answer may have been for another node
		p.epoch, p.number, p.heard, p.sent = m.Epoch, m.Number, now, m.Sent
	}
	p.owed = p.owed || anew || !answers
	if answers {
		p.answered(rtt, now)
		b.take(m.Node, p, m.Services, now)
	}
	return answers
}

// answered takes a round trip.
func (p *peer) answered(rtt, now time.Duration) {
	if p.rttAt = now; p.rtt == 0 {
		p.rtt, p.since = float64(rtt), now
	}
	p.rtt += rttWeight * (float64(rtt) - p.rtt)
}

// Owed are those who have not heard this proxy since they began, or it them, and so wait
// to; each is told once.
func (b *Book) Owed() (nodes []string) {
	for node, p := range b.peers {
		if p.owed {
			nodes, p.owed = append(nodes, node), false
		}
	}
	return nodes
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
	return balance.Known(time.Duration(p.rtt), p.rttAt)
}

// About is what is known of a node that has pods of a Service.
func (b *Book) About(service snapshot.Key, node string, now time.Duration) balance.Node {
	n := balance.Node{Name: node, Local: node == b.node, RTT: b.RTT(node)}
	own, ok := b.fresh(node, service, now)
	if !ok || !own.Pods {
		return n
	}
	n.Usage = balance.Known(balance.Usage{CPU: own.CPU, RAM: own.RAM}, own.at)
	q, oldest := balance.Queue{Cores: own.Cores, Said: own.at}, now-b.age()
	for _, p := range b.peers {
		if s := p.services[service]; s != nil {
			if f, ok := s.flights[node]; ok && f.at >= oldest {
				if q.InFlight += f.InFlight; f.InFlight > 0 {
					q.Said = min(q.Said, f.at)
				}
			}
		}
	}
	r := b.rate(rateKey{service, node}, now)
	r.look(q.InFlight > 0, now)
	if r.served > 0 {
		q.Service, q.Served = time.Duration(r.spent/r.served), r.served
	}
	n.Queue = balance.Known(q, now)
	return n
}

// age is how old what is said may be, where as many speak.
func (b *Book) age() time.Duration {
	return max(age, ageRounds*Every*time.Duration(rounds(len(b.peers))))
}

// fresh is what a node has said of a Service, if it is no older than that, or than is usual.
func (b *Book) fresh(node string, service snapshot.Key, now time.Duration) (*said, bool) {
	p := b.peers[node]
	if p == nil {
		return nil, false
	}
	s, ok := p.services[service]
	return s, ok && now-s.at <= max(b.age(), time.Duration(ageWords*float64(s.every)))
}

func (b *Book) rate(key rateKey, now time.Duration) *rate {
	r := b.rates[key]
	if r == nil {
		r = &rate{at: now}
		b.rates[key] = r
	}
	return r
}

// look counts what was worked and answered since the last look, and whether anything is
// asked now; after a long time it only begins to count. What pods work while nobody asks,
// as when they start, is for no request.
func (r *rate) look(asked bool, now time.Duration) {
	keep := math.Exp(-float64(now-r.at) / float64(serviceDecay))
	r.spent *= keep
	r.served *= keep
	if now-r.at <= age && (asked || r.done > 0) {
		r.spent += float64(r.worked)
		r.served += float64(r.done)
	}
	r.worked, r.done, r.at = 0, 0, now
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
