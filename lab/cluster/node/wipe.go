package node

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
)

// Wipe leaves of a node without processes the mounts and interfaces that a machine has
// as it boots: its disk. Kept are folders as those of a Plan.
func Wipe(kept []string) error {
	if err := unmountBelow("/var/lib/kubelet/", "/var/lib/containerd/"); err != nil {
		return err
	}
	if err := unix.Unmount("/run", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount /run: %w", err)
	}
	if err := mountOwn("/run", kept); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	return removeInterfaces()
}

// unmountBelow takes away what is mounted below some folders of the calling thread's
// mount namespace.
func unmountBelow(folders ...string) error {
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(text)) {
		const pointField = 4 // proc(5)
		fields := strings.Fields(line)
		if len(fields) > pointField && slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(fields[pointField], f) }) {
			points = append(points, fields[pointField])
		}
	}
	for _, point := range slices.Backward(points) { // what lies upon another first
		// One that shared its fate with another is gone already.
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

// podInterfaces are the kinds of interfaces that networks of pods make in a node.
var podInterfaces = []string{"veth", "bridge", "vxlan", "dummy"}

// removeInterfaces takes away the interfaces of the calling thread's network namespace
// that are not the node's own.
func removeInterfaces() error {
	all, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, link := range all {
		name := link.Attrs().Name
		if name == host.DataInterface || name == host.MgmtInterface || !slices.Contains(podInterfaces, link.Type()) {
			continue
		}
		// The kernel removes those of a pod itself, when the last that held it has ended.
		if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove interface %s: %w", name, err)
		}
	}
	return nil
}
