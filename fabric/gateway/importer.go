package gateway

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
)

// importAll listens where local clients call services of peers.
func (g *Gateway) importAll(ctx context.Context) error {
	for _, i := range g.state.Load().Imports {
		for _, address := range i.Listen {
			l, err := net.Listen("tcp", address.String())
			if err != nil {
				return fmt.Errorf("listen for %s: %w", i.Target, err)
			}
			g.accept(ctx, l, func(conn net.Conn) { g.carry(ctx, i, conn.(transport.Conn)) })
		}
	}
	return nil
}

// carry takes a local client's connection to a peer.
func (g *Gateway) carry(ctx context.Context, i snapshot.Import, app transport.Conn) {
	stop := context.AfterFunc(ctx, func() { transport.Reset(app) })
	defer stop()
	name, from := i.From[0], g.local()
	if d := g.state.Load().policies.Decide(from, attributes(name, i.Target)); !d.Allowed {
		transport.Reset(app)
		g.log.Info("connection refused", "service", i.String(), "client", app.RemoteAddr().String(), "why", d.String())
		return
	}
	pools := g.pools[name]
	if len(pools) == 0 {
		transport.Reset(app)
		g.log.Info("connection refused", "service", i.String(), "client", app.RemoteAddr().String(), "why", "the peer "+name+" has no gateway that can be called")
		return
	}
	err := pools[0].Carry(ctx, transport.Request{Target: i.Target, Source: from}, app)
	if err != nil && ctx.Err() == nil {
		g.log.Info("connection broken", "service", i.String(), "peer", name, "why", err.Error())
	}
}

// local are the attributes of clients here.
func (g *Gateway) local() policy.Attributes {
	own := g.identity.Current().Name
	return policy.Attributes{policy.Cluster: own.Cluster, policy.Gateway: own.Gateway}
}

// attributes of a service of a cluster.
func attributes(cluster string, t transport.Target) policy.Attributes {
	return policy.Attributes{
		policy.Cluster: cluster, policy.Namespace: t.Namespace, policy.Service: t.Name,
		policy.Port: strconv.Itoa(int(t.Port)), policy.Protocol: t.Protocol,
	}
}
