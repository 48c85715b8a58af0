// Package node is what is done inside a node of a Kubernetes cluster, by a thread that is
// in its namespaces (host.Lab.Within): it becomes a place that a kubelet can live in, is
// wiped as a machine that loses its power, and its pods are entered. It starts no program.
// Start at Prepare.
package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair/classify"
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

// Plan is what a node is to be.
type Plan struct {
	// Dir is a folder of the lab for files of this node, Kept are folders, in order, that
	// stay as they are on the machine.
	Dir  string
	Kept []string
	// Routes to the pods of other nodes.
	Routes []Route
	// Congestion is the control by which the node sends.
	Congestion string
	// Bridged says that the node's pods share a bridge, Dual that they have IPv6, too.
	Bridged, Dual bool
}

// Route leads to the pods of another node by that node's address.
type Route struct {
	Pods netip.Prefix
	Via  netip.Addr
}

// Prepare makes a node a place that a kubelet can live in.
func Prepare(p Plan) error {
	for _, folder := range private {
		if err := mountOwn(folder, p.Kept); err != nil {
			return fmt.Errorf("mount %s: %w", folder, err)
		}
	}
	for name, value := range pinned {
		if err := pin(name, value, filepath.Join(p.Dir, "sysctl", filepath.Base(name))); err != nil {
			return err
		}
	}
	if err := p.forward(); err != nil {
		return err
	}
	for _, r := range p.Routes {
		if err := r.add(p.Congestion); err != nil {
			return fmt.Errorf("route to pods in %s: %w", r.Pods, err)
		}
	}
	return nil
}

// forward has the calling thread's node route for its pods, and its rules apply to what
// passes its bridge, too: a pod that was asked by a Service's address answers another of
// its node without the detour on which that address is put back.
func (p Plan) forward() error {
	wanted := []string{"/proc/sys/net/ipv4/ip_forward"}
	if p.Bridged {
		wanted = append(wanted, classify.BridgeCall)
	}
	if p.Dual {
		wanted = append(wanted, "/proc/sys/net/ipv6/conf/all/forwarding")
	}
	if p.Dual && p.Bridged {
		wanted = append(wanted, classify.BridgeCall6)
	}
	for _, sysctl := range wanted {
		if err := os.WriteFile(sysctl, []byte("1"), 0); err != nil {
			return err
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
	return Cover(sysctl, value+"\n", file)
}

// Cover puts a file that holds a text over another.
func Cover(path, text, file string) error {
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
	if err != nil {
		return err
	}
	if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	return nil
}

// add has the node send packets for another's pods to that node, its own by the
// congestion control of its routes to nodes.
func (r Route) add(congestion string) error {
	link, err := netlink.LinkByName(host.DataInterface)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{
		LinkIndex: link.Attrs().Index, Gw: r.Via.AsSlice(), Congctl: congestion,
		Dst: &net.IPNet{IP: r.Pods.Addr().AsSlice(), Mask: net.CIDRMask(r.Pods.Bits(), r.Pods.Addr().BitLen())},
	})
}
