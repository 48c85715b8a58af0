package gateway

import (
	"context"
	"slices"

	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/httpconnect"
	"skerry.dev/skerry/fabric/transport/native"
)

// way is how a peer is called: at which of its gateways, and by what.
type way struct{ peer, address, transport string }

// link is a way that is in use.
type link struct {
	address string
	carrier transport.Carrier
	stop    context.CancelFunc
}

// call keeps connections to the gateways of peers, and no more to those that are none.
func (g *Gateway) call(ctx context.Context, peers []snapshot.Peer) {
	wanted := map[way]bool{}
	for _, p := range peers {
		for _, address := range p.Gateways {
			wanted[way{p.Name, address, p.Transport}] = true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for w, l := range g.links {
		if !wanted[w] {
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
		return link{w.address, httpconnect.NewDialer(w.address, g.identity.Client(w.peer, httpconnect.Protocol)), func() {}}
	}
	within, stop := context.WithCancel(ctx)
	pool := native.NewPool(w.address, g.identity.Client(w.peer, native.Protocol), native.Options{
		Ahead: g.config.Connections.Ahead, Most: g.config.Connections.Most,
		Congestion: g.config.Connections.Congestion, Training: g.trainingLocked(w.peer),
	})
	g.running.Go(func() { pool.Keep(within) })
	return link{w.address, pool, stop}
}

// reachable are the ways to a peer's gateways: those first that are ready, and else in
// the order of the snapshot.
func (g *Gateway) reachable(name string) (links []link) {
	p := g.state.Load().Peer(name)
	if p == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, address := range p.Gateways {
		if l, has := g.links[way{name, address, p.Transport}]; has {
			links = append(links, l)
		}
	}
	slices.SortStableFunc(links, func(a, b link) int {
		switch ready := a.carrier.Ready(); {
		case ready == b.carrier.Ready():
			return 0
		case ready:
			return -1
		}
		return 1
	})
	return links
}

// training is how TCP is taught the paths to a cluster, nil where it is not.
func (g *Gateway) training(cluster string) *native.Training {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trainingLocked(cluster)
}

func (g *Gateway) trainingLocked(cluster string) *native.Training {
	if p := g.state.Load().Peer(cluster); p != nil && p.Metered || g.config.Connections.Congestion != bbr {
		return nil
	}
	t, has := g.trainings[cluster]
	if !has {
		t = native.NewTraining(g.config.Connections.Training, g.config.Connections.TrainingPerHour)
		g.trainings[cluster] = t
	}
	return t
}
