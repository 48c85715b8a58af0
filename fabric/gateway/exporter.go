package gateway

import (
	"context"
	"maps"
	"net"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/transport"
)

// backend says whether a peer may call a service here, and calls it.
func (g *Gateway) backend(ctx context.Context, peer identity.Name, r transport.Request) (transport.Conn, error) {
	now := g.state.Load()
	refuse := func(code transport.Code, why string) (transport.Conn, error) {
		g.log.Info("connection refused", "service", r.Target.String(), "peer", peer.String(), "why", why)
		return nil, &transport.Refusal{Code: code}
	}
	// Which cluster it comes from only the certificate says.
	from := policy.Attributes(maps.Clone(r.Source))
	for key, value := range map[string]string{policy.Cluster: peer.Cluster, policy.Gateway: peer.Gateway} {
		if claimed, has := from[key]; has && claimed != value {
			return refuse(transport.Denied, "it claims to be of the "+key+" "+claimed)
		}
		if from == nil {
			from = policy.Attributes{}
		}
		from[key] = value
	}
	if d := now.policies.Decide(from, attributes(g.identity.Current().Name.Cluster, r.Target)); !d.Allowed {
		return refuse(transport.Denied, d.String())
	}
	e := now.Export(r.Target)
	if e == nil || r.Target.Protocol != transport.TCP {
		return refuse(transport.NoService, transport.NoService.String())
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", e.Backends[0])
	if err != nil {
		return refuse(transport.Unreachable, err.Error())
	}
	return conn.(*net.TCPConn), nil
}
