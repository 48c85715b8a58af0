package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/topology"
)

// announce tells a node's networks which addresses it has, as a machine does that
// boots. Whoever had asked for them in vain meanwhile would else ask again only a
// second later, and hold back until then what it has to send.
func (l *Lab) announce(n topology.Node) error {
	return l.Within(n.Ref(), func() error {
		err := errors.Join(announceAt(DataInterface, n.Data.Addr()), announceAt(MgmtInterface, n.Mgmt.Addr()))
		if n.Data6.IsValid() {
			err = errors.Join(err, announceAt(DataInterface, n.Data6.Addr()))
		}
		return err
	})
}

// announceAt sends the announcement of an address by an interface of the calling
// thread's network namespace.
func announceAt(name string, address netip.Addr) error {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	packet, to, err := announcement(i.HardwareAddr, address)
	if err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	to.Ifindex = i.Index
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	defer func() { _ = unix.Close(socket) }()
	if err := unix.Sendto(socket, packet, 0, &to); err != nil {
		return fmt.Errorf("announce %s: %w", address, err)
	}
	return nil
}

// announcement tells everyone on a network the MAC address of an address, unasked: of
// IPv4 by an ARP announcement (RFC 5227 section 2.3), of IPv6 by a neighbour
// advertisement (RFC 4861 section 7.2.6).
func announcement(mac net.HardwareAddr, address netip.Addr) (packet []byte, to unix.SockaddrLinklayer, err error) {
	kind, everyone, parts := layers.EthernetTypeARP, layers.EthernetBroadcast, arp(mac, address)
	if address.Is6() {
		kind, everyone, parts = layers.EthernetTypeIPv6, net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, advertisement(mac, address)
	}
	to = unix.SockaddrLinklayer{
		Protocol: binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, uint16(kind))),
		Halen:    uint8(len(everyone)),
	}
	copy(to.Addr[:], everyone)
	out := gopacket.NewSerializeBuffer()
	err = gopacket.SerializeLayers(out, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, parts...)
	return out.Bytes(), to, err
}

// arp is a request whose sender and target are the same address.
func arp(mac net.HardwareAddr, address netip.Addr) []gopacket.SerializableLayer {
	return []gopacket.SerializableLayer{&layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, Operation: layers.ARPRequest,
		HwAddressSize: uint8(len(mac)), ProtAddressSize: uint8(address.BitLen() / 8),
		SourceHwAddress: mac, SourceProtAddress: address.AsSlice(),
		DstHwAddress: make([]byte, len(mac)), DstProtAddress: address.AsSlice(),
	}}
}

// advertisement overrides what others remember of the address.
func advertisement(mac net.HardwareAddr, address netip.Addr) []gopacket.SerializableLayer {
	const override, hopLimit = 0x20, 255
	ip := &layers.IPv6{
		Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: hopLimit,
		SrcIP: address.AsSlice(), DstIP: netip.IPv6LinkLocalAllNodes().AsSlice(),
	}
	header := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborAdvertisement, 0)}
	_ = header.SetNetworkLayerForChecksum(ip) // which is of IPv6
	return []gopacket.SerializableLayer{ip, header, &layers.ICMPv6NeighborAdvertisement{
		Flags: override, TargetAddress: address.AsSlice(),
		Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: mac}},
	}}
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
