package capture

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/proxy/snapshot"
)

// ErrPast is wrapped where rules are in force, and what went past them goes on so: whoever has
// called before, and calls again from the same port, is not brought to the proxy until the
// kernel has forgotten the first call, two minutes after the last.
var ErrPast = errors.New("calls from before the rules go past them")

// past is what is brought from now on, of which the kernel may know connections already, as
// going elsewhere: it asks rules about the first packet only.
type past struct {
	Wanted
	here netip.Addr
	own  map[netip.Addr]bool // addresses of this node
}

// forget has the kernel ask the rules about them anew.
func (p past) forget(family nftables.TableFamily) error {
	if len(p.Services)+len(p.NodePorts) == 0 {
		return nil
	}
	all, err := net.InterfaceAddrs()
	if err == nil {
		p.own = map[netip.Addr]bool{}
		for _, a := range all {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				p.own[prefix.Addr()] = true
			}
		}
		_, err = netlink.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.InetFamily(family), p)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPast, err)
	}
	return nil
}

// MatchConntrackFlow says whether the kernel takes a flow elsewhere than it is to: one of TCP
// where it was sent, since what is carried by others ends by itself; datagrams anywhere, such
// as to the port that a proxy had which was here before, since they may go on for ever.
func (p past) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	to, goes := endOf(f.Forward.DstIP, f.Forward.DstPort), endOf(f.Reverse.SrcIP, f.Reverse.SrcPort)
	switch f.Forward.Protocol {
	case unix.IPPROTO_TCP:
		_, brought := p.Services[Service{snapshot.TCP, to}]
		return brought && goes == to
	case unix.IPPROTO_UDP:
		port, brought := p.Services[Service{snapshot.UDP, to}]
		if !brought && p.own[to.Addr()] {
			port, brought = p.NodePorts[NodePort{snapshot.UDP, to.Port()}]
		}
		return brought && goes != netip.AddrPortFrom(p.here, port)
	default:
		return false
	}
}

// endOf a flow is an address with a port.
func endOf(ip net.IP, port uint16) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(addr.Unmap(), port)
}
