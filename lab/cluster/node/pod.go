package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Congest has what a process's network namespace sends go by a congestion control,
// as a node's data does: by its routes, since a namespace may not choose
// every one that the kernel has by sysctl. Those of IPv6 are among them where it is dual.
func Congest(pid int, control string, dual bool) error {
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
	if dual {
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
			r.Congctl = control
			if err := handle.RouteReplace(&r); err != nil {
				return fmt.Errorf("congestion control %s of a pod: %w", control, err)
			}
		}
	}
	return nil
}

// EnterPod has the calling thread, which is in a node, join the network and the host
// name of a process there, and see its resolv.conf.
func EnterPod(pid int) error {
	process := filepath.Join("/proc", strconv.Itoa(pid))
	resolv, err := os.ReadFile(filepath.Join(process, "root", resolvConf))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("enter pod: %w", err)
	}
	for _, namespace := range []struct {
		name string
		kind int
	}{{"net", unix.CLONE_NEWNET}, {"uts", unix.CLONE_NEWUTS}} {
		if err := join(filepath.Join(process, "ns", namespace.name), namespace.kind); err != nil {
			return fmt.Errorf("enter pod: %w", err)
		}
	}
	if len(resolv) == 0 {
		return nil
	}
	if err := seeResolvConf(resolv); err != nil {
		return fmt.Errorf("enter pod: %w", err)
	}
	return nil
}

func join(path string, kind int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.Setns(int(f.Fd()), kind)
}

const resolvConf = "/etc/resolv.conf"

// seeResolvConf has the calling thread, and nobody else, see a text in the place of the
// machine's resolv.conf.
func seeResolvConf(text []byte) error {
	if _, err := os.Stat(resolvConf); errors.Is(err, fs.ErrNotExist) {
		return nil // the machine has no place for it
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	f, err := os.CreateTemp("/run", "skerry-*") // of the node
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the mount keeps it
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return unix.Mount(f.Name(), resolvConf, "", unix.MS_BIND, "")
}
