package capture

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/proxy/snapshot"
)

// ErrPast is wrapped where rules are in force, and what went past them goes on so: whoever has
// called before, and calls again from the same port, is not brought to the proxy until the
// kernel has forgotten the first call, two minutes after the last.
var ErrPast = errors.New("calls from before the rules go past them")

// past is what the kernel may know flows of already, as going elsewhere than they are to: it
// asks rules about the first packet only. Come is brought from now on, gone no more.
type past struct{ come, gone Wanted }

// add takes what has come and gone since.
func (p *past) add(since past) {
	if p.come.Services == nil {
		*p = since
		return
	}
	maps.DeleteFunc(p.come.Services, func(s Service, _ uint16) bool { _, gone := since.gone.Services[s]; return gone })
	maps.DeleteFunc(p.come.NodePorts, func(n NodePort, _ uint16) bool { _, gone := since.gone.NodePorts[n]; return gone })
	maps.Copy(p.come.Services, since.come.Services)
	maps.Copy(p.come.NodePorts, since.come.NodePorts)
	maps.Copy(p.gone.Services, since.gone.Services)
	maps.Copy(p.gone.NodePorts, since.gone.NodePorts)
}

// forget has the kernel ask the rules about them anew.
func (f *family) forget() error {
	if p := f.past; len(p.come.Services)+len(p.come.NodePorts)+len(p.gone.Services)+len(p.gone.NodePorts) == 0 {
		return nil
	}
	own, err := OwnAddrs()
	if err == nil {
		_, err = netlink.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.InetFamily(f.table.Family), flows{f.past, f.here, own})
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPast, err)
	}
	f.past = past{}
	return nil
}

// OwnAddrs are the addresses of this node's interfaces.
func OwnAddrs() (map[netip.Addr]bool, error) {
	all, err := net.InterfaceAddrs()
	own := map[netip.Addr]bool{}
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own[prefix.Addr()] = true
		}
	}
	return own, err
}

// flows are those to be forgotten.
type flows struct {
	past
	here netip.Addr
	own  map[netip.Addr]bool
}

// MatchConntrackFlow says whether the kernel takes a flow elsewhere than it is to. One of TCP
// ends by itself where others, or the proxy, carry it: it is where it was sent, and to be
// brought. Datagrams may go on for ever: they go anywhere else, such as to the port of a proxy
// that was here before, or are brought and not to be.
func (w flows) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	to, goes := endOf(f.Forward.DstIP, f.Forward.DstPort), endOf(f.Reverse.SrcIP, f.Reverse.SrcPort)
	switch f.Forward.Protocol {
	case unix.IPPROTO_TCP:
		_, come := w.come.Services[Service{snapshot.TCP, to}]
		return come && goes == to
	case unix.IPPROTO_UDP:
		if port, come := w.datagrams(w.come, to); come {
			return goes != netip.AddrPortFrom(w.here, port)
		}
		port, gone := w.datagrams(w.gone, to)
		return gone && goes == netip.AddrPortFrom(w.here, port)
	default:
		return false
	}
}

// datagrams to an address are brought to a port.
func (w flows) datagrams(by Wanted, to netip.AddrPort) (port uint16, ok bool) {
	if port, ok = by.Services[Service{snapshot.UDP, to}]; !ok && w.own[to.Addr()] {
		port, ok = by.NodePorts[NodePort{snapshot.UDP, to.Port(), to.Addr().Is6()}]
	}
	return port, ok
}

// endOf a flow is an address with a port.
func endOf(ip net.IP, port uint16) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(addr.Unmap(), port)
}
