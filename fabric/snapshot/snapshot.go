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
	// Workloads are clients here that policies can tell apart.
	Workloads []Workload
}

// Peer is another cluster of the fabric.
type Peer struct {
	// Name is the cluster's, as its certificates say it.
	Name string
	// Gateways that can be called, as HOST:PORT.
	Gateways []string
	// Transport carries connections to it, one of Transports.
	Transport string
	// Reverse says that it cannot call here: connections for its streams are opened from
	// here, to its gateways.
	Reverse bool
	// Metered says that each byte to it costs: none is sent that nobody asked for.
	Metered bool
	// Bandwidth bounds what all streams with it carry, each way, in bit/s; 0 for no bound.
	Bandwidth int64
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
	// ProxyProtocol has backends told who calls, by a header of its version 2.
	ProxyProtocol bool
}

// Import is a port of a peers' service that local clients may call.
type Import struct {
	transport.Target
	// PortName is the port's in DNS, empty where it has none.
	PortName string
	// Listen is where they call it.
	Listen []netip.AddrPort
	// From names the peers that export it.
	From []string
	// Confirm has nothing of a client's sent before the service has accepted it.
	Confirm bool
}

// Workload is clients known by their addresses, which no other workload has.
type Workload struct {
	Name, Namespace string
	// Addresses are theirs, of IPv4 as such; of those that lie in others, the longest
	// prefix says whose an address is.
	Addresses []netip.Prefix
	Labels    map[string]string
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
