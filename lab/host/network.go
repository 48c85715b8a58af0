package host

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// DataInterface is a node's interface on the network that the experiment
// measures, which links impair.
const DataInterface = "data"

// MgmtInterface is a node's interface on the lab's own network, which no link impairs.
const MgmtInterface = "mgmt"

// mgmtSuffix ends the names of the WAN's ports to it.
const mgmtSuffix = "m"

// mgmtBridge joins all nodes by their mgmt.
const mgmtBridge = "mgmt"

// Names in the WAN's namespace: cluster 1 has the bridge "c1", its node 2 the
// ports "c1n2" (data) and "c1n2m" (mgmt, on the one bridge "mgmt").
func bridgeName(cluster int) string     { return fmt.Sprintf("c%d", cluster+1) }
func portName(cluster, node int) string { return fmt.Sprintf("c%dn%d", cluster+1, node+1) }

// nodeSysctls are set in every node: TCP starts every connection without what an
// earlier one learnt, and buffers do not cap a stream below the links that are
// emulated. Ports of connections that are over are taken again after a second, or a
// repetition that opens many would search among those of the one before.
var nodeSysctls = map[string]string{
	"net/ipv4/tcp_no_metrics_save": "1",
	"net/ipv4/tcp_rmem":            "4096 131072 67108864",
	"net/ipv4/tcp_wmem":            "4096 65536 67108864",
	"net/ipv4/tcp_tw_reuse":        "1",
}

// TransportSysctls are those of every node that say how TCP sends and receives, by
// their paths below /proc/sys.
func TransportSysctls() map[string]string {
	all := maps.Clone(nodeSysctls)
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasPrefix(name, "net/ipv4/tcp_") })
	return all
}

var wanSysctls = map[string]string{"net/ipv4/ip_forward": "1"}

// Sysctls of a node or the WAN that say whether it has IPv6. Where it has, the lab
// gives every address once: none waits until nobody objects to it (RFC 4862, section
// 5.4), and no router is asked for others.
const disableIPv6 = "net/ipv6/conf/all/disable_ipv6"

var (
	singleSysctls = map[string]string{disableIPv6: "1"}
	dualSysctls   = map[string]string{
		disableIPv6:                        "0",
		"net/ipv6/conf/default/accept_dad": "0",
		"net/ipv6/conf/default/accept_ra":  "0",
	}
	wanSysctls6 = map[string]string{"net/ipv6/conf/all/forwarding": "1"}
)

// sysctls of a namespace: those that every lab has there, and what a dual one has
// besides.
func sysctls(t *topology.Topology, every, dual map[string]string) map[string]string {
	all := maps.Clone(every)
	if !t.Dual {
		maps.Copy(all, singleSysctls)
		return all
	}
	maps.Copy(all, dualSysctls)
	maps.Copy(all, dual)
	return all
}

// setSysctls writes the sysctls of the calling thread's network namespace.
func setSysctls(values map[string]string) error {
	for key, value := range values {
		err := os.WriteFile(filepath.Join("/proc/sys", key), []byte(value), 0)
		if errors.Is(err, os.ErrNotExist) && key == disableIPv6 && value == singleSysctls[key] {
			continue // a kernel without IPv6
		}
		if err != nil {
			return fmt.Errorf("set sysctl %s to %q: %w", key, value, err)
		}
	}
	return nil
}

// network wires the nodes of a lab to its WAN.
type network struct {
	wan      *netlink.Handle
	topology *topology.Topology
}

// openHandle makes a netlink handle in the network namespace of a holder. Only
// NETLINK_ROUTE: some kernels have no other family.
func openHandle(h holder) (*netlink.Handle, error) {
	f, err := h.openNet()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return netlink.NewHandleAt(nsHandle(f), unix.NETLINK_ROUTE)
}

// makeSwitches makes a bridge for each cluster's data network, with the WAN's
// router on it, and one for mgmt.
func (n network) makeSwitches() error {
	if err := setUp(n.wan, "lo"); err != nil {
		return err
	}
	if err := n.makeBridge(mgmtBridge); err != nil {
		return err
	}
	for i := range n.topology.Clusters {
		name := bridgeName(i)
		if err := n.makeBridge(name); err != nil {
			return err
		}
		bridge, err := n.wan.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", name, err)
		}
		if err := n.wan.AddrAdd(bridge, address(topology.Router(i))); err != nil {
			return fmt.Errorf("address bridge %s: %w", name, err)
		}
		if !n.topology.Dual {
			continue
		}
		if err := n.wan.AddrAdd(bridge, address(topology.Router6(i))); err != nil {
			return fmt.Errorf("address bridge %s: %w", name, err)
		}
	}
	return nil
}

func (n network) makeBridge(name string) error {
	snooping := false
	bridge := &netlink.Bridge{LinkAttrs: linkAttrs(name), MulticastSnooping: &snooping}
	if err := n.wan.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make bridge %s: %w", name, err)
	}
	return setUp(n.wan, name)
}

// attach gives a node its data and mgmt interfaces, addresses and default route.
func (n network) attach(h holder, node topology.Node, cluster, index int) error {
	inside, err := openHandle(h)
	if err != nil {
		return fmt.Errorf("wire node %s: %w", node, err)
	}
	defer inside.Close()
	netns, err := h.openNet()
	if err != nil {
		return fmt.Errorf("wire node %s: %w", node, err)
	}
	defer func() { _ = netns.Close() }()
	port := portName(cluster, index)
	wires := []struct {
		bridge, port, inside string
		address              *netlink.Addr
	}{
		{bridgeName(cluster), port, DataInterface, withoutRoute(address(node.Data))},
		{mgmtBridge, port + mgmtSuffix, MgmtInterface, address(node.Mgmt)},
	}
	if err := setUp(inside, "lo"); err != nil {
		return fmt.Errorf("wire node %s: %w", node, err)
	}
	for _, w := range wires {
		if err := n.plug(w.bridge, w.port, w.inside, netns); err != nil {
			return fmt.Errorf("wire node %s: %w", node, err)
		}
		link, err := inside.LinkByName(w.inside)
		if err != nil {
			return fmt.Errorf("wire node %s: %w", node, err)
		}
		if err := errors.Join(inside.AddrAdd(link, w.address), inside.LinkSetUp(link)); err != nil {
			return fmt.Errorf("wire node %s: address %s: %w", node, w.inside, err)
		}
	}
	return n.route(inside, node)
}

// route sets the node's routes on the data network: to its cluster, and by the
// WAN's router to all else. They carry the congestion control, since a network
// namespace may not choose every one that the kernel has by sysctl.
func (n network) route(inside *netlink.Handle, node topology.Node) error {
	link, err := inside.LinkByName(DataInterface)
	if err != nil {
		return fmt.Errorf("wire node %s: %w", node, err)
	}
	ways := []struct {
		data    netip.Prefix
		gateway netip.Addr
	}{{node.Data, node.Gateway}}
	if n.topology.Dual {
		// An interface that is down would not keep it.
		if err := inside.AddrAdd(link, withoutRoute(address(node.Data6))); err != nil {
			return fmt.Errorf("wire node %s: address %s: %w", node, DataInterface, err)
		}
		ways = append(ways, ways[0])
		ways[1].data, ways[1].gateway = node.Data6, node.Gateway6
	}
	congestion := n.topology.CongestionControl()
	for _, w := range ways {
		for _, r := range []netlink.Route{
			{LinkIndex: link.Attrs().Index, Dst: address(w.data.Masked()).IPNet, Scope: netlink.SCOPE_LINK, Src: w.data.Addr().AsSlice(), Congctl: congestion},
			{Gw: w.gateway.AsSlice(), Congctl: congestion},
		} {
			if err := inside.RouteAdd(&r); err != nil {
				return fmt.Errorf("wire node %s: route with congestion control %q: %w", node, congestion, err)
			}
		}
	}
	return nil
}

// plug makes a veth pair: one end a port of a bridge, the other in a node.
func (n network) plug(bridge, port, inside string, node *os.File) error {
	master, err := n.wan.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", bridge, err)
	}
	attrs := linkAttrs(port)
	attrs.MasterIndex = master.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: inside, PeerNamespace: netlink.NsFd(int(node.Fd()))}
	if err := n.wan.LinkAdd(veth); err != nil {
		return fmt.Errorf("make interface %s: %w", port, err)
	}
	return setUp(n.wan, port)
}

func linkAttrs(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, impair.DefaultMTU
	return attrs
}

func setUp(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("set interface %s up: %w", name, err)
	}
	return nil
}

// match translates one direction between two clusters or two nodes to the
// interfaces that its packets cross in the WAN's namespace.
func match(t *topology.Topology, from, to topology.Ref) (impair.Match, error) {
	source, err := locate(t, from)
	if err != nil {
		return impair.Match{}, err
	}
	destination, err := locate(t, to)
	if err != nil {
		return impair.Match{}, err
	}
	routed := impair.Match{In: bridgeName(source.cluster), Out: bridgeName(destination.cluster), Dual: t.Dual}
	switch {
	case source.node < 0 != (destination.node < 0):
		return impair.Match{}, fmt.Errorf("%w: one of %s and %s is a cluster, the other a node", ErrEnds, from, to)
	case source == destination:
		return impair.Match{}, fmt.Errorf("%w: both are %s", ErrEnds, from)
	case source.node < 0:
		return routed, nil
	case source.cluster != destination.cluster:
		routed.Source, routed.Destination = source.address.Addr(), destination.address.Addr()
		routed.Source6, routed.Destination6 = source.address6.Addr(), destination.address6.Addr()
		return routed, nil
	}
	return impair.Match{
		In: portName(source.cluster, source.node), Out: portName(destination.cluster, destination.node), Bridged: true, Dual: t.Dual,
	}, nil
}

// place is a cluster, or where node is 0 or more a node in it.
type place struct {
	cluster, node     int
	address, address6 netip.Prefix
}

func locate(t *topology.Topology, ref topology.Ref) (place, error) {
	nodes := t.Nodes()
	for i, c := range t.Clusters {
		if string(ref) == c.Name {
			return place{cluster: i, node: -1}, nil
		}
		for j, name := range c.Nodes {
			if ref == topology.Ref(c.Name+"/"+name) {
				return place{cluster: i, node: j, address: nodes[j].Data, address6: nodes[j].Data6}, nil
			}
		}
		nodes = nodes[len(c.Nodes):]
	}
	return place{}, fmt.Errorf("no cluster or node %q; there are %s", ref, strings.Join(t.Refs(), ", "))
}

// address is one that holds at once, of either family.
func address(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// withoutRoute has the kernel add no route of its own for the address.
func withoutRoute(a *netlink.Addr) *netlink.Addr {
	a.Flags |= unix.IFA_F_NOPREFIXROUTE
	return a
}

func nsHandle(f *os.File) netns.NsHandle { return netns.NsHandle(int(f.Fd())) }
