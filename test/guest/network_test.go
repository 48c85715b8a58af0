package guest_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// node is a network namespace with one interface, a port of its cluster's
// bridge. The guest's first namespace is the WAN that routes between bridges.
type node struct {
	port    string
	address netip.Addr
	netns   *os.File
}

// The WAN has two clusters: c1 with two nodes and c2 with one.
type network struct{ c1n1, c1n2, c2n1 node }

const wanBridge1, wanBridge2 = "c1", "c2"

func makeNetwork(t *testing.T) network {
	t.Helper()
	for _, bridge := range []struct{ name, router string }{
		{wanBridge1, "10.1.0.254/24"}, {wanBridge2, "10.2.0.254/24"},
	} {
		link := &netlink.Bridge{LinkAttrs: named(bridge.name)}
		address, err := netlink.ParseAddr(bridge.router)
		must(t, err)
		must(t, netlink.LinkAdd(link))
		must(t, netlink.AddrAdd(link, address))
		must(t, netlink.LinkSetUp(link))
	}
	return network{
		c1n1: makeNode(t, wanBridge1, "c1n1", "10.1.0.1"),
		c1n2: makeNode(t, wanBridge1, "c1n2", "10.1.0.2"),
		c2n1: makeNode(t, wanBridge2, "c2n1", "10.2.0.1"),
	}
}

func makeNode(t *testing.T, bridge, port, address string) node {
	t.Helper()
	n := node{port: port, address: netip.MustParseAddr(address)}
	must(t, inThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		n.netns, err = os.Open("/proc/thread-self/ns/net")
		return err
	}))
	master, err := netlink.LinkByName(bridge)
	must(t, err)
	attrs := named(port)
	attrs.MasterIndex = master.Attrs().Index
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "data", PeerNamespace: netlink.NsFd(int(n.netns.Fd()))}))
	outside, err := netlink.LinkByName(port)
	must(t, err)
	must(t, netlink.LinkSetUp(outside))

	inside, err := netlink.NewHandleAt(netns.NsHandle(n.netns.Fd()), unix.NETLINK_ROUTE)
	must(t, err)
	defer inside.Close()
	link, err := inside.LinkByName("data")
	must(t, err)
	prefix := &net.IPNet{IP: n.address.AsSlice(), Mask: net.CIDRMask(24, 32)}
	must(t, inside.AddrAdd(link, &netlink.Addr{IPNet: prefix}))
	must(t, inside.LinkSetUp(link))
	gateway := n.address.As4()
	gateway[3] = 254
	must(t, inside.RouteAdd(&netlink.Route{Gw: gateway[:]}))
	return n
}

func named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

// socket makes a UDP socket in the node's namespace, bound to its address.
func (n node) socket(t *testing.T) int {
	t.Helper()
	fd := -1
	must(t, inThread(func() (err error) {
		if err := unix.Setns(int(n.netns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	}))
	t.Cleanup(func() { _ = unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: n.address.As4()}))
	return fd
}

// inThread runs f on a thread that ends with it.
func inThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}

// qdiscs lists the WAN's qdiscs that somebody has set.
func qdiscs(t *testing.T) []string {
	t.Helper()
	all, err := netlink.QdiscList(nil)
	must(t, err)
	var set []string
	for _, q := range all {
		if q.Type() != "noqueue" {
			set = append(set, fmt.Sprintf("%s %x at %d", q.Type(), q.Attrs().Handle, q.Attrs().LinkIndex))
		}
	}
	return set
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
