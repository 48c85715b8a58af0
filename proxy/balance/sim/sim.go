// Package sim runs the policies of package balance against each other in made-up time:
// nodes with cores, delays between them, reports of an age, users that come in patterns,
// and nodes that fail or are slow. Equal cases with equal seeds give equal results, to
// the last request.
//
// Each node has users, a balancer and one pod; a user asks its own node, whose balancer
// chooses the pod. A connection takes RoundTrips round trips: the request is at the
// server after all but the last half of them. The server has a core for Cores requests at
// a time, the others wait in the order of their arrival.
//
// Start at Case.Run; Cases has those that are told of in docs/proxy.md.
package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"skerry.dev/skerry/proxy/balance"
)

// A Case is what happens to a cluster.
type Case struct {
	Name  string
	Nodes []Node
	// Delay is the round trip between two nodes, Inside that between a node and its own pod.
	Delay, Inside time.Duration
	// Service is what a request takes alone, on average; it is drawn from an exponential
	// distribution.
	Service time.Duration
	// RoundTrips is what a request takes on the wire.
	RoundTrips int
	// Moves is how often the users of each node go on to the next; 0 is never.
	Moves time.Duration

	Reports Reports
	// From and Until are the time that counts; what was before warms up.
	From, Until time.Duration
}

// A Node has a pod, and users.
type Node struct {
	Cores int
	// Users ask again as soon as they are answered.
	Users int
	// PerSecond come besides, at random times, whatever became of those before.
	PerSecond float64
	// Slower is how many times as long its pod takes. 0 is 1.
	Slower float64
	// Fails has its pod refuse at once.
	Fails bool
}

// Reports says how old what balancers know is.
type Reports struct {
	// Usage is the time over which CPU is averaged before it is told.
	Usage time.Duration
	// Queue is the time over which what is in flight is averaged before it is told.
	Queue time.Duration
}

// A Result is what users saw between From and Until.
type Result struct {
	// Goodput is what was served a second; Failed what was not.
	Goodput, Failed float64
	// Mean and P99 are of the response times of what was served.
	Mean, P99 time.Duration
	// ByNode is the part of what was served, or failed, that each node's pod had.
	ByNode []float64
}

// request is one under way.
type request struct {
	user   int // -1 came by itself
	at     int // where it was asked
	to     int
	ticket balance.Ticket
	begun  time.Duration
	failed bool
}

// run is one in progress.
type run struct {
	Case
	now     time.Duration
	rand    *rand.Rand
	events  queue
	users   []int // by user: the node where it began
	servers []server
	chooser chooser
	free    []*request
	took    []time.Duration
	failed  int
	byNode  []int
}

// A chooser is who says which pod takes a request: balancers, or the oracle.
type chooser interface {
	pick(r *run, at int) (int, balance.Ticket)
	done(r *run, q *request)
	// reportUsage and reportQueue are told what nodes, or one, know of themselves.
	reportUsage(r *run)
	reportQueue(r *run, node int)
}

// Run plays the case.
func (c Case) Run(o balance.Options, seed uint64) (Result, error) {
	b, err := newBalancers(c, o, seed)
	if err != nil {
		return Result{}, err
	}
	return c.run(b, seed), nil
}

// RunOracle plays the case with one who knows all that is under way, and how long each
// takes on average, and gives a request to the pod that will be done with it first.
func (c Case) RunOracle(seed uint64) Result { return c.run(&oracle{}, seed) }

func (c Case) run(by chooser, seed uint64) Result {
	r := &run{Case: c, chooser: by, rand: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // draws times, hides nothing
		servers: make([]server, len(c.Nodes)), byNode: make([]int, len(c.Nodes))}
	for i, n := range c.Nodes {
		r.servers[i].cores = n.Cores
		for range n.Users {
			r.users = append(r.users, i)
			// Not all in one instant.
			r.events.add(event{at: time.Duration(r.rand.Int64N(int64(time.Millisecond))), kind: asks, user: len(r.users) - 1})
		}
		if n.PerSecond > 0 {
			r.events.add(event{at: r.gap(n.PerSecond), kind: comes, user: i})
		}
	}
	r.reports()
	for {
		e := r.events.next()
		if e.at >= c.Until {
			return r.result()
		}
		r.now = e.at
		r.step(e)
	}
}

// gap is a time between two that come at random.
func (r *run) gap(perSecond float64) time.Duration {
	return time.Duration(r.rand.ExpFloat64() / perSecond * float64(time.Second))
}

// step plays one event.
func (r *run) step(e event) {
	switch e.kind {
	case asks:
		r.ask(e.user, r.home(e.user))
	case comes:
		r.ask(-1, e.user)
		r.events.add(event{at: r.now + r.gap(r.Nodes[e.user].PerSecond), kind: comes, user: e.user})
	case arrives:
		r.arrive(e.request)
	case served:
		r.serve(e.request)
	case answered:
		r.answer(e.request)
	case usage:
		r.chooser.reportUsage(r)
		r.events.add(event{at: r.now + r.Reports.Usage, kind: usage})
	case inFlight:
		r.chooser.reportQueue(r, e.user)
		r.events.add(event{at: r.now + r.Reports.Queue, kind: inFlight, user: e.user})
	}
}

// reports begins them: usage of all nodes at once, as of one metrics server; queues one
// after the other.
func (r *run) reports() {
	r.events.add(event{at: r.Reports.Usage, kind: usage})
	for i := range r.Nodes {
		shift := r.Reports.Queue * time.Duration(i) / time.Duration(len(r.Nodes))
		r.events.add(event{at: r.Reports.Queue + shift, kind: inFlight, user: i})
	}
}

// home is the node that a user asks now.
func (r *run) home(user int) int {
	if r.Moves == 0 {
		return r.users[user]
	}
	return (r.users[user] + int(r.now/r.Moves)) % len(r.Nodes)
}

// ask begins a request at a node.
func (r *run) ask(user, at int) {
	q := r.request()
	to, ticket := r.chooser.pick(r, at)
	*q = request{user: user, at: at, to: to, ticket: ticket, begun: r.now}
	r.events.add(event{at: r.now + r.toServer(at, to), kind: arrives, request: q})
}

func (r *run) request() *request {
	if n := len(r.free); n > 0 {
		q := r.free[n-1]
		r.free = r.free[:n-1]
		return q
	}
	return &request{}
}

// rtt is the round trip between a node and a pod.
func (r *run) rtt(at, to int) time.Duration {
	if at == to {
		return r.Inside
	}
	return r.Delay
}

// toServer is how long a request is on its way to the server, back how long from it.
func (r *run) toServer(at, to int) time.Duration {
	return time.Duration(r.RoundTrips)*r.rtt(at, to) - r.back(at, to)
}

func (r *run) back(at, to int) time.Duration { return r.rtt(at, to) / 2 }

// arrive has a request at its server.
func (r *run) arrive(q *request) {
	if r.Nodes[q.to].Fails {
		q.failed = true
		r.events.add(event{at: r.now + r.back(q.at, q.to), kind: answered, request: q})
		return
	}
	if s := &r.servers[q.to]; s.begin(r.now, q) {
		r.work(q)
	}
}

// work has a core for a request.
func (r *run) work(q *request) {
	takes := time.Duration(r.rand.ExpFloat64() * float64(r.Service) * max(1, r.Nodes[q.to].Slower))
	r.events.add(event{at: r.now + takes, kind: served, request: q})
}

// serve ends a request's work, and has the core for the next.
func (r *run) serve(q *request) {
	r.events.add(event{at: r.now + r.back(q.at, q.to), kind: answered, request: q})
	if next := r.servers[q.to].end(r.now); next != nil {
		r.work(next)
	}
}

// answer has the answer with the user, who asks again.
func (r *run) answer(q *request) {
	r.chooser.done(r, q)
	if r.now >= r.From {
		r.byNode[q.to]++
		if q.failed {
			r.failed++
		} else {
			r.took = append(r.took, r.now-q.begun)
		}
	}
	if q.user >= 0 {
		r.events.add(event{at: r.now, kind: asks, user: q.user})
	}
	r.free = append(r.free, q)
}

// result is what there was.
func (r *run) result() Result {
	span := (r.Until - r.From).Seconds()
	res := Result{Goodput: float64(len(r.took)) / span, Failed: float64(r.failed) / span, ByNode: make([]float64, len(r.byNode))}
	for i, n := range r.byNode {
		res.ByNode[i] = float64(n) / float64(max(1, len(r.took)+r.failed))
	}
	if len(r.took) == 0 {
		return res
	}
	sum := time.Duration(0)
	for _, t := range r.took {
		sum += t
	}
	res.Mean = sum / time.Duration(len(r.took))
	slices.Sort(r.took)
	res.P99 = r.took[int(math.Ceil(0.99*float64(len(r.took))))-1]
	return res
}

// nodeName is what balancers know a node, and its pod, by.
func nodeName(i int) string { return "w" + strconv.Itoa(i+1) }
