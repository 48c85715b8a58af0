package native

// meter measures the loss of packets on the way to a peer, over all connections to it and
// the last minutes.
type meter struct{ packets, lost float64 }

// add adds what happened in a second.
func (m *meter) add(c count) {
	const keep = 0.99 // half of it counts a minute later
	m.packets, m.lost = keep*m.packets+float64(c.packets), keep*m.lost+float64(c.lost)
}

// loss is the share of packets that TCP had to send again.
func (m *meter) loss() float64 {
	if m.packets == 0 {
		return 0
	}
	return m.lost / m.packets
}

// lossy says whether packets are lost, more than now and then one.
func (m *meter) lossy() bool {
	const least, lostLeast = 1e-4, 1
	return m.lost > lostLeast && m.loss() > least
}
