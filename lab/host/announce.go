package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/topology"
)

// announce tells a node's networks which addresses it has, as a machine does that
// boots. Whoever had asked for them in vain meanwhile would else ask again only a
// second later, and hold back until then what it has to send.
func (l *Lab) announce(n topology.Node) error {
	return l.Within(n.Ref(), func() error {
		return errors.Join(announceAt(DataInterface, n.Data.Addr()), announceAt(MgmtInterface, n.Mgmt.Addr()))
	})
}

// announceAt sends the announcement of an IPv4 address by an interface of the calling
// thread's network namespace.
func announceAt(name string, address netip.Addr) error {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	defer func() { _ = unix.Close(socket) }()
	to := unix.SockaddrLinklayer{
		Protocol: binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ARP)), Ifindex: i.Index,
		Halen: uint8(len(i.HardwareAddr)), Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
	if err := unix.Sendto(socket, announcement(i.HardwareAddr, address), 0, &to); err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	return nil
}

// forgetNeighbours has a node know nobody on its networks, as a machine that boots. Its
// kernel, which goes on while the node is off, closes connections of processes that were
// killed, and so has asked for its router in vain.
func forgetNeighbours(node *netlink.Handle) error {
	for _, name := range []string{DataInterface, MgmtInterface} {
		link, err := node.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find interface %s: %w", name, err)
		}
		known, err := node.NeighList(link.Attrs().Index, netlink.FAMILY_ALL)
		if err != nil {
			return fmt.Errorf("neighbours at %s: %w", name, err)
		}
		for _, n := range known {
			const lasting = netlink.NUD_PERMANENT | netlink.NUD_NOARP
			if n.State&lasting != 0 {
				continue
			}
			if err := node.NeighDel(&n); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("forget neighbour %s: %w", n.IP, err)
			}
		}
	}
	return nil
}

// announcement is an ARP announcement: a request whose sender and target are the same
// address (RFC 5227 §2.3, with the fields of RFC 826).
func announcement(mac net.HardwareAddr, address netip.Addr) []byte {
	const ethernet, request = 1, 1
	packet := binary.BigEndian.AppendUint16(nil, ethernet)
	packet = binary.BigEndian.AppendUint16(packet, unix.ETH_P_IP)
	packet = append(packet, byte(len(mac)), byte(address.BitLen()/8))
	packet = binary.BigEndian.AppendUint16(packet, request)
	packet = append(append(packet, mac...), address.AsSlice()...)
	return append(append(packet, make([]byte, len(mac))...), address.AsSlice()...)
}
