// Package route decides which endpoints of a Service's port may serve whom, by
// Kubernetes' rules: readiness, graceful termination, traffic policies and topology hints.
// It is pure; who of them gets a connection is balance's. Start at Of.
//
// The rules are those of kube-proxy, as "Virtual IPs and Service Proxies", "Service
// Internal Traffic Policy" and "Topology Aware Routing" of the Kubernetes documentation
// have them.
package route

import (
	"slices"

	"skerry.dev/skerry/proxy/snapshot"
)

// A Place is where this proxy runs.
type Place struct{ Node, Zone string }

// Routes are who may serve a port.
type Routes struct {
	// Internal are for clients within the cluster, External for those that came by a node's
	// port or an external address.
	Internal, External []snapshot.Endpoint
	// Local is how many of this node's are ready, or serve while they end: what the health
	// check port tells.
	Local int
}

// Of a Service's port, seen from a place.
func Of(s *snapshot.Service, p *snapshot.Port, at Place) Routes {
	everywhere := usable(p.Endpoints)
	here := usable(on(p.Endpoints, at.Node))
	if s.Policy == "" {
		everywhere = hinted(everywhere, at)
	}
	r := Routes{Internal: everywhere, External: everywhere, Local: len(here)}
	if s.InternalLocal {
		r.Internal = here
	}
	if s.ExternalLocal {
		r.External = here
	}
	return r
}

// usable are the endpoints that are ready; without one, those that end and still serve.
func usable(all []snapshot.Endpoint) []snapshot.Endpoint {
	ready := where(all, func(e snapshot.Endpoint) bool { return e.Ready })
	if len(ready) > 0 {
		return ready
	}
	return where(all, func(e snapshot.Endpoint) bool { return e.Serving && e.Terminating })
}

// on are the endpoints of a node.
func on(all []snapshot.Endpoint, node string) []snapshot.Endpoint {
	return where(all, func(e snapshot.Endpoint) bool { return e.Node == node })
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

func where(all []snapshot.Endpoint, is func(snapshot.Endpoint) bool) []snapshot.Endpoint {
	var some []snapshot.Endpoint
	for _, e := range all {
		if is(e) {
			some = append(some, e)
		}
	}
	return some
}
