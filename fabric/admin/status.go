package admin

import (
	"slices"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// Status is what a gateway knows of itself and of its peers. The names of its fields in
// JSON stay as they are.
type Status struct {
	Fabric  string `json:"fabric"`
	Gateway string `json:"gateway"` // CLUSTER/GATEWAY
	Phase   Phase  `json:"phase"`
	// Listen is where peers call; none can where it is empty.
	Listen       string        `json:"listen,omitempty"`
	Certificates []Certificate `json:"certificates"`
	// SnapshotAgeNs is how long the files are in force that are now.
	SnapshotAgeNs int64    `json:"snapshotAgeNs"`
	Peers         []Peer   `json:"peers"`
	Callers       []Caller `json:"callers"`
	Extra         []Extra  `json:"extra"`
	Exports       []Export `json:"exports"`
	Imports       []Import `json:"imports"`
	// Flows is nil where no log of flows is kept.
	Flows *Flows `json:"flows,omitempty"`
}

// Phase is how far a gateway is.
type Phase string

// The phases.
const (
	Starting Phase = "starting"
	Serving  Phase = "serving"
	Ready    Phase = "ready" // and the ways to peers are prepared, as far as they can be
	Draining Phase = "draining"
)

// Certificate is one that the gateway stands on.
type Certificate struct {
	// Of is "leaf" for its own, "authority" for the first to expire of those above.
	Of    string    `json:"of"`
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	// Overdue says that less than a third of its life is left, and it was not renewed.
	Overdue bool `json:"overdue"`
}

// Peer is another cluster, as it is called.
type Peer struct {
	Name     string    `json:"name"`
	Gateways []Gateway `json:"gateways"`
}

// Extra are bytes that native has sent to a cluster for the sake of what streams say.
type Extra struct {
	Peer string `json:"peer"`
	// TrainingBytes taught TCP its paths, CopyBytes say again what streams have said.
	TrainingBytes uint64 `json:"trainingBytes"`
	CopyBytes     uint64 `json:"copyBytes"`
	// DataBytes are of blocks that went in pieces, ParityBytes of what stands in for pieces.
	DataBytes   uint64 `json:"dataBytes"`
	ParityBytes uint64 `json:"parityBytes"`
}

// Datagram is the transport of what services say by UDP.
const Datagram = "datagram"

// Unreachable are its gateways where none is reachable, or may be: for TCP, and for UDP.
func (p Peer) Unreachable() (all []Gateway) {
	for _, udp := range []bool{false, true} {
		of := slices.DeleteFunc(slices.Clone(p.Gateways), func(g Gateway) bool { return (g.Transport == Datagram) != udp })
		if !slices.ContainsFunc(of, func(g Gateway) bool { return g.State != transport.Down }) {
			all = append(all, of...)
		}
	}
	return all
}

// Gateway is one of a peer that can be called, or that opens the connections itself.
type Gateway struct {
	// Address is where it is called; of one that cannot be, its name.
	Address   string `json:"address"`
	Transport string `json:"transport"` // Datagram is beside the one that is for TCP
	Reverse   bool   `json:"reverse,omitempty"`
	Link
}

// Caller is a gateway of a peer that has called.
type Caller struct {
	Gateway   string `json:"gateway"` // CLUSTER/GATEWAY
	Transport string `json:"transport"`
	Link
}

// Link is how the way to a gateway does.
type Link struct {
	State transport.State `json:"state"`
	// SinceNs is how long ago the state began, 0 where there was no other.
	SinceNs     int64  `json:"sinceNs,omitempty"`
	Why         string `json:"why,omitempty"`
	DialsFailed uint64 `json:"dialsFailed"`
	Connections int    `json:"connections"`
	// Idle are connections that are open ahead of need.
	Idle     int   `json:"idle"`
	RTTNs    int64 `json:"rttNs,omitempty"`
	MinRTTNs int64 `json:"minRttNs,omitempty"`
	// Segments of TCP that the connections which are open have sent with data in them,
	// and Retransmitted of those; of QUIC packets, and those that were lost.
	Segments      uint64 `json:"segments"`
	Retransmitted uint64 `json:"retransmitted"`
	Streams       int    `json:"streams"`
	// SentBytesPerSecond and ReceivedBytesPerSecond are of streams, over the last ten.
	SentBytesPerSecond     float64 `json:"sentBytesPerSecond"`
	ReceivedBytesPerSecond float64 `json:"receivedBytesPerSecond"`
}

// Loss is the share of segments that were sent again, as far as any were sent.
func (l Link) Loss() float64 {
	if l.Segments == 0 {
		return 0
	}
	return float64(l.Retransmitted) / float64(l.Segments)
}

// Export is a service here.
type Export struct {
	Service  transport.Target `json:"service"`
	Backends []string         `json:"backends"`
}

// Import is a service of peers.
type Import struct {
	Service transport.Target `json:"service"`
	From    []string         `json:"from"`
	Listen  []Address        `json:"listen"`
}

// Address is where an import is called.
type Address struct {
	Address string `json:"address"`
	// Listening is false where the address could not be had.
	Listening bool `json:"listening"`
}

// Flows counts records of the log of flows.
type Flows struct {
	File    string `json:"file"`
	Written uint64 `json:"written"`
	Dropped uint64 `json:"dropped"`
}
