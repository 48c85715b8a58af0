// Package netnstest gives the tests of a package a network namespace of their own, which
// goes with them however they end. Start at Main.
package netnstest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// inside marks the process that is in the namespace.
const inside = "SKERRY_TEST_NETNS"

// Main runs the tests of a package in a new namespace, which has loopback alone, and gives
// their exit status. Those that ask for a Node are skipped where nobody may make one.
func Main(m *testing.M) int {
	if os.Getenv(inside) != "" {
		if err := loopback(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	if os.Geteuid() != 0 {
		return m.Run()
	}
	c := exec.Command(os.Args[0], os.Args[1:]...) //nolint:gosec // itself
	c.Env = append(os.Environ(), inside+"=1")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := c.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode()
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

const link = "data"

// Node has the namespace be a node with addresses, such as 10.1.0.1/24, and a way to
// networks, of which nobody answers. It is none any more when the test ends.
func Node(t testing.TB, addresses, networks []string) {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Skip("not root, whom a network namespace of its own takes")
	}
	if err := node(addresses, networks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(Unlink)
}

func node(addresses, networks []string) error {
	data := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: link}, PeerName: "away"}
	if err := netlink.LinkAdd(data); err != nil {
		return err
	}
	away, err := netlink.LinkByName(data.PeerName)
	if err != nil {
		return err
	}
	if err := errors.Join(netlink.LinkSetUp(data), netlink.LinkSetUp(away)); err != nil {
		return err
	}
	for _, text := range addresses {
		a, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		a.Flags = syscall.IFA_F_NODAD
		if err := netlink.AddrAdd(data, a); err != nil {
			return fmt.Errorf("address %s: %w", text, err)
		}
	}
	for _, text := range networks {
		_, to, err := net.ParseCIDR(text)
		if err != nil {
			return err
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: data.Index, Dst: to}); err != nil {
			return fmt.Errorf("way to %s: %w", text, err)
		}
	}
	return nil
}

// Unlink has the namespace be no node any more, whoever made it one.
func Unlink() {
	if l, err := netlink.LinkByName(link); err == nil {
		_ = netlink.LinkDel(l)
	}
}
