package native

import (
	"maps"
	"slices"
)

// Renew has the connections that there are end with their streams, and others take their
// place.
func (p *Pool) Renew() {
	p.mu.Lock()
	s := p.shared
	p.mu.Unlock()
	if s != nil {
		p.excuse(s)
	}
	p.retireAll()
	p.replaceBundle(nil)
	p.want()
}

// retireAll has all connections end with their streams.
func (p *Pool) retireAll() {
	p.mu.Lock()
	all := slices.Collect(maps.Keys(p.all))
	p.mu.Unlock()
	for _, c := range all {
		c.retire()
	}
}

// replaceBundle has connections from now on use another bundle, where they need one: in place
// of that which a connection uses, or of any.
func (p *Pool) replaceBundle(of *connection) {
	p.mu.Lock()
	b := p.bundle
	if of != nil {
		if u := of.bundled.Load(); u == nil || u.bundle != b {
			b = nil
		}
	}
	if b != nil {
		p.bundle = nil
	}
	p.mu.Unlock()
	if b != nil {
		b.retire()
	}
}

// retire has the bundle end with the last of its users.
func (b *bundle) retire() {
	b.mu.Lock()
	b.retired = true
	unused := len(b.users) == 0
	b.mu.Unlock()
	if unused {
		b.fail(ErrClosed)
	}
}
