// Package snapshot is what a gateway knows of its fabric at one time: peers, what is
// exported and imported, and who may call whom. Sources make snapshots, gateways act on
// them; none is ever changed. Start at Snapshot.
package snapshot

import (
	"net/netip"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/transport"
)

// Snapshot is all of it.
type Snapshot struct {
	Peers    []Peer
	Exports  []Export
	Imports  []Import
	Policies []policy.Policy
}

// Peer is another cluster of the fabric.
type Peer struct {
	// Name is the cluster's, as its certificates say it.
	Name string
	// Gateways that can be called, as HOST:PORT.
	Gateways []string
	// Transport carries connections to it, one of Transports.
	Transport string
	// Metered says that each byte to it costs: none is sent that nobody asked for.
	Metered bool
}

// Transports.
const (
	Native      = "native"
	HTTPConnect = "httpconnect"
)

// Transports lists them, the default first.
func Transports() []string { return []string{Native, HTTPConnect} }

// Export is a port of a service that peers may call, where policies let them.
type Export struct {
	transport.Target
	// Backends are what serves it, as HOST:PORT.
	Backends []string
}

// Import is a port of a peers' service that local clients may call.
type Import struct {
	transport.Target
	// Listen is where they call it.
	Listen []netip.AddrPort
	// From names the peers that export it.
	From []string
	// Confirm has nothing of a client's sent before the service has accepted it.
	Confirm bool
}

// Peer finds a peer by name, nil where there is none.
func (s *Snapshot) Peer(name string) *Peer {
	for i := range s.Peers {
		if s.Peers[i].Name == name {
			return &s.Peers[i]
		}
	}
	return nil
}

// Export finds what is exported as a target, nil where nothing is.
func (s *Snapshot) Export(t transport.Target) *Export {
	for i := range s.Exports {
		if s.Exports[i].Target == t {
			return &s.Exports[i]
		}
	}
	return nil
}
