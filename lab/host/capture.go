package host

import (
	"errors"
	"fmt"
	"net/netip"

	"skerry.dev/skerry/lab/capture"
	"skerry.dev/skerry/lab/topology"
)

// ErrLabEnded says that the lab went down while packets were captured. What came
// before is written.
var ErrLabEnded = errors.New("it went down before the capture ended")

// Capture listens where packets pass: at a node, or at a link, which is named by
// its two ends, clusters or nodes.
//
// A packet of the link from c1 to c2: port of its node → bridge c1, here it is
// "c1>c2 sent" → emulator → bridge c2, here it is "c1>c2 received" → port. Between
// nodes of one cluster the two ports take the places of the bridges. The kernel
// stamps a packet at each of the two, by one clock, so the difference is what the
// link did to it. Only IP counts as a link's, and IPv6 only where the lab is dual.
//
// At a node all frames of its data interface are captured, "sent" and "received"
// being what the node does.
func (l *Lab) Capture(ends []topology.Ref, o capture.Options) (*capture.Capture, error) {
	points, err := l.points(ends)
	if err != nil {
		return nil, err
	}
	o.Alive = func() error {
		if !l.WAN.alive() {
			return fmt.Errorf("lab %s: %w", l.Name, ErrLabEnded)
		}
		return nil
	}
	return capture.Open(points, o)
}

// points that the packets pass, in the order in which they do.
func (l *Lab) points(ends []topology.Ref) ([]capture.Point, error) {
	switch len(ends) {
	case 1:
		h, ok := l.Nodes[ends[0]]
		if !ok {
			return nil, fmt.Errorf("no node %q", ends[0])
		}
		return []capture.Point{
			{Name: string(ends[0]) + " sent", Within: h.within, Device: DataInterface, Outgoing: true},
			{Name: string(ends[0]) + " received", Within: h.within, Device: DataInterface},
		}, nil
	case 2:
		there, err := l.pointsOf(ends[0], ends[1])
		if err != nil {
			return nil, err
		}
		back, err := l.pointsOf(ends[1], ends[0])
		return append(there, back...), err
	}
	return nil, fmt.Errorf("capture at %d ends: name a node or the two ends of a link", len(ends))
}

// pointsOf one direction: where its packets go into the link and come out.
func (l *Lab) pointsOf(from, to topology.Ref) ([]capture.Point, error) {
	m, err := match(&l.Topology, from, to)
	if err != nil {
		return nil, err
	}
	name := Link{From: from, To: to}.Name()
	sent := capture.Point{Name: name + " sent", Within: l.WAN.within, Device: m.In}
	sent.Source, sent.Source6 = l.network(from)
	sent.Destination, sent.Destination6 = l.network(to)
	received := sent
	received.Name, received.Device, received.Outgoing = name+" received", m.Out, true
	return []capture.Point{sent, received}, nil
}

func (h holder) within(f func() error) error { return inNode(h, f) }

// network is the data network of a cluster, or the address of a node, of each family;
// there is one of the name.
func (l *Lab) network(ref topology.Ref) (four, six netip.Prefix) {
	for _, n := range l.Topology.Nodes() {
		if n.Ref() == ref {
			return alone(n.Data.Addr()), alone(n.Data6.Addr())
		}
		if n.Cluster == string(ref) {
			return n.Data.Masked(), n.Data6.Masked()
		}
	}
	return netip.Prefix{}, netip.Prefix{}
}

// alone is the network of one address.
func alone(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
