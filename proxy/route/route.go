// Package route decides which endpoints of a Service's port may serve whom, by
// Kubernetes' rules: readiness, graceful termination, traffic policies, topology hints and
// source ranges. It is pure; who of them gets a connection is balance's. Start at Of.
//
// The rules are those of kube-proxy, as "Virtual IPs and Service Proxies", "Service
// Internal Traffic Policy" and "Topology Aware Routing" of the Kubernetes documentation
// have them.
package route

import (
	"net/netip"
	"slices"

	"skerry.dev/skerry/proxy/snapshot"
)

// A Place is a node where a proxy runs: its name, zone and addresses as the cluster knows them,
// where its pods' addresses are, and the addresses that its interfaces have.
type Place struct {
	Node, Zone string
	Addrs      []netip.Addr
	Pods       []netip.Prefix
	Own        map[netip.Addr]bool
}

// has says whether a client is the node itself or one of its pods.
func (p Place) has(client netip.Addr) bool {
	return client.IsLoopback() || p.Own[client] || slices.Contains(p.Addrs, client) || within(p.Pods, client)
}

func within(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
}

// Routes are who may serve a port by each traffic policy.
type Routes struct{ Cluster, Local []snapshot.Endpoint }

// Of a Service's port, seen from a place.
func Of(s *snapshot.Service, p *snapshot.Port, at Place) Routes {
	everywhere := ready(p.Endpoints)
	if s.Policy == "" {
		everywhere = hinted(everywhere, at)
	}
	here := where(p.Endpoints, func(e snapshot.Endpoint) bool { return e.Node == at.Node })
	return Routes{Cluster: orEnding(everywhere, p.Endpoints), Local: orEnding(ready(here), here)}
}

// ready are the endpoints that are.
func ready(all []snapshot.Endpoint) []snapshot.Endpoint {
	return where(all, func(e snapshot.Endpoint) bool { return e.Ready })
}

// orEnding are some; without one, those of all that end and still serve.
func orEnding(some, all []snapshot.Endpoint) []snapshot.Endpoint {
	if len(some) > 0 {
		return some
	}
	return where(all, func(e snapshot.Endpoint) bool { return e.Serving && e.Terminating })
}

// An Audience is for whom there is somebody who may serve.
type Audience int

// The audiences: inside are this node and its own pods.
const (
	Nobody Audience = iota
	Inside
	Everybody
)

// For says which clients that call by an entry somebody may serve.
func (r Routes) For(s *snapshot.Service, by Entry) Audience {
	serve := r.Cluster
	if by == ClusterIP && s.InternalLocal {
		serve = r.Local
	}
	switch {
	case len(serve) == 0:
		return Nobody
	case by != ClusterIP && s.ExternalLocal && len(r.Local) == 0:
		return Inside
	default:
		return Everybody
	}
}

// An Entry is by what address clients call a Service.
type Entry int

// The entries: an address within the cluster, one of spec.externalIPs, a port of nodes, and
// a load balancer's address.
const (
	ClusterIP Entry = iota
	ExternalIP
	NodePort
	LoadBalancer
)

// Local says whether who calls by an entry is served by this node alone. Its own pods are
// taken to go out to a load balancer and come back in anywhere.
func Local(s *snapshot.Service, by Entry, client netip.Addr, at Place) bool {
	if by == ClusterIP {
		return s.InternalLocal
	}
	return s.ExternalLocal && !at.has(client)
}

// Admits says whether a client may call by an entry: a load balancer's is for the Service's
// source ranges of the client's family, where there are some. A node that is in them may
// call by the load balancer's own address, if it has that.
func Admits(s *snapshot.Service, by Entry, client netip.Addr, at Place) bool {
	ranges := where(s.SourceRanges, func(r netip.Prefix) bool { return r.Addr().Is4() == client.Is4() })
	if by != LoadBalancer || len(ranges) == 0 || within(ranges, client) {
		return true
	}
	return slices.Contains(s.LoadBalancerIPs, client) && slices.ContainsFunc(at.Addrs, func(a netip.Addr) bool { return within(ranges, a) })
}

// hinted are the endpoints that hints keep for this node, else for its zone. Hints count
// only where every endpoint has some, and some endpoint is for this place: so that none
// is left without because a controller is behind.
func hinted(all []snapshot.Endpoint, at Place) []snapshot.Endpoint {
	if some, ok := forPlace(all, at.Node, func(e snapshot.Endpoint) []string { return e.ForNodes }); ok {
		return some
	}
	if some, ok := forPlace(all, at.Zone, func(e snapshot.Endpoint) []string { return e.ForZones }); ok {
		return some
	}
	return all
}

func forPlace(all []snapshot.Endpoint, place string, hints func(snapshot.Endpoint) []string) ([]snapshot.Endpoint, bool) {
	if place == "" {
		return nil, false
	}
	for _, e := range all {
		if len(hints(e)) == 0 {
			return nil, false
		}
	}
	some := where(all, func(e snapshot.Endpoint) bool { return slices.Contains(hints(e), place) })
	return some, len(some) > 0
}

func where[T any](all []T, is func(T) bool) []T {
	var some []T
	for _, e := range all {
		if is(e) {
			some = append(some, e)
		}
	}
	return some
}
