package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/native"
)

// offer opens connections to the gateways of peers who cannot call here, for streams from
// there, and no more to others. They are accepted calls as soon as they are wanted.
func (g *Gateway) offer(ctx context.Context, peers []snapshot.Peer) {
	wanted := map[way]bool{}
	for _, p := range peers {
		if !p.Reverse {
			continue
		}
		for _, w := range waysTo(&p) {
			wanted[w] = true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for w, stop := range g.offering {
		if !wanted[w] {
			stop()
			delete(g.offering, w)
		}
	}
	for w := range wanted {
		if g.offering[w] != nil {
			continue
		}
		within, stop := context.WithCancel(ctx)
		g.offering[w] = stop
		for range native.OffersMost {
			g.running.Go(func() { g.offerTo(ctx, within, w) })
		}
		g.running.Go(func() { g.datagrams.offerTo(ctx, within, w) })
	}
}

// stopOffering opens no more connections for peers. Those that are in use go on.
func (g *Gateway) stopOffering() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, stop := range g.offering {
		stop()
	}
	clear(g.offering)
}

// Times of offers.
const (
	offerRetryLeast = 100 * time.Millisecond
	offerRetryMost  = time.Second
)

// offerTo keeps one connection offered to a gateway until it is to end, and has those that
// are wanted served until the context ends.
func (g *Gateway) offerTo(ctx, until context.Context, w way) {
	wait, failing := offerRetryLeast, false
	for until.Err() == nil {
		c, err := g.offered(until, w)
		if err == nil {
			wait, failing = offerRetryLeast, false
			g.running.Go(func() { g.serve(ctx, c) })
			continue
		}
		if until.Err() == nil && !failing {
			g.log.Warn("peer cannot be offered a connection", "peer", w.peer, "at", w.address, "why", err.Error())
		}
		failing = true
		select {
		case <-until.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, offerRetryMost)
	}
}

// offered is a connection that a gateway wants to call by.
func (g *Gateway) offered(ctx context.Context, w way) (*caller, error) {
	config := g.identity.Client(w.peer, native.ProtocolReverse)
	conn, err := native.Offer(ctx, w.address, config)
	if err != nil {
		return nil, err
	}
	c := &caller{conn: conn, verify: config.VerifyConnection}
	if c.name, err = identity.Peer(conn.ConnectionState()); err == nil {
		c.protocol, err = native.Wanted(ctx, conn)
	}
	if err == nil { // it may have waited for long
		err = c.verify(conn.ConnectionState())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// take has streams to a peer go over a connection that one of its gateways has opened.
func (g *Gateway) take(ctx context.Context, c *caller) error {
	name := c.name.Cluster
	if g.state.Load().Peer(name) == nil {
		return errors.Join(fmt.Errorf("connection from a cluster that is no peer: %w", identity.ErrUntrusted), c.conn.Close())
	}
	w := way{peer: name, address: c.name.Gateway, transport: snapshot.Native, reverse: true}
	g.mu.Lock()
	l, has := g.links[w]
	if !has {
		g.forgetLocked(name)
		l = g.open(ctx, w)
		g.links[w] = l
	}
	g.mu.Unlock()
	if !l.offers.Add(c.conn) {
		return errors.Join(fmt.Errorf("more than %d connections that nobody wants: %w", native.OffersMost, transport.ErrProtocol), c.conn.Close())
	}
	return nil
}

// forgetLocked ends the ways to gateways of a peer that have opened no connection for long.
func (g *Gateway) forgetLocked(peer string) {
	const long = 10 * time.Minute
	for w, l := range g.links {
		if !w.reverse || w.peer != peer {
			continue
		}
		if h := l.carrier.Health(); h.State == transport.Down && time.Since(h.Since) > long {
			l.stop()
			delete(g.links, w)
		}
	}
}
