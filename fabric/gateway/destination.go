package gateway

import (
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// destination is the address that a client has asked, of those that a front listens at;
// and for one that is of a link alone, at which interface.
type destination struct {
	address netip.Addr
	link    int
}

// controlBytes has room for what the kernel says of where a datagram went.
const controlBytes = 128

// destinations tell where datagrams went, of a socket that listens at all addresses
// (IP_PKTINFO, RFC 3542 section 6).
type destinations struct{ v6 bool }

func newDestinations(conn net.PacketConn, wildcard netip.Addr) (*destinations, error) {
	if wildcard.Is6() {
		return &destinations{v6: true}, ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	}
	return &destinations{}, ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst, true)
}

// parse reads it.
func (d *destinations) parse(control []byte) destination {
	if !d.v6 {
		var m ipv4.ControlMessage
		_ = m.Parse(control) // the kernel made it
		address, _ := netip.AddrFromSlice(m.Dst.To4())
		return destination{address: address}
	}
	var m ipv6.ControlMessage
	_ = m.Parse(control) // the kernel made it
	at := destination{}
	at.address, _ = netip.AddrFromSlice(m.Dst)
	if at.address.IsLinkLocalUnicast() {
		at.link = m.IfIndex
	}
	return at
}

// control has an answer leave from there.
func (d *destinations) control(at destination) []byte {
	switch {
	case d == nil || !at.address.IsValid():
		return nil
	case at.address.Unmap().Is4(): // of an IPv6 socket, too
		return (&ipv4.ControlMessage{Src: at.address.Unmap().AsSlice()}).Marshal()
	}
	return (&ipv6.ControlMessage{Src: at.address.AsSlice(), IfIndex: at.link}).Marshal()
}

// sockaddr is an address as the kernel takes it.
func sockaddr(to netip.AddrPort) unix.Sockaddr {
	if to.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	s := &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	if zone, err := net.InterfaceByName(to.Addr().Zone()); err == nil {
		s.ZoneId = uint32(zone.Index)
	}
	return s
}
