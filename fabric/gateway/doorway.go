package gateway

import (
	"net"
	"net/netip"
	"sync"
)

const (
	// handshakesMax bounds those that are under way, and handshakesOfOne those of one
	// address: who opens many and says nothing holds up himself.
	handshakesMax   = 1024
	handshakesOfOne = 128
)

// doorway counts handshakes that are under way. The zero doorway has none.
type doorway struct {
	mu  sync.Mutex
	all int
	of  map[netip.Addr]int
}

// enter lets one begin, if there is room for it.
func (d *doorway) enter(from net.Addr) bool {
	who := callerAddr(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all >= handshakesMax || d.of[who] >= handshakesOfOne {
		return false
	}
	if d.of == nil {
		d.of = map[netip.Addr]int{}
	}
	d.all++
	d.of[who]++
	return true
}

// leave notes that one is over.
func (d *doorway) leave(from net.Addr) {
	who := callerAddr(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all--
	if d.of[who]--; d.of[who] == 0 {
		delete(d.of, who)
	}
}

// callerAddr is the address of who calls. Who has a network of IPv6 has all of its
// addresses, so that those of a /64 are one.
func callerAddr(from net.Addr) netip.Addr {
	tcp, ok := from.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	a := tcp.AddrPort().Addr().Unmap()
	const network = 64
	if a.Is6() {
		return netip.PrefixFrom(a, network).Masked().Addr()
	}
	return a
}
