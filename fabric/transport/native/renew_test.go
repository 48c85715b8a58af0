package native_test

import (
	"testing"

	"skerry.dev/skerry/internal/conntest"
)

// Connections that are renewed carry what was begun on them to its end, and no more: neither
// they nor their bundle are left.
func TestRenew(t *testing.T) {
	p := newPair(t, 2, to(conntest.Listen(t, conntest.Echo)))
	p.pool.Lose(true)
	bundled := func() bool { n, _ := p.pool.Bundled(); return n > 1 }
	conntest.Await(t, "connections that send blocks", bundled)
	before, dialled := p.pool.BundleID(), p.dialled.Load()
	ask(t, p, 3<<20, func() {
		p.pool.Renew()
		ask(t, p, 100, func() {})
	})
	conntest.Await(t, "another bundle", func() bool { return bundled() && p.pool.BundleID() != before })
	conntest.Await(t, "no connection of before", func() bool { return p.open() == int(p.dialled.Load()-dialled) })
	ask(t, p, 3<<20, func() {})
}

// Those whose gateway renews its own give way, too.
func TestServerRenews(t *testing.T) {
	p := newPair(t, 2, to(conntest.Listen(t, conntest.Echo)))
	conntest.Await(t, "connections", func() bool { return p.pool.Health().Idle >= 2 })
	dialled := p.dialled.Load()
	ask(t, p, 1<<20, func() {
		p.server.Renew()
		ask(t, p, 100, func() {})
	})
	conntest.Await(t, "no connection of before", func() bool { n := p.dialled.Load() - dialled; return n >= 3 && p.open() == int(n) })
	ask(t, p, 100, func() {})
}
