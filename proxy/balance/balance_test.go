package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// three is a view of a pod at each of three nodes, of which "a" is home.
func three() View {
	var v View
	for _, name := range []string{"a", "b", "c"} {
		v.Endpoints = append(v.Endpoints, Endpoint{ID: name, Node: name})
		v.Nodes = append(v.Nodes, Node{Name: name, Local: name == "a", RTT: Known(10*ms, 0)})
	}
	return v
}

func newWith(t *testing.T, o Options, v View) *Balancer {
	t.Helper()
	b, err := New(o, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.Update(v, 0)
	return b
}

// picks are where n connections go that all stay open, by node.
func picks(t *testing.T, b *Balancer, now time.Duration, n int) map[string]int {
	t.Helper()
	got := map[string]int{}
	for range n {
		ticket, err := b.Pick(now)
		if err != nil {
			t.Fatal(err)
		}
		got[ticket.Node]++
	}
	return got
}

func TestRoundRobinTakesTurns(t *testing.T) {
	b := newWith(t, Options{Policy: RoundRobin}, three())
	if got := picks(t, b, 0, 300); got["a"] != 100 || got["b"] != 100 || got["c"] != 100 {
		t.Errorf("300 connections went %v", got)
	}
}

// Algorithm 1 of the paper, line by line.
func TestRAP(t *testing.T) {
	usage := func(a, b, c Usage) View {
		v := three()
		for i, u := range []Usage{a, b, c} {
			v.Nodes[i].Usage = Known(u, 0)
		}
		v.Nodes[2].RTT = Known(20*ms, 0)
		return v
	}
	free, busy := Usage{CPU: 0.5, RAM: 0.5}, Usage{CPU: 0.9, RAM: 0.5}
	for _, c := range []struct {
		name string
		view View
		want string
	}{
		{"home is free", usage(free, Usage{}, Usage{}), "a"},
		{"home's CPU is at its threshold: the nearer of two alike", usage(busy, free, free), "b"},
		{"home's RAM is: as well", usage(Usage{RAM: 0.95}, free, free), "b"},
		{"the farther has more to spare than the nearer is near", usage(busy, free, Usage{CPU: 0.2, RAM: 0.2}), "c"},
		{"one of the others is overloaded", usage(busy, busy, free), "c"},
		{"all are: home", usage(busy, busy, busy), "a"},
	} {
		b := newWith(t, Options{Policy: RAP}, c.view)
		if got := picks(t, b, 0, 10); got[c.want] != 10 {
			t.Errorf("%s: 10 connections went %v, not to %s", c.name, got, c.want)
		}
	}
}

// A best node is kept for a cycle; the next looks anew, and at metrics of an age alone.
func TestRAPBestIsOfTheCycle(t *testing.T) {
	v := three()
	v.Nodes[0].Usage = Known(Usage{CPU: 1}, 0)
	v.Nodes[1].Usage = Known(Usage{CPU: 0.1}, 0)
	b := newWith(t, Options{Policy: RAP}, v)
	if got := picks(t, b, 30*time.Second, 1); got["b"] != 1 {
		t.Errorf("went %v", got)
	}
	b.Learn(nil, 61*time.Second)
	if got := picks(t, b, 61*time.Second, 1); got["a"] != 1 {
		t.Errorf("by metrics of a minute ago went %v", got)
	}
}

// A best node that leaves within the cycle has nothing more; the best of those that are left
// is looked for at once.
func TestRAPBestLeaves(t *testing.T) {
	v := three()
	for i, cpu := range []float64{1, 0.1, 0.2} {
		v.Nodes[i].Usage = Known(Usage{CPU: cpu}, 0)
	}
	b := newWith(t, Options{Policy: RAP}, v)
	if got := picks(t, b, 0, 10); got["b"] != 10 {
		t.Errorf("10 connections went %v", got)
	}
	b.Update(View{Endpoints: []Endpoint{v.Endpoints[0], v.Endpoints[2]}, Nodes: []Node{{Name: "a", Local: true}, {Name: "c"}}}, ms)
	if got := picks(t, b, ms, 10); got["c"] != 10 {
		t.Errorf("its best has gone, and 10 connections went %v", got)
	}
}

func TestRAPWithoutAnEndpointAtHome(t *testing.T) {
	v := three()
	v.Endpoints = v.Endpoints[1:]
	v.Nodes[2].Usage = Known(Usage{CPU: 0.1}, 0)
	b := newWith(t, Options{Policy: RAP}, v)
	if got := picks(t, b, 0, 10); got["c"] != 10 {
		t.Errorf("10 connections went %v", got)
	}
	b = newWith(t, Options{Policy: RAP}, View{Endpoints: v.Endpoints})
	if got := picks(t, b, 0, 100); got["b"] == 0 || got["c"] == 0 {
		t.Errorf("where nothing is known of anybody, 100 connections went %v", got)
	}
}

// queued is a view with what each node has in flight.
func queued(inFlight ...float64) View {
	v := three()
	for i, q := range inFlight {
		v.Nodes[i].Queue = Known(Queue{InFlight: q, Service: 2 * ms, Served: 100, Cores: 2}, 0)
	}
	return v
}

func TestCostLeavesHomeForAClearGain(t *testing.T) {
	b := newWith(t, Options{Policy: Cost}, queued(0, 0, 0))
	// Away costs two round trips of 10 ms and 2 ms of service; home 2 ms and 6 more for
	// each that waits: 4 in flight are 20 ms, 5 are 26.
	if got := picks(t, b, 0, 5); got["a"] != 5 {
		t.Errorf("the first 5 went %v", got)
	}
	if got := picks(t, b, 0, 1); got["a"] == 1 {
		t.Error("the 6th stayed, though away is nearer")
	}
}

// Where most requests leave home anyway, less of them wait there; when they stay, as many as before.
func TestCostKeepsLessWhereMostLeave(t *testing.T) {
	b := newWith(t, Options{Policy: Cost}, queued(3, 0, 0))
	goes := func(inFlightAtHome float64, n int) map[string]int {
		t.Helper()
		got := map[string]int{}
		for range n {
			b.Learn(queued(inFlightAtHome, 0, 0).Nodes, 0)
			ticket, err := b.Pick(0)
			if err != nil {
				t.Fatal(err)
			}
			got[ticket.Node]++
			b.Done(ticket, 0, Void)
		}
		return got
	}
	const many = 4 * leftSpan
	for _, c := range []struct {
		before float64
		home   int
	}{{3, 1}, {100, 0}, {0, 1}} {
		goes(c.before, many)
		if got := goes(3, 1); got["a"] != c.home {
			t.Errorf("after %d with %v in flight at home, one with 3 there went %v", many, c.before, got)
		}
	}
}

func TestCostDegrades(t *testing.T) {
	far := three()
	far.Nodes[1].RTT, far.Nodes[2].RTT = Measured[time.Duration]{}, Measured[time.Duration]{}
	far.Nodes[1].Far = true
	small := View{Endpoints: far.Endpoints, Nodes: slices.Clone(far.Nodes)}
	small.Nodes[0].Queue = Known(Queue{Service: 2 * ms, Served: 100, Cores: 0.05}, 0)
	idle := View{Endpoints: small.Endpoints, Nodes: slices.Clone(small.Nodes)}
	for i := range idle.Nodes[1:] {
		idle.Nodes[1+i].Queue = Known(Queue{Service: 2 * ms, Served: 100, Cores: 0.2}, 0)
	}
	for _, c := range []struct {
		name string
		view View
		now  time.Duration
		want string
	}{
		{"a queue that is told", queued(100, 50, 0), 0, "c"},
		{"one that was told long ago does not count, so home", queued(100, 50, 0), 5 * time.Second, "a"},
		{"nothing is known: home", View{Endpoints: three().Endpoints, Nodes: []Node{{Name: "a", Local: true}}}, 0, "a"},
		{"no cores of others: they are no faster than home", small, 0, "a"},
		{"no round trip, and nothing in flight at home", idle, 0, "a"},
		{"no round trip: the same zone is nearer", View{Endpoints: far.Endpoints[1:], Nodes: far.Nodes}, 0, "c"},
	} {
		b := newWith(t, Options{Policy: Cost}, c.view)
		if got := picks(t, b, c.now, 1); got[c.want] != 1 {
			t.Errorf("%s: went %v, not to %s", c.name, got, c.want)
		}
	}
	if got := picks(t, newWith(t, Options{Policy: Cost}, idle), 0, fewAtHome+1); got["a"] != fewAtHome || got["c"] != 1 {
		t.Errorf("with more than a few in flight at home, and no round trip: went %v", got)
	}
}

// Without a service time the least latency, less the round trips, stands in.
func TestCostLearnsTheServiceTime(t *testing.T) {
	b := newWith(t, Options{Policy: Cost}, three())
	for i := range 20 {
		now := time.Duration(i) * 100 * ms
		ticket, _ := b.Pick(now)
		b.Done(ticket, now+8*ms, Served)
	}
	e := b.Explain(2 * time.Second)
	if e.Endpoints[0].Cost.Total != 8*ms {
		t.Errorf("home costs %v after answers in 8 ms", e.Endpoints[0].Cost.Total)
	}
}

// What is explained is what is compared: home and another by how much what waits weighs there.
func TestExplainsWhatIsCompared(t *testing.T) {
	b := newWith(t, Options{Policy: Cost}, queued(12, 6, 40))
	x := b.Explain(0).Endpoints
	if got := picks(t, b, 0, 1); got["a"] != 1 {
		t.Fatalf("it went %v", got)
	}
	for _, e := range x {
		c := e.Cost
		if total := c.Wire + time.Duration(float64(c.Service)*(1+c.Weight*c.Waiting)); (total - c.Total).Abs() > time.Microsecond {
			t.Errorf("%s: %+v", e.ID, c)
		}
	}
	if home, away := x[0].Cost, x[1].Cost; home.Weight != away.Weight || home.Weight > 1.3 || home.Total >= away.Total {
		t.Errorf("home %+v, away %+v", home, away)
	}
}

// Whatever happens in whatever order: no endpoint that takes connections is never asked
// by a policy that shares, what is in flight comes to 0, and an endpoint that is left out,
// or gone, is not asked, nor one that was tried while there is another.
func TestProperties(t *testing.T) {
	for _, policy := range Policies() {
		for seed := range uint64(20) {
			t.Run(fmt.Sprint(policy, seed), func(t *testing.T) { properties(t, policy, seed) })
		}
	}
}

func properties(t *testing.T, policy string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	b, err := New(Options{Policy: policy, Eject: true}, seed)
	if err != nil {
		t.Fatal(err)
	}
	var v View
	var open []Ticket
	now := time.Duration(0)
	endpoints, nodes := map[*endpoint]bool{}, map[*node]bool{}
	for range 3000 {
		now += time.Duration(r.Int64N(int64(5 * ms)))
		switch r.IntN(20) {
		case 0:
			v = anyView(r, now)
			b.Update(v, now)
		case 1:
			b.Learn(v.Nodes, now)
		case 2:
			if err := b.SetPolicy(Options{Policy: Policies()[r.IntN(len(Policies()))], Eject: true}, now); err != nil {
				t.Fatal(err)
			}
		case 3, 4, 5, 6, 7, 8:
			if len(open) > 0 {
				i := r.IntN(len(open))
				b.Done(open[i], now, Outcome(r.IntN(3)))
				open = append(open[:i], open[i+1:]...)
			}
		default:
			tried := []string{fmt.Sprint(r.IntN(6)), fmt.Sprint(r.IntN(6))}[:r.IntN(3)]
			ticket, err := b.Pick(now, tried...)
			if err != nil {
				if len(v.Endpoints) > 0 {
					t.Fatalf("%d endpoints: %v", len(v.Endpoints), err)
				}
				continue
			}
			if ticket.to.standing.out(now) {
				t.Fatalf("%s is left out and was asked", ticket.Endpoint)
			}
			if !slices.Contains(v.Endpoints, ticket.to.Endpoint) {
				t.Fatalf("%s is gone and was asked", ticket.Endpoint)
			}
			if slices.Contains(tried, ticket.Endpoint) && slices.ContainsFunc(b.field.endpoints, func(e *endpoint) bool { return !slices.Contains(tried, e.ID) }) {
				t.Fatalf("%s was tried, as were %v, and there is another", ticket.Endpoint, tried)
			}
			endpoints[ticket.to], nodes[ticket.at] = true, true
			open = append(open, ticket)
		}
	}
	for _, ticket := range open {
		b.Done(ticket, now, Void)
	}
	for e := range endpoints {
		if e.inFlight != 0 {
			t.Errorf("endpoint %s ends with %d in flight", e.ID, e.inFlight)
		}
	}
	for n := range nodes {
		if n.inFlight != 0 {
			t.Errorf("node %s ends with %d in flight", n.Name, n.inFlight)
		}
	}
}

// anyView has up to six endpoints at up to three nodes, and knows some of it: of nodes
// without endpoints nothing.
func anyView(r *rand.Rand, now time.Duration) View {
	var v View
	names := []string{"a", "b", "c"}
	for i := range r.IntN(7) {
		v.Endpoints = append(v.Endpoints, Endpoint{ID: fmt.Sprint(i), Node: names[r.IntN(3)]})
	}
	for i, name := range names {
		if !slices.ContainsFunc(v.Endpoints, func(e Endpoint) bool { return e.Node == name }) {
			continue
		}
		n := Node{Name: name, Local: i == 0}
		if r.IntN(2) == 0 {
			n.Usage = Known(Usage{CPU: r.Float64() * 1.2, RAM: r.Float64()}, now)
		}
		if r.IntN(2) == 0 {
			n.Queue = Known(Queue{InFlight: r.Float64() * 20, Service: ms, Served: r.Float64() * 100, Cores: float64(r.IntN(4))}, now)
		}
		if r.IntN(2) == 0 {
			n.RTT = Known(time.Duration(r.Int64N(int64(30*ms))), now)
		}
		v.Nodes = append(v.Nodes, n)
	}
	return v
}

// No policy leaves an endpoint without connections for good where all are alike and busy.
func TestNoStarvation(t *testing.T) {
	for _, policy := range Policies() {
		v := queued(30, 0, 0)
		v.Nodes[0].Usage, v.Nodes[1].Usage = Known(Usage{CPU: 1}, 0), Known(Usage{CPU: 0.5}, 0)
		v.Nodes[2].Usage = Known(Usage{CPU: 0.5}, 0)
		b := newWith(t, Options{Policy: policy}, v)
		got := picks(t, b, 0, 200)
		for _, name := range []string{"a", "b", "c"} {
			if got[name] == 0 && policy != RAP { // which has one best node a cycle
				t.Errorf("%s: of 200 connections %s had none: %v", policy, name, got)
			}
		}
	}
}

// Who was left out by a policy is not by the next that leaves none out.
func TestPolicyChangeForgives(t *testing.T) {
	b := newWith(t, Options{Policy: Cost}, three())
	b.byID["a"].standing.until = time.Minute
	if err := b.SetPolicy(Options{Policy: EWMA}, 0); err != nil {
		t.Fatal(err)
	}
	if e := b.Explain(0).Endpoints[0]; e.Out != 0 || e.Worth != 1 {
		t.Errorf("it is left out: %+v", e.Standing)
	}
}

// Connections go on where they are when the policy changes, and are counted there.
func TestPolicyChangeMovesNothing(t *testing.T) {
	b := newWith(t, Options{Policy: RoundRobin}, three())
	var open []Ticket
	for range 9 {
		ticket, _ := b.Pick(0)
		open = append(open, ticket)
	}
	if err := b.SetPolicy(Options{Policy: Cost}, 0); err != nil {
		t.Fatal(err)
	}
	for _, e := range b.Explain(0).Endpoints {
		if e.InFlight != 3 {
			t.Errorf("%s has %d in flight after the change", e.ID, e.InFlight)
		}
	}
	for _, ticket := range open {
		b.Done(ticket, 0, Served)
	}
}

func TestUnknownPolicy(t *testing.T) {
	if _, err := New(Options{Policy: "least"}, 1); err == nil {
		t.Error("a policy of no name was taken")
	}
	b := newWith(t, Options{Policy: Cost}, View{})
	if _, err := b.Pick(0); err != ErrNoEndpoint { //nolint:errorlint // it is that very one
		t.Errorf("without endpoints: %v", err)
	}
}

func TestWeights(t *testing.T) {
	b := newWith(t, Options{Policy: Cost}, queued(0, 0, 30))
	w := b.Weights(0)
	if sum := w[0] + w[1] + w[2]; sum < 0.999 || sum > 1.001 || w[0] <= w[1] || w[1] <= w[2] || w[2] <= 0 {
		t.Errorf("weights %v of what costs 2, 22 and over 100 ms", w)
	}
}

func BenchmarkPick(b *testing.B) {
	for _, policy := range Policies() {
		for _, n := range []int{4, 1000} {
			b.Run(fmt.Sprint(policy, "/", n), func(b *testing.B) {
				v := queued(3, 0, 0)
				for i := range n - 3 {
					v.Endpoints = append(v.Endpoints, Endpoint{ID: fmt.Sprint(i), Node: "b"})
				}
				bal, _ := New(Options{Policy: policy}, 1)
				bal.Update(v, 0)
				b.ReportAllocs()
				for b.Loop() {
					ticket, _ := bal.Pick(ms)
					bal.Done(ticket, 2*ms, Served)
				}
			})
		}
	}
}
