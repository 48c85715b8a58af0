package gateway

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/httpconnect"
	"skerry.dev/skerry/fabric/transport/native"
)

// way is how a peer is called: at which of its gateways, and by what. The gateway that has
// opened the connections itself is named in place of its address.
type way struct {
	peer, address, transport string
	reverse                  bool
}

// link is a way that is in use.
type link struct {
	way
	carrier transport.Carrier
	offers  *native.Offers // of one whose gateway cannot be called
	stop    context.CancelFunc
}

// waysTo are those to the gateways of a peer, once each.
func waysTo(p *snapshot.Peer) (all []way) {
	for _, address := range p.Gateways {
		if w := (way{peer: p.Name, address: address, transport: p.Transport}); !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// waysOf are those of each peer.
func waysOf(peers []snapshot.Peer) map[string][]way {
	all := map[string][]way{}
	for _, p := range peers {
		all[p.Name] = waysTo(&p)
	}
	return all
}

// call keeps connections to the gateways of peers, and no more to those that are none.
func (g *Gateway) call(ctx context.Context, peers []snapshot.Peer) {
	wanted, known := map[way]bool{}, map[string]bool{}
	for _, p := range peers {
		known[p.Name] = true
		for _, w := range waysTo(&p) {
			wanted[w] = true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for w, l := range g.links {
		if !wanted[w] && !(w.reverse && known[w.peer]) {
			l.stop()
			delete(g.links, w)
		}
	}
	for w := range wanted {
		if _, has := g.links[w]; !has {
			g.links[w] = g.open(ctx, w)
		}
	}
}

// open begins to use a way.
func (g *Gateway) open(ctx context.Context, w way) link {
	if w.transport == snapshot.HTTPConnect {
		return link{way: w, carrier: httpconnect.NewDialer(w.address, g.identity.Client(w.peer, httpconnect.Protocol)), stop: func() {}}
	}
	within, stop := context.WithCancel(ctx)
	options := native.Options{
		Ahead: g.config.Connections.Ahead, Most: g.config.Connections.Most,
		Congestion: g.config.Connections.Congestion, Peer: g.peerLocked(w.peer),
	}
	config := g.identity.Client(w.peer, native.Protocol)
	if w.reverse {
		options.Offers, config = native.NewOffers(), g.identity.Server(native.ProtocolReverse)
	}
	pool := native.NewPool(w.address, config, options)
	g.running.Go(func() { pool.Keep(within) })
	return link{w, pool, options.Offers, stop}
}

// reachable are the ways to the gateways of peers, in the order in which to try them, and
// the round trip of the first.
func (g *Gateway) reachable(peers []*snapshot.Peer) (links []link, rtt time.Duration) {
	var paths []transport.Path
	g.mu.Lock()
	for _, p := range peers {
		for _, w := range g.waysLocked(p) {
			if l, has := g.links[w]; has {
				links, paths = append(links, l), append(paths, l.carrier.Path())
			}
		}
	}
	g.mu.Unlock()
	ordered := make([]link, 0, len(links))
	for at, i := range choose(paths, rand.IntN) {
		if at == 0 {
			rtt = paths[i].RTT
		}
		ordered = append(ordered, links[i])
	}
	return ordered, rtt
}

// waysLocked are those to the gateways of a peer, of those too that cannot be called.
func (g *Gateway) waysLocked(p *snapshot.Peer) []way {
	all := slices.Clip(g.state.Load().ways[p.Name])
	for w := range g.links {
		if w.reverse && w.peer == p.Name {
			all = append(all, w)
		}
	}
	return all
}

// paces are the bounds of peers. One that was there stays that of the streams it has.
func (g *Gateway) paces(peers []snapshot.Peer) map[string]*transport.Pace {
	const bits = 8
	var before map[string]*transport.Pace
	if s := g.state.Load(); s != nil {
		before = s.paces
	}
	all := map[string]*transport.Pace{}
	for _, p := range peers {
		if p.Bandwidth == 0 {
			continue
		}
		pace := before[p.Name]
		if pace == nil {
			pace = transport.NewPace(p.Bandwidth / bits)
		}
		pace.Set(p.Bandwidth / bits)
		all[p.Name] = pace
	}
	return all
}

// settled says whether no way is being prepared, but those whose gateway has been
// unreachable for a while: it may be about to begin, as this one is.
func (g *Gateway) settled(now time.Time) bool {
	const while = 5 * time.Second
	g.mu.Lock()
	var all []interface{ Health() transport.Health }
	for _, l := range g.links {
		all = append(all, l.carrier)
	}
	g.mu.Unlock()
	for _, l := range *g.datagrams.links.Load() {
		all = append(all, l)
	}
	for _, l := range all {
		if h := l.Health(); !h.Settled && (h.State != transport.Down || now.Sub(h.Since) < while) {
			return false
		}
	}
	return true
}

// peer is how native treats a cluster.
func (g *Gateway) peer(cluster string) native.Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.peerLocked(cluster)
}

func (g *Gateway) peerLocked(cluster string) native.Peer {
	to, has := g.peers[cluster]
	if !has {
		to.Extra = new(native.Extra)
		to.Training = native.NewTraining(g.config.Connections.Training, g.config.Connections.TrainingPerHour, to.Extra)
		g.peers[cluster] = to
	}
	if p := g.state.Load().Peer(cluster); p != nil && p.Metered || g.config.Connections.Congestion != bbr {
		to.Training = nil
	}
	return to
}
