package capture

import (
	"errors"
	"fmt"
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

// past are Services whose connections the kernel may know already, as going where they were
// sent: it asks rules about the first packet only.
type past map[Service]uint16

// forget has the kernel ask the rules about them anew.
func (p past) forget(family nftables.TableFamily) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.InetFamily(family), p); err != nil {
		return fmt.Errorf("%w: %w", ErrPast, err)
	}
	return nil
}

// MatchConntrackFlow says whether the kernel takes a flow where it was sent, and is not to.
func (p past) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	to, _ := netip.AddrFromSlice(f.Forward.DstIP)
	service := Service{snapshot.TCP, netip.AddrPortFrom(to.Unmap(), f.Forward.DstPort)}
	if f.Forward.Protocol == unix.IPPROTO_UDP {
		service.Protocol = snapshot.UDP
	}
	_, brought := p[service]
	return brought && f.Reverse.SrcIP.Equal(f.Forward.DstIP) && f.Reverse.SrcPort == f.Forward.DstPort
}
