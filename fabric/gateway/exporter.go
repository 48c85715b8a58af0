package gateway

import (
	"context"
	"fmt"
	"maps"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/transport"
)

// backend is the gateway as peers call it.
type backend struct{ *Gateway }

// refuse tells the log why a peer does not get what it asks for, and the peer as much as
// it need know.
func (b backend) refuse(peer identity.Name, r transport.Request, code transport.Code, why string) error {
	b.log.Info("connection refused", "service", r.Target.String(), "peer", peer.String(), "why", why)
	return &transport.Refusal{Code: code}
}

// Allow implements transport.Backend.
func (b backend) Allow(peer identity.Name, r transport.Request) error {
	return b.allow(peer, r, transport.TCP)
}

// allow decides on what a transport carries, which is of one protocol.
func (b backend) allow(peer identity.Name, r transport.Request, protocol string) error {
	from, err := vouched(peer, r.Source)
	if err != nil {
		return b.refuse(peer, r, transport.Denied, err.Error())
	}
	now := b.state.Load()
	if d := now.policies.Decide(from, attributes(b.identity.Current().Name.Cluster, r.Target)); !d.Allowed {
		return b.refuse(peer, r, transport.Denied, d.String())
	}
	if now.Export(r.Target) == nil || r.Target.Protocol != protocol {
		return b.refuse(peer, r, transport.NoService, transport.NoService.String())
	}
	return nil
}

// vouched are the attributes of a client by the word of a peer, but for those that only
// its certificate says.
func vouched(peer identity.Name, claimed map[string]string) (policy.Attributes, error) {
	for _, key := range []string{policy.Service, policy.Port, policy.Protocol} {
		if _, has := claimed[key]; has {
			return nil, fmt.Errorf("it claims a %s, which only what is called has", key)
		}
	}
	from := policy.Attributes{}
	maps.Copy(from, claimed)
	for key, value := range map[string]string{policy.Cluster: peer.Cluster, policy.Gateway: peer.Gateway} {
		if says, has := claimed[key]; has && says != value {
			return nil, fmt.Errorf("it claims to be of the %s %q", key, says)
		}
		from[key] = value
	}
	return from, nil
}

// Dial implements transport.Backend: the backends by turns, until one accepts.
func (b backend) Dial(ctx context.Context, peer identity.Name, r transport.Request) (transport.Conn, error) {
	now := b.state.Load()
	e := now.Export(r.Target)
	if e == nil { // by a snapshot since
		return nil, b.refuse(peer, r, transport.NoService, transport.NoService.String())
	}
	conn, err := now.turns[r.Target].dial(ctx, e, r.Client)
	if err != nil {
		return nil, b.refuse(peer, r, transport.Unreachable, err.Error())
	}
	return conn, nil
}
