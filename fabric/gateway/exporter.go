package gateway

import (
	"context"
	"fmt"
	"maps"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
)

// backend is the gateway as peers call it.
type backend struct{ *Gateway }

// begin accounts for a stream that a peer asks for.
func (b backend) begin(peer identity.Name, r transport.Request, from policy.Attributes) *ledger.Stream {
	return b.ledger.Begin(flow.Record{
		Direction: flow.Export, Peer: peer.Cluster, Gateway: peer.Gateway, Cluster: b.identity.Current().Name.Cluster,
		Service: r.Target, From: from,
	}, r.Traffic)
}

// refuse tells the log why a peer does not get what it asks for, and the peer as much as
// it need know.
func (b backend) refuse(entry *ledger.Stream, reason ledger.Reason, why string) error {
	entry.Refuse(reason, why)
	asked := entry.Record()
	b.log.Info("connection refused", "service", asked.Service.String(), "peer", asked.Peer+"/"+asked.Gateway, "why", why)
	return &transport.Refusal{Code: reason.Code()}
}

// Allow implements transport.Backend.
func (b backend) Allow(peer identity.Name, r transport.Request) error {
	return b.allow(peer, r, transport.TCP)
}

// allow decides on what a transport carries, which is of one protocol.
func (b backend) allow(peer identity.Name, r transport.Request, protocol string) error {
	from, err := vouched(peer, r.Source)
	entry := b.begin(peer, r, from)
	if err != nil {
		return b.refuse(entry, ledger.ReasonClaims, err.Error())
	}
	now, own := b.state.Load(), b.identity.Current().Name.Cluster
	d := now.policies.Decide(from, flow.To(own, r.Target))
	entry.Decided(peer.Cluster, own, d)
	if !d.Allowed {
		return b.refuse(entry, ledger.ReasonPolicy, d.String())
	}
	if now.Export(r.Target) == nil || r.Target.Protocol != protocol {
		return b.refuse(entry, ledger.ReasonNoService, transport.NoService.String())
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

// granted accounts for a stream that Allow has allowed, and is what it is for.
func (b backend) granted(peer identity.Name, r transport.Request, now *state) (*ledger.Stream, *snapshot.Export, error) {
	from, err := vouched(peer, r.Source)
	if err != nil { // Allow has said so
		return nil, nil, &transport.Refusal{Code: transport.Denied}
	}
	entry := b.begin(peer, r, from)
	e := now.Export(r.Target)
	if e == nil { // by a snapshot since
		return nil, nil, b.refuse(entry, ledger.ReasonNoService, transport.NoService.String())
	}
	return entry, e, nil
}

// Dial implements transport.Backend: the backends by turns, until one accepts.
func (b backend) Dial(ctx context.Context, peer identity.Name, r transport.Request) (transport.Conn, error) {
	now := b.state.Load()
	entry, e, err := b.granted(peer, r, now)
	if err != nil {
		return nil, err
	}
	conn, err := now.turns[r.Target].dial(ctx, e, r.Client)
	if err != nil {
		return nil, b.refuse(entry, ledger.ReasonNoBackend, err.Error())
	}
	r.Traffic.Pace(now.paces[peer.Cluster])
	b.carries(entry, peer, r.Traffic)
	return conn, nil
}

// carries accounts for a stream whose service has been reached.
func (b backend) carries(entry *ledger.Stream, peer identity.Name, t *transport.Traffic) {
	entry.Via(peer.Gateway)
	t.Opened()
	t.OnEnd(entry.End)
}
