package gateway

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/httpconnect"
)

// status is what the gateway knows now.
func (g *Gateway) status() *admin.Status {
	now := time.Now()
	own, at := g.identity.Current(), g.state.Load()
	s := &admin.Status{
		Fabric: own.Name.Fabric, Gateway: own.Name.String(), Phase: g.phase(), Listen: g.config.Listen,
		SnapshotAgeNs: int64(now.Sub(at.since)),
		Peers:         []admin.Peer{}, Callers: g.callersNow(now), Extra: g.extraNow(), Exports: []admin.Export{}, Imports: []admin.Import{},
	}
	for _, l := range own.Lifetimes() {
		s.Certificates = append(s.Certificates, admin.Certificate{Of: l.Of, Begin: l.Begin, End: l.End, Overdue: l.Due(now)})
	}
	for _, p := range at.Peers {
		one := admin.Peer{Name: p.Name, Gateways: []admin.Gateway{}}
		for _, w := range g.waysNow(&p) {
			one.Gateways = append(one.Gateways, g.gatewayNow(w, now))
		}
		for _, l := range g.datagrams.linksTo(p.Name) {
			one.Gateways = append(one.Gateways, admin.Gateway{
				Address: l.address, Transport: admin.Datagram, Reverse: l.reverse, Link: g.linkNow(l.Health(), imports(l.way, transport.UDP), now),
			})
		}
		s.Peers = append(s.Peers, one)
	}
	for _, e := range at.Exports {
		s.Exports = append(s.Exports, admin.Export{Service: e.Target, Backends: e.Backends})
	}
	for _, i := range at.Imports {
		one := admin.Import{Service: i.Target, From: i.From}
		for _, address := range i.Listen {
			one.Listen = append(one.Listen, admin.Address{Address: address.String(), Listening: g.listens(i.Protocol, address)})
		}
		s.Imports = append(s.Imports, one)
	}
	if g.journal != nil {
		s.Flows = &admin.Flows{File: g.config.Flows, Written: g.journal.Written(), Dropped: g.journal.Dropped()}
	}
	return s
}

// extraNow is what went to each cluster beside what its streams say.
func (g *Gateway) extraNow() []admin.Extra {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := []admin.Extra{}
	for _, cluster := range slices.Sorted(maps.Keys(g.peers)) {
		e := g.peers[cluster].Extra
		all = append(all, admin.Extra{
			Peer: cluster, TrainingBytes: e.Training.Load(), CopyBytes: e.Copies.Load(), DataBytes: e.Data.Load(), ParityBytes: e.Parity.Load(),
		})
	}
	return all
}

// waysNow are those to the gateways of a peer, in an order that stays.
func (g *Gateway) waysNow(p *snapshot.Peer) []way {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.waysLocked(p)
	slices.SortStableFunc(all, func(a, b way) int {
		if !a.reverse || !b.reverse {
			return 0
		}
		return strings.Compare(a.address, b.address)
	})
	return all
}

// gatewayNow is a gateway of a peer, as it is called.
func (g *Gateway) gatewayNow(w way, now time.Time) admin.Gateway {
	one := admin.Gateway{Address: w.address, Transport: w.transport, Reverse: w.reverse}
	g.mu.Lock()
	l, open := g.links[w]
	g.mu.Unlock()
	h := transport.Health{State: transport.Untried}
	if open {
		h = l.carrier.Health()
	}
	one.Link = g.linkNow(h, imports(w, transport.TCP), now)
	return one
}

// imports is a way as the ledger knows it.
func imports(w way, protocol string) ledger.Way {
	return ledger.Way{Side: ledger.Side{Direction: flow.Import, Peer: w.peer}, Gateway: w.address, Protocol: protocol}
}

// linkNow puts together what is known of connections and what the ledger knows.
func (g *Gateway) linkNow(h transport.Health, w ledger.Way, now time.Time) admin.Link {
	n := g.ledger.Now(w, now)
	l := admin.Link{
		State: h.State, Why: h.Why, DialsFailed: h.DialsFailed, Connections: h.Connections, Idle: h.Idle,
		RTTNs: int64(h.RTT), MinRTTNs: int64(h.MinRTT), Segments: h.Segments, Retransmitted: h.Retransmitted,
		Streams: n.Streams, SentBytesPerSecond: n.SentRate, ReceivedBytesPerSecond: n.ReceivedRate,
	}
	if !h.Since.IsZero() {
		l.SinceNs = int64(now.Sub(h.Since))
	}
	return l
}

// callersNow are the gateways of peers that have called.
func (g *Gateway) callersNow(now time.Time) []admin.Caller {
	type who struct {
		name      identity.Name
		transport string
	}
	conns := map[who][]net.Conn{}
	g.mu.Lock()
	for c := range g.callers {
		speaks := snapshot.Native
		if c.protocol == httpconnect.Protocol {
			speaks = snapshot.HTTPConnect
		}
		w := who{c.name, speaks}
		conns[w] = append(conns[w], c.conn)
	}
	g.mu.Unlock()
	all := []admin.Caller{}
	for w, open := range conns {
		h := transport.Health{State: transport.Up}
		h.Measure(open, now)
		all = append(all, g.callerNow(w.name, w.transport, transport.TCP, h, now))
	}
	for name, h := range g.datagrams.callers() {
		all = append(all, g.callerNow(name, admin.Datagram, transport.UDP, h, now))
	}
	slices.SortFunc(all, func(a, b admin.Caller) int {
		return cmp.Or(strings.Compare(a.Gateway, b.Gateway), strings.Compare(a.Transport, b.Transport))
	})
	return all
}

func (g *Gateway) callerNow(name identity.Name, by, protocol string, h transport.Health, now time.Time) admin.Caller {
	w := ledger.Way{Side: ledger.Side{Direction: flow.Export, Peer: name.Cluster}, Gateway: name.Gateway, Protocol: protocol}
	return admin.Caller{Gateway: name.String(), Transport: by, Link: g.linkNow(h, w, now)}
}

// listens says whether clients can call at an address.
func (g *Gateway) listens(protocol string, at netip.AddrPort) bool {
	if protocol == transport.UDP {
		return g.datagrams.listens(at)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fronts[at.String()] != nil
}
