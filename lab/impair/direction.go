package impair

import "net/netip"

// Direction is one direction of a link, as the WAN's namespace sees it.
type Direction struct {
	// Name of the direction, unique in a lab: FROM>TO.
	Name  string `json:"name"`
	Match Match  `json:"match"`
	Unit  Unit   `json:"unit"`
	// Seed of the loss and jitter of this direction.
	Seed uint64 `json:"seed"`
	Impairment
	// Then are further stages: each packet meets them one after the other, as if
	// they were links in a row, once Impairment has let it go.
	Then []Impairment `json:"then,omitempty"`
}

// Stages of the direction, in the order in which a packet meets them.
func (d Direction) Stages() Stages { return Chain(d.Impairment, d.Then) }

// IsZero reports that no stage does anything.
func (d Direction) IsZero() bool { return d.Stages().IsZero() }

// Exempts reports that packets from one node to another meet nothing, whatever
// the direction between their clusters does.
func (d Direction) Exempts() bool { return d.Match.Source.IsValid() && d.IsZero() }

// String describes all stages on one line.
func (d Direction) String() string { return d.Stages().String() }

// Match selects the packets of a direction in the WAN's namespace.
type Match struct {
	// In and Out name the interfaces that a packet crosses: the bridges of two
	// clusters, or, where Bridged is set, two ports of one cluster's bridge.
	In      string `json:"in"`
	Out     string `json:"out"`
	Bridged bool   `json:"bridged,omitempty"`
	// Source and Destination narrow a routed direction to two nodes.
	Source      netip.Addr `json:"source,omitzero"`
	Destination netip.Addr `json:"destination,omitzero"`
	// Dual has packets of IPv6 be of the direction, too, and Source6 and Destination6
	// are the two nodes' addresses there.
	Dual         bool       `json:"dual,omitempty"`
	Source6      netip.Addr `json:"source6,omitzero"`
	Destination6 netip.Addr `json:"destination6,omitzero"`
}
