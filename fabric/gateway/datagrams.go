package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/datagram"
)

// datagrams is the gateway's part for UDP: fronts for local clients, links to gateways of
// peers, and a server for those that call.
type datagrams struct {
	g     *Gateway
	drops datagram.Drops
	// server is nil until it listens.
	server *datagram.Server
	// links are replaced as a whole, so that a front need not wait for who changes them.
	links atomic.Pointer[map[way]datagramLink]

	mu     sync.Mutex
	fronts map[netip.AddrPort]*udpFront
}

// datagramLink is one that is kept.
type datagramLink struct {
	*datagram.Link
	way
	stop context.CancelFunc
}

func newDatagrams(g *Gateway) *datagrams {
	d := &datagrams{g: g, fronts: map[netip.AddrPort]*udpFront{}}
	d.links.Store(&map[way]datagramLink{})
	return d
}

// listen takes calls of peers at the UDP port of the number at which they call by TCP.
func (d *datagrams) listen(ctx context.Context) error {
	d.g.running.Go(func() { d.tellDrops(ctx) })
	address := ""
	if d.g.listener != nil {
		address = d.g.listener.Addr().String()
	}
	config := d.g.identity.Server(datagram.Protocol, datagram.ProtocolReverse)
	server, err := datagram.NewServer(address, config, &udpBackend{backend: backend{d.g}}, &d.drops)
	if err != nil {
		return fmt.Errorf("listen for datagrams of peers: %w", err)
	}
	d.server = server
	d.g.running.Go(func() { server.Run(ctx) })
	return nil
}

// tellDropsEvery is how often the log says what was dropped, when something was.
const tellDropsEvery = 10 * time.Second

func (d *datagrams) tellDrops(ctx context.Context) {
	tick := time.NewTicker(tellDropsEvery)
	defer tick.Stop()
	var told uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := d.drops.Total(); now != told {
			told = now
			d.g.log.Warn("datagrams dropped", "queue", d.drops.Queue.Load(), "long", d.drops.Long.Load(), "parts", d.drops.Parts.Load(),
				"early", d.drops.Early.Load(), "late", d.drops.Late.Load(), "socket", d.drops.Socket.Load(), "refused", d.drops.Refused.Load())
		}
	}
}

// apply acts on a snapshot: what it does not allow any more ends, since a flow of UDP
// has no end of its own.
func (d *datagrams) apply(ctx context.Context, s *snapshot.Snapshot) error {
	wanted := map[netip.AddrPort]*snapshot.Import{}
	called := map[string]bool{}
	for i := range s.Imports {
		if s.Imports[i].Protocol != transport.UDP {
			continue
		}
		for _, address := range s.Imports[i].Listen {
			wanted[address] = &s.Imports[i]
		}
		for _, peer := range s.Imports[i].From {
			called[peer] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.callLocked(ctx, s, called)
	if d.server != nil {
		d.server.Recheck(d.g.identity.CheckCaller)
	}
	return d.listenForLocked(ctx, wanted)
}

// callLocked keeps connections to the gateways of those peers from which UDP is imported.
func (d *datagrams) callLocked(ctx context.Context, s *snapshot.Snapshot, called map[string]bool) {
	wanted := map[way]bool{}
	for _, p := range s.Peers {
		for _, address := range p.Gateways {
			if called[p.Name] {
				wanted[way{peer: p.Name, address: address, transport: datagram.Protocol}] = true
			}
		}
	}
	before, links := *d.links.Load(), map[way]datagramLink{}
	for w, l := range before {
		if wanted[w] || w.reverse && s.Peer(w.peer) != nil {
			links[w] = l
			continue
		}
		l.stop()
	}
	for w := range wanted {
		if _, has := links[w]; has {
			continue
		}
		within, stop := context.WithCancel(ctx)
		link := datagram.NewLink(w.address, d.g.identity.Client(w.peer, datagram.Protocol), &d.drops, func(err error) { d.tell(w, err) })
		links[w] = datagramLink{link, w, stop}
		d.g.running.Go(func() { link.Keep(within) })
	}
	d.links.Store(&links)
}

// offered is the link that uses what a gateway opens to be called by. Those of the same
// peer that have no connection any more are forgotten.
func (d *datagrams) offered(from identity.Name) (*datagram.Link, error) {
	if d.g.state.Load().Peer(from.Cluster) == nil {
		return nil, fmt.Errorf("connection from a cluster that is no peer: %w", identity.ErrUntrusted)
	}
	w := way{peer: from.Cluster, address: from.Gateway, transport: datagram.Protocol, reverse: true}
	d.mu.Lock()
	defer d.mu.Unlock()
	before := *d.links.Load()
	if l, has := before[w]; has {
		return l.Link, nil
	}
	links := maps.Clone(before)
	maps.DeleteFunc(links, func(other way, l datagramLink) bool {
		return other.reverse && other.peer == w.peer && l.Path() == transport.Path{}
	})
	link := datagram.NewOfferedLink(d.g.identity.CheckCaller, &d.drops, func(err error) { d.tell(w, err) })
	links[w] = datagramLink{link, w, link.End}
	d.links.Store(&links)
	return link, nil
}

// offerTo keeps a connection open to a gateway of a peer who cannot call here.
func (d *datagrams) offerTo(ctx, until context.Context, w way) {
	d.server.Offer(ctx, until, w.address, d.g.identity.Client(w.peer, datagram.ProtocolReverse), func(err error) { d.tell(w, err) })
}

// tell has the log say that datagrams reach a gateway of a peer, or why they do not.
func (d *datagrams) tell(w way, err error) {
	if err == nil {
		d.g.log.Info("datagrams connected", "peer", w.peer, "at", w.address)
		return
	}
	d.g.log.Warn("datagrams not connected", "peer", w.peer, "at", w.address, "why", err.Error())
}

// listenForLocked listens where the imports say, and no longer where they do not.
func (d *datagrams) listenForLocked(ctx context.Context, wanted map[netip.AddrPort]*snapshot.Import) error {
	for address, f := range d.fronts {
		if wanted[address] == nil {
			f.close()
			delete(d.fronts, address)
		}
	}
	var failed []error
	for address, i := range wanted {
		if f := d.fronts[address]; f != nil {
			if f.of.Swap(i) != i { // by another snapshot
				f.recheck()
			}
			continue
		}
		f, err := newUDPFront(d, address, i)
		if err != nil {
			failed = append(failed, fmt.Errorf("listen for %s: %w", i.Target, err))
			continue
		}
		d.fronts[address] = f
		d.g.running.Go(f.serve)
		context.AfterFunc(ctx, f.close)
	}
	return errors.Join(failed...)
}

// linksTo are the links to gateways of a peer, in an order that stays.
func (d *datagrams) linksTo(peer string) (all []datagramLink) {
	for w, l := range *d.links.Load() {
		if w.peer == peer {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b datagramLink) int { return strings.Compare(a.address, b.address) })
	return all
}

// callers are the gateways of peers that have called.
func (d *datagrams) callers() map[identity.Name]transport.Health {
	if d.server == nil {
		return nil
	}
	return d.server.Callers()
}

// listens says whether clients can call at an address.
func (d *datagrams) listens(at netip.AddrPort) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fronts[at] != nil
}

// reachable are the links to those peers that policies let who asks call, in the order in
// which to try them, with what they say of each peer; and else why there are none. While some
// are ready no others are tried.
func (d *datagrams) reachable(i *snapshot.Import, entry *ledger.Stream) (links []datagramLink, allowed map[string]policy.Decision, why string) {
	why, allowed = "no peer can be called", map[string]policy.Decision{}
	s, kept, from := d.g.state.Load(), *d.links.Load(), entry.Record().From
	for _, name := range i.From {
		decision := s.policies.Decide(from, flow.To(name, i.Target))
		entry.Decided(name, name, decision)
		if !decision.Allowed {
			why = decision.String()
			continue
		}
		p := s.Peer(name)
		if p == nil {
			continue
		}
		allowed[name] = decision
		for _, address := range p.Gateways {
			if l, has := kept[way{peer: name, address: address, transport: datagram.Protocol}]; has {
				links = append(links, l)
			}
		}
		for w, l := range kept {
			if w.reverse && w.peer == name {
				links = append(links, l)
			}
		}
	}
	return inOrder(links), allowed, why
}

func inOrder(links []datagramLink) (ordered []datagramLink) {
	paths := make([]transport.Path, len(links))
	for k, l := range links {
		paths[k] = l.Path()
	}
	order := choose(paths, rand.IntN)
	for _, k := range order {
		if paths[k].Ready || !paths[order[0]].Ready {
			ordered = append(ordered, links[k])
		}
	}
	return ordered
}

// recheck ends what is not to be trusted any more.
func (d *datagrams) recheck() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != nil {
		d.server.Recheck(d.g.identity.CheckCaller)
	}
	for _, l := range *d.links.Load() {
		for _, err := range l.Recheck() {
			d.g.log.Warn("peer refused", "peer", l.peer, "why", err.Error())
		}
	}
}

// leave takes no more flows.
func (d *datagrams) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.fronts {
		f.leaving.Store(true)
	}
	for _, l := range *d.links.Load() {
		l.Leave()
	}
	if d.server != nil {
		d.server.Leave()
	}
}

// flows counts those that are open.
func (d *datagrams) flows() (n int) {
	for _, l := range *d.links.Load() {
		n += l.Flows()
	}
	if d.server != nil {
		n += d.server.Flows()
	}
	return n
}

// udpBackend is the gateway as peers call it by UDP.
type udpBackend struct {
	backend
	// turn counts flows: each begins with the next backend, since whether one is there shows
	// only when it is spoken to.
	turn atomic.Uint64
}

// Allow implements datagram.Backend.
func (b *udpBackend) Allow(peer identity.Name, r transport.Request) error {
	return b.allow(peer, r, transport.UDP)
}

// Dial implements datagram.Backend.
func (b *udpBackend) Dial(ctx context.Context, peer identity.Name, r transport.Request) (*net.UDPConn, error) {
	entry, e, err := b.granted(peer, r, b.state.Load())
	if err != nil {
		return nil, err
	}
	first := b.turn.Add(1)
	why := ""
	for k := range uint64(len(e.Backends)) {
		conn, err := new(net.Dialer).DialContext(ctx, "udp", e.Backends[(first+k)%uint64(len(e.Backends))])
		if err == nil {
			b.carries(entry, peer, r.Traffic)
			return conn.(*net.UDPConn), nil
		}
		why = err.Error()
	}
	return nil, b.refuse(entry, ledger.ReasonNoBackend, why)
}

// Offered implements datagram.Backend.
func (b *udpBackend) Offered(peer identity.Name) (*datagram.Link, error) {
	return b.datagrams.offered(peer)
}

// Warn implements datagram.Backend.
func (b *udpBackend) Warn(from string, err error) {
	if errors.Is(err, transport.ErrProtocol) {
		b.log.Warn("peer misbehaves", "peer", from, "why", err.Error())
		return
	}
	b.log.Warn("peer refused", "from", from, "why", err.Error())
}
