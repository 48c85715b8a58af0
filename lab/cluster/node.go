package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
)

// private are folders of a node's own: what its programs keep there by default.
var private = []string{"/var/lib", "/var/log", "/run"}

// pinned are sysctls of the whole machine that a kubelet wants to set: a node has
// files in their place that hold what it wants.
var pinned = map[string]string{
	"vm/overcommit_memory": "1",
	"kernel/panic":         "10",
	"kernel/panic_on_oops": "1",
}

// prepare makes a node a place that a kubelet can live in. The calling thread is
// in the node's namespaces.
func (m member) prepare(dir, labs string, others []member) error {
	for _, folder := range private {
		if err := mountOwn(folder, labs); err != nil {
			return fmt.Errorf("prepare node %s: mount %s: %w", m, folder, err)
		}
	}
	for name, value := range pinned {
		if err := pin(name, value, filepath.Join(dir, "sysctl", filepath.Base(name))); err != nil {
			return fmt.Errorf("prepare node %s: %w", m, err)
		}
	}
	// It routes for its pods.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("prepare node %s: %w", m, err)
	}
	for _, other := range others {
		if err := m.reach(other); err != nil {
			return fmt.Errorf("prepare node %s: route to the pods of %s: %w", m, other, err)
		}
	}
	return nil
}

// mountOwn puts an empty folder over one, but for what is kept in it.
func mountOwn(folder, kept string) error {
	keeps := strings.HasPrefix(kept, folder+"/")
	tree := -1
	if keeps {
		var err error
		if tree, err = unix.OpenTree(unix.AT_FDCWD, kept, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err != nil {
			return fmt.Errorf("keep %s: %w", kept, err)
		}
		defer func() { _ = unix.Close(tree) }()
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	// Volumes that pods share with their node are seen on both sides.
	if err := unix.Mount("", folder, "", unix.MS_SHARED, ""); err != nil {
		return err
	}
	if !keeps {
		return nil
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, kept, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// pin puts a file that holds a value over a sysctl.
func pin(name, value, file string) error {
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(value+"\n"), 0o644))
	if err != nil {
		return err
	}
	if err := unix.Mount(file, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("pin sysctl %s: %w", name, err)
	}
	return nil
}

// reach has the node send packets for another's pods to that node.
func (m member) reach(other member) error {
	link, err := netlink.LinkByName(host.DataInterface)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{
		LinkIndex: link.Attrs().Index, Gw: other.Data.Addr().AsSlice(),
		Dst: &net.IPNet{IP: other.pods.Addr().AsSlice(), Mask: net.CIDRMask(other.pods.Bits(), 32)},
	})
}
