package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/impair/userspace"
	"skerry.dev/skerry/lab/load/oneway"
	"skerry.dev/skerry/lab/topology"
)

const (
	// silence is how long the last packets of a probe may be late.
	silence = 3 * time.Millisecond
	// settle lies between the last timed packet and the first burst.
	settle = time.Millisecond
	// drainLeast is a pause between sends that is worth to read in what arrived.
	drainLeast = 200 * time.Microsecond
	// look is how often a probe looks for its last packets.
	look = 500 * time.Microsecond
)

// ends are the two nodes that a direction is probed between.
type ends struct{ from, to topology.Ref }

// flow is a direction as a probe sees it.
type flow struct {
	ends
	asked impair.Stages
}

// flowOf picks nodes whose packets take the direction: those it names, or of its
// clusters the client's or the service's where that can be. It is false where
// directions between nodes leave no packet to the one between their clusters.
func flowOf(t *topology.Topology, all []experiment.Direction, d experiment.Direction) (flow, bool) {
	named := map[ends]bool{}
	for _, other := range all {
		named[ends{other.From, other.To}] = true
	}
	if _, node := d.From.Split(); node != "" {
		return flow{ends{d.From, d.To}, d.Stages()}, true
	}
	for _, from := range nodesOf(t, d.From) {
		for _, to := range nodesOf(t, d.To) {
			if !named[ends{from, to}] {
				return flow{ends{from, to}, d.Stages()}, true
			}
		}
	}
	return flow{}, false
}

// flowsOf lists the flows of every phase of an experiment.
func flowsOf(e *experiment.Experiment) (all []flow) {
	for _, s := range e.Scenarios {
		for _, p := range s.Phases() {
			flows, _ := flowsIn(&e.Topology, p)
			all = append(all, flows...)
		}
	}
	return all
}

// flowsIn lists the flows that a phase probes, and the index of the direction of
// each. What a trace does at the moment of a probe is no one figure.
func flowsIn(t *topology.Topology, p experiment.Phase) (flows []flow, index []int) {
	for i, d := range p.Directions {
		if f, ok := flowOf(t, p.Directions, d); ok && !d.IsZero() && !d.Stages().Replays() {
			flows, index = append(flows, f), append(index, i)
		}
	}
	return flows, index
}

// nodesOf lists the nodes of a cluster, the client's and the service's first.
func nodesOf(t *topology.Topology, cluster topology.Ref) []topology.Ref {
	var first, rest []topology.Ref
	for _, n := range t.Nodes() {
		switch ref := n.Ref(); {
		case topology.Ref(n.Cluster) != cluster:
		case ref == t.Client || ref == t.Service:
			first = append(first, ref)
		default:
			rest = append(rest, ref)
		}
	}
	return slices.Concat(first, rest)
}

// prober times packets between nodes of a lab. This process sends and receives
// them itself, by sockets that it has opened inside the nodes.
type prober struct {
	ports map[topology.Ref]*oneway.Port
	// plain is the delay of each path without a link, in ns.
	plain map[ends]int64
	// probes so far: each numbers its packets apart.
	probes int64
}

// openProber opens ports for every impaired direction of the experiment and
// measures the plain paths: no links may be set yet.
func openProber(ctx context.Context, lab *host.Lab, e *experiment.Experiment) (p *prober, err error) {
	p = &prober{ports: map[topology.Ref]*oneway.Port{}, plain: map[ends]int64{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	var paths []flow
	for _, f := range flowsOf(e) {
		if _, known := p.plain[f.ends]; known {
			continue
		}
		if err := errors.Join(p.open(ctx, lab, f.from), p.open(ctx, lab, f.to)); err != nil {
			return p, err
		}
		p.plain[f.ends] = 0
		paths = append(paths, flow{ends: f.ends})
	}
	timed, err := p.probe(ctx, paths)
	if err != nil {
		return p, err
	}
	for i, f := range paths {
		plain, ok := proof.Plain(timed[i])
		if !ok {
			return p, fmt.Errorf("probe links: %s does not reach %s, without any link between them", f.from, f.to)
		}
		p.plain[f.ends] = plain
	}
	return p, nil
}

func (p *prober) open(ctx context.Context, lab *host.Lab, ref topology.Ref) error {
	if p.ports[ref] != nil {
		return nil
	}
	node, err := lab.Topology.Node(ref)
	if err != nil {
		return err
	}
	return lab.Within(ref, func() error {
		port, err := oneway.OpenPort(ctx, net.JoinHostPort(node.Data.Addr().String(), "0"), host.DataInterface)
		if err != nil {
			return fmt.Errorf("probe links: node %s: %w", ref, err)
		}
		p.ports[ref] = port
		return nil
	})
}

// Close closes the ports.
func (p *prober) Close() error {
	var all error
	for _, port := range p.ports {
		all = errors.Join(all, port.Close())
	}
	return all
}

// due is one packet of one flow in the plan of a probe.
type due struct {
	proof.Packet
	flow int
}

// schedule has the packets of all flows in the order of their sends: delays are
// timed on all of them at once, bursts go over one after the other. It ends when
// the links have let the last burst go.
func schedule(flows []flow) (plan []due, end time.Duration) {
	for i, f := range flows {
		for _, packet := range proof.Delays(f.asked...) {
			plan = append(plan, due{packet, i})
			end = max(end, packet.At)
		}
	}
	slices.SortStableFunc(plan, func(a, b due) int { return int(a.At - b.At) })
	end += settle
	for i, f := range flows {
		packets, span := proof.Bursts(f.asked...)
		for _, packet := range packets {
			packet.At += end
			plan = append(plan, due{packet, i})
		}
		end += span
	}
	return plan, end
}

// probe sends what the flows ask for and returns it with both times, by flow.
func (p *prober) probe(ctx context.Context, flows []flow) (all [][]proof.Timed, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The kernel moves a real-time thread that the emulator's takes the core from
	// at once to another; any other one waits behind it for milliseconds. Where
	// the priority is refused, sends are slower.
	if userspace.MakeFIFO(0, userspace.Priority-1) == nil {
		defer func() { err = errors.Join(err, userspace.BecomeNormal()) }()
	}
	plan, span := schedule(flows)
	p.probes++
	g := gathering{prober: p, base: p.probes << 32, plan: plan, timed: make([]proof.Timed, len(plan))}
	start := clock.Mono()
	for i, d := range plan {
		at := start + int64(d.At)
		if at > clock.Mono()+int64(drainLeast) {
			if err := g.drain(); err != nil {
				return nil, err
			}
		}
		if err := errors.Join(context.Cause(ctx), oneway.SleepUntil(at), g.send(i, flows[d.flow].ends)); err != nil {
			return nil, err
		}
	}
	if err := g.await(ctx, start+int64(span+longest(flows)+silence)); err != nil {
		return nil, err
	}
	all = make([][]proof.Timed, len(flows))
	for i, d := range plan {
		all[d.flow] = append(all[d.flow], g.timed[i])
	}
	return all, nil
}

// longest is the longest that a packet may be on its way over one of the flows.
func longest(flows []flow) (d time.Duration) {
	for _, f := range flows {
		d = max(d, (f.asked.Together().Delay + f.asked.Reach()).Std())
	}
	return d
}

// gathering is one probe under way.
type gathering struct {
	*prober
	// base of the sequence numbers of this probe.
	base     int64
	plan     []due
	timed    []proof.Timed
	received int
}

func (g *gathering) send(i int, e ends) error {
	sent, err := g.ports[e.from].Send(g.addr(e.to), g.base+int64(i), g.plan[i].Payload)
	g.timed[i] = proof.Timed{Packet: g.plan[i].Packet, SentNs: sent}
	if err != nil {
		return fmt.Errorf("probe links: %s to %s: %w", e.from, e.to, err)
	}
	return nil
}

func (g *gathering) addr(node topology.Ref) netip.AddrPort { return g.ports[node].Addr() }

// drain takes what has arrived of this probe; of an earlier one it is late.
func (g *gathering) drain() error {
	for ref, port := range g.ports {
		err := port.Drain(func(sequence, receivedNs int64) {
			i := sequence - g.base
			if i >= 0 && i < int64(len(g.timed)) && g.timed[i].ReceivedNs == 0 {
				g.timed[i].ReceivedNs = receivedNs
				g.received++
			}
		})
		if err != nil {
			return fmt.Errorf("probe links: node %s: %w", ref, err)
		}
	}
	return nil
}

// await waits for the last packets, until a time and while some still come.
func (g *gathering) await(ctx context.Context, until int64) error {
	for {
		before := g.received
		if err := errors.Join(g.drain(), context.Cause(ctx)); err != nil {
			return err
		}
		now := clock.Mono()
		if g.received > before {
			until = max(until, now+int64(silence))
		}
		if g.received == len(g.timed) || now >= until {
			return nil
		}
		if err := oneway.SleepUntil(now + int64(look)); err != nil {
			return err
		}
	}
}
