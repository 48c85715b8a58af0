package node_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster/node"
	"skerry.dev/skerry/lab/host"
)

// within runs a test's part in namespaces of its own, with an interface as nodes have
// one for data.
func within(t *testing.T, f func() error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces are made")
	}
	err := host.Fresh(func() error {
		data := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: host.DataInterface}}
		if err := netlink.LinkAdd(data); err != nil {
			return err
		}
		address := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 1, 0, 1), Mask: net.CIDRMask(16, 32)}}
		if err := errors.Join(netlink.AddrAdd(data, address), netlink.LinkSetUp(data)); err != nil {
			return err
		}
		return f()
	})
	if err != nil {
		t.Error(err)
	}
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(text)) != want {
		t.Errorf("%s holds %q, %v; want %q", path, text, err, want)
	}
}

// A node has folders of its own, but for those that are kept, values of its own in place
// of the machine's, and ways to the pods of others; as it boots it has lost what a
// machine loses.
func TestPrepareAndWipe(t *testing.T) {
	kept := fmt.Sprintf("/run/skerry-test-%d", os.Getpid())
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Skipf("needs root: a folder in /run: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(kept) })
	file := filepath.Join(kept, "file")
	if err := os.WriteFile(file, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	machines, err := os.ReadFile("/proc/sys/kernel/panic")
	if err != nil {
		t.Fatal(err)
	}
	pods := netip.MustParsePrefix("10.101.2.0/24")
	within(t, func() error {
		err := node.Prepare(node.Plan{
			Dir: t.TempDir(), Kept: []string{kept}, Congestion: "reno",
			Routes: []node.Route{{Pods: pods, Via: netip.MustParseAddr("10.1.0.2")}},
		})
		if err != nil {
			return err
		}
		holds(t, file, "kept")
		holds(t, "/proc/sys/kernel/panic", "10")
		holds(t, "/proc/sys/net/ipv4/ip_forward", "1")
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		found := false
		for _, r := range routes {
			if r.Dst != nil && r.Dst.String() == pods.String() {
				found = r.Gw.String() == "10.1.0.2" && r.Congctl == "reno"
			}
		}
		if err != nil || !found {
			t.Errorf("routes %+v, %v", routes, err)
		}
		volume := "/var/lib/kubelet/pods/volume"
		err = errors.Join(
			os.MkdirAll(volume, 0o755), os.WriteFile("/var/lib/kubelet/on-disk", []byte("stays"), 0o644),
			unix.Mount("tmpfs", volume, "tmpfs", 0, ""), os.WriteFile(filepath.Join(volume, "a"), nil, 0o644),
			os.WriteFile("/run/lost", nil, 0o644), netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "cni0"}}))
		if err != nil {
			return err
		}
		if err := node.Wipe([]string{kept}); err != nil {
			return err
		}
		holds(t, file, "kept")
		holds(t, "/var/lib/kubelet/on-disk", "stays")
		for _, gone := range []string{filepath.Join(volume, "a"), "/run/lost"} {
			if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is there after the boot: %v", gone, err)
			}
		}
		for name, there := range map[string]bool{host.DataInterface: true, "cni0": false} {
			if _, err := netlink.LinkByName(name); (err == nil) != there {
				t.Errorf("interface %s: %v", name, err)
			}
		}
		return nil
	})
	holds(t, "/proc/sys/kernel/panic", strings.TrimSpace(string(machines)))
}

// Who enters a pod that has ended is told.
func TestEnterPodThatIsGone(t *testing.T) {
	const noProcess = 1 << 30
	if err := node.EnterPod(noProcess); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := node.Congest(noProcess, "reno", true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
