package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// private are folders of a node's own: what its programs keep there by default.
var private = []string{"/var/lib", "/var/log", "/run"}

// pinned are sysctls of the whole machine that a kubelet wants to set: a node has
// files in their place that hold what it wants.
var pinned = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// prepare makes a node a place that a kubelet can live in. The calling thread is
// in the node's namespaces; kept are folders, in order, that stay as they are, and
// congestion is the control by which the node sends.
func (m member) prepare(dir string, kept []string, others []member, congestion string) error {
	for _, folder := range private {
		if err := mountOwn(folder, kept); err != nil {
			return fmt.Errorf("prepare node %s: mount %s: %w", m, folder, err)
		}
	}
	for name, value := range pinned {
		if err := pin(name, value, filepath.Join(dir, "sysctl", filepath.Base(name))); err != nil {
			return fmt.Errorf("prepare node %s: %w", m, err)
		}
	}
	forwards := []string{"/proc/sys/net/ipv4/ip_forward"} // it routes for its pods
	if m.pods6.IsValid() {
		forwards = append(forwards, "/proc/sys/net/ipv6/conf/all/forwarding")
	}
	for _, forward := range forwards {
		if err := os.WriteFile(forward, []byte("1"), 0); err != nil {
			return fmt.Errorf("prepare node %s: %w", m, err)
		}
	}
	for _, other := range others {
		if err := m.reach(other, congestion); err != nil {
			return fmt.Errorf("prepare node %s: route to the pods of %s: %w", m, other, err)
		}
	}
	return nil
}

// mountOwn puts an empty folder over one, but for what is kept in it.
func mountOwn(folder string, kept []string) error {
	kept = slices.DeleteFunc(slices.Clone(kept), func(k string) bool { return !strings.HasPrefix(k, folder+"/") })
	var trees []int
	defer func() {
		for _, tree := range trees {
			_ = unix.Close(tree)
		}
	}()
	for _, k := range kept {
		tree, err := unix.OpenTree(unix.AT_FDCWD, k, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("keep %s: %w", k, err)
		}
		trees = append(trees, tree)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	// Volumes that pods share with their node are seen on both sides.
	if err := unix.Mount("", folder, "", unix.MS_SHARED, ""); err != nil {
		return err
	}
	for i, k := range kept {
		if err := os.MkdirAll(k, 0o755); err != nil {
			return err
		}
		if err := unix.MoveMount(trees[i], "", unix.AT_FDCWD, k, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("keep %s: %w", k, err)
		}
	}
	return nil
}

// pin puts a file that holds a value over a sysctl.
func pin(name, value, file string) error {
	sysctl := filepath.Join("/proc/sys", name)
	if _, err := os.Stat(sysctl); errors.Is(err, os.ErrNotExist) {
		return nil // a kernel without it
	}
	return cover(sysctl, value+"\n", file)
}

// reach has the node send packets for another's pods to that node, its own by the
// congestion control of its routes to nodes.
func (m member) reach(other member, congestion string) error {
	link, err := netlink.LinkByName(host.DataInterface)
	if err != nil {
		return err
	}
	for _, way := range []struct {
		pods netip.Prefix
		by   netip.Addr
	}{{other.pods, other.Data.Addr()}, {other.pods6, other.Data6.Addr()}} {
		if !way.pods.IsValid() {
			continue
		}
		err := netlink.RouteAdd(&netlink.Route{
			LinkIndex: link.Attrs().Index, Gw: way.by.AsSlice(), Congctl: congestion,
			Dst: &net.IPNet{IP: way.pods.Addr().AsSlice(), Mask: net.CIDRMask(way.pods.Bits(), way.pods.Addr().BitLen())},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// congest has what a process's network namespace sends go by the congestion control of
// a lab, as a node's data does: by its routes, since a namespace may not choose every
// one that the kernel has by sysctl.
func congest(pid int, t *topology.Topology) error {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"))
	if err != nil {
		return fmt.Errorf("congestion control of a pod: %w", err)
	}
	defer func() { _ = f.Close() }()
	handle, err := netlink.NewHandleAt(netns.NsHandle(int(f.Fd())), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("congestion control of a pod: %w", err)
	}
	defer handle.Close()
	families := []int{netlink.FAMILY_V4}
	if t.Dual {
		families = append(families, netlink.FAMILY_V6)
	}
	for _, family := range families {
		routes, err := handle.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("congestion control of a pod: %w", err)
		}
		for _, r := range routes {
			if r.Dst != nil && r.Dst.IP.IsLinkLocalUnicast() {
				continue // nothing that is measured goes there
			}
			r.Congctl = t.CongestionControl()
			if err := handle.RouteReplace(&r); err != nil {
				return fmt.Errorf("congestion control %s of a pod: %w", r.Congctl, err)
			}
		}
	}
	return nil
}
