package native

// Lose has the pool believe that packets are lost, or that none are.
func (p *Pool) Lose(loses bool) {
	p.mu.Lock()
	p.sight.meter = meter{packets: 1e6}
	if loses {
		p.sight.lost = 1e4
	}
	p.mu.Unlock()
	p.offer(loses)
	p.want()
}

// Bundled counts connections that may send blocks, and the blocks that they have sent.
func (p *Pool) Bundled() (connections int, blocks uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.all {
		if u := c.bundled.Load(); u.usable() {
			u.mu.Lock()
			connections, blocks = connections+1, blocks+u.sent
			u.mu.Unlock()
		}
	}
	return connections, blocks
}

// Copies counts those that its connections have sent.
func (p *Pool) Copies() (n uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.all {
		if u := c.bundled.Load(); u != nil {
			n += u.copies.Load()
		}
	}
	return n
}

// BundleID names the bundle that there is.
func (p *Pool) BundleID() [16]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bundle.id
}

// EndLanes ends so many lanes of the bundle.
func (p *Pool) EndLanes(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.bundle.lanes[:n] {
		if l := p.bundle.lanes[i].Load(); l != nil {
			l.end()
		}
	}
}

// Unshare has the pool begin no more streams on the connection that they share, until
// there is another.
func (p *Pool) Unshare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shared = nil
}

// Extra is what the pool counts.
func (p *Pool) Extra() *Extra { return p.options.Peer.Extra }
