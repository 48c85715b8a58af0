package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/socket"
)

// front is where local clients call a service of peers. What is called there may change
// while it listens.
type front struct {
	listener net.Listener
	of       atomic.Pointer[snapshot.Import]
}

// listenFor listens where the imports say, and no longer where they do not. Connections
// that were taken stay. An address that cannot be had is an error, and no other is left out
// for it.
func (g *Gateway) listenFor(ctx context.Context, imports []snapshot.Import) error {
	wanted := map[string]*snapshot.Import{}
	for i := range imports {
		if imports[i].Protocol != transport.TCP {
			continue
		}
		for _, address := range imports[i].Listen {
			wanted[address.String()] = &imports[i]
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for address, f := range g.fronts {
		if wanted[address] == nil {
			_ = f.listener.Close() // nobody accepts there then
			delete(g.fronts, address)
		}
	}
	var failed []error
	for address, i := range wanted {
		f := g.fronts[address]
		if f == nil {
			l, err := socket.Listen(ctx, address)
			if err != nil {
				failed = append(failed, fmt.Errorf("listen for %s: %w", i.Target, err))
				continue
			}
			f = &front{listener: l}
			g.fronts[address] = f
			f.of.Store(i)
			g.accept(ctx, l, func(conn net.Conn) { g.carry(ctx, *f.of.Load(), conn.(transport.Conn)) })
		}
		f.of.Store(i)
	}
	return errors.Join(failed...)
}

// carry takes a local client's connection to a peer: by the best way to those that export
// the service which the policies allow.
func (g *Gateway) carry(ctx context.Context, i snapshot.Import, app transport.Conn) {
	stop := context.AfterFunc(ctx, func() { transport.Reset(app) })
	defer stop()
	now, client := g.state.Load(), transport.ClientOf(app.RemoteAddr())
	from := g.local(now, client)
	why := "no peer can be called"
	entry := g.ledger.Begin(flow.Record{Direction: flow.Import, Service: i.Target, From: from, Client: app.RemoteAddr().String()}, transport.NewTraffic(time.Now()))
	allowed, peers := map[string]policy.Decision{}, []*snapshot.Peer(nil)
	for _, name := range i.From {
		d := now.policies.Decide(from, flow.To(name, i.Target))
		entry.Decided(name, name, d)
		if !d.Allowed {
			why = d.String()
		} else if p := now.Peer(name); p != nil {
			allowed[name], peers = d, append(peers, p)
		}
	}
	ways, rtt := g.reachable(peers)
	var first []byte
	if !i.Confirm { // nothing may be said before the service has accepted
		first = g.firsts.read(app, rtt)
	}
	for _, l := range ways {
		entry.Chosen(l.peer, allowed[l.peer])
		r := transport.Request{Target: i.Target, Source: from, Client: client, Confirm: i.Confirm, First: first, Traffic: entry.Via(l.address)}
		r.Traffic.Pace(now.paces[l.peer])
		err := l.carrier.Carry(ctx, r, app)
		if errors.Is(err, transport.ErrNotOpened) {
			why = err.Error()
			continue
		}
		entry.End(err)
		if err != nil && ctx.Err() == nil {
			g.log.Info("connection broken", "service", i.String(), "peer", l.peer, "why", err.Error())
		}
		return
	}
	transport.Reset(app)
	entry.Refuse(entry.Reason(), why)
	g.log.Info("connection refused", "service", i.String(), "client", app.RemoteAddr().String(), "why", why)
}

// local are the attributes of a client here: those of the workload that it is, if it is
// one, and of whom it calls by.
func (g *Gateway) local(now *state, c transport.Client) policy.Attributes {
	own := g.identity.Current().Name
	from := policy.Attributes{policy.Cluster: own.Cluster, policy.Gateway: own.Gateway}
	maps.Copy(from, now.workloads.Of(c.Addr()))
	return from
}
