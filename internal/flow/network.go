package flow

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/thread"
)

// Network is a WAN between two clusters: c1 with two nodes and c2 with one. The
// WAN is the network namespace in which it was made; it routes between the
// clusters' bridges.
type Network struct{ C1N1, C1N2, C2N1 Node }

// Bridges of the clusters in the WAN.
const (
	Bridge1 = "c1"
	Bridge2 = "c2"
)

// Node is a network namespace with one interface, a port of its cluster's bridge.
type Node struct {
	// Port is the WAN's end of the interface.
	Port string
	// Address of the node, in a network of 24 bits.
	Address netip.Addr
	netns   *os.File
}

// Make makes the network in the calling thread's namespace, and returns when
// packets pass.
func Make() (Network, error) {
	const forward = "/proc/sys/net/ipv4/ip_forward"
	if err := os.WriteFile(forward, []byte("1"), 0); err != nil {
		return Network{}, fmt.Errorf("have the WAN route: %w", err)
	}
	for _, bridge := range []struct{ name, router string }{
		{Bridge1, "10.1.0.254/24"}, {Bridge2, "10.2.0.254/24"},
	} {
		if err := makeBridge(bridge.name, bridge.router); err != nil {
			return Network{}, fmt.Errorf("make bridge %s: %w", bridge.name, err)
		}
	}
	var n Network
	for _, node := range []struct {
		at                    *Node
		bridge, port, address string
	}{
		{&n.C1N1, Bridge1, "c1n1", "10.1.0.1"},
		{&n.C1N2, Bridge1, "c1n2", "10.1.0.2"},
		{&n.C2N1, Bridge2, "c2n1", "10.2.0.1"},
	} {
		var err error
		if *node.at, err = makeNode(node.bridge, node.port, netip.MustParseAddr(node.address)); err != nil {
			return Network{}, fmt.Errorf("make node %s: %w", node.port, err)
		}
	}
	return n, n.ready()
}

// ready waits until packets pass: the kernel takes its time to open ports, and a
// first packet asks for hardware addresses.
func (n Network) ready() error {
	const tries = 20
	for _, f := range []Flow{{From: n.C1N1, To: n.C2N1, Count: 1}, {From: n.C2N1, To: n.C1N2, Count: 1}, {From: n.C1N2, To: n.C1N1, Count: 1}} {
		arrived := false
		for i := 0; i < tries && !arrived; i++ {
			all, err := f.Run()
			if err != nil {
				return fmt.Errorf("send from %s: %w", f.From.Port, err)
			}
			arrived = len(all) > 0
		}
		if !arrived {
			return fmt.Errorf("no packet of %d passes from %s to %s", tries, f.From.Port, f.To.Port)
		}
	}
	return nil
}

func makeBridge(name, router string) error {
	link := &netlink.Bridge{LinkAttrs: named(name)}
	address, err := netlink.ParseAddr(router)
	if err != nil {
		return err
	}
	if err := netlink.LinkAdd(link); err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(link, address), netlink.LinkSetUp(link))
}

func makeNode(bridge, port string, address netip.Addr) (Node, error) {
	n := Node{Port: port, Address: address}
	err := thread.InFreshNet(func() (err error) {
		n.netns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return n, err
	}
	master, err := netlink.LinkByName(bridge)
	if err != nil {
		return n, err
	}
	attrs := named(port)
	attrs.MasterIndex = master.Attrs().Index
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "data", PeerNamespace: netlink.NsFd(int(n.netns.Fd()))}
	if err := netlink.LinkAdd(pair); err != nil {
		return n, err
	}
	return n, errors.Join(netlink.LinkSetUp(pair), n.setUp())
}

// setUp gives the node its address and its route.
func (n Node) setUp() error {
	inside, err := netlink.NewHandleAt(netns.NsHandle(n.netns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer inside.Close()
	link, err := inside.LinkByName("data")
	if err != nil {
		return err
	}
	prefix := &net.IPNet{IP: n.Address.AsSlice(), Mask: net.CIDRMask(24, 32)}
	if err := inside.AddrAdd(link, &netlink.Addr{IPNet: prefix}); err != nil {
		return err
	}
	if err := inside.LinkSetUp(link); err != nil {
		return err
	}
	gateway := n.Address.As4()
	gateway[3] = 254
	return inside.RouteAdd(&netlink.Route{Gw: gateway[:]})
}

func named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

// socket makes a UDP socket in the node's namespace, bound to its address.
func (n Node) socket() (int, error) {
	fd := -1
	err := thread.InNet(int(n.netns.Fd()), func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("open socket in %s: %w", n.Port, err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: n.Address.As4()}); err != nil {
		return -1, errors.Join(fmt.Errorf("bind socket in %s: %w", n.Port, err), unix.Close(fd))
	}
	return fd, nil
}
