package capture_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/thread"
	"skerry.dev/skerry/proxy/capture"
)

// Who is brought to the port that refuses is told at once, at this node and at another, by TCP
// and UDP, of either family.
func TestRefuses(t *testing.T) {
	node(t)
	refusal, err := capture.Refuse([]netip.Addr{four, six}, 4484)
	if err != nil {
		t.Fatal(err)
	}
	defer refusal.Close()
	if _, err := capture.Refuse([]netip.Addr{four}, 4484); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port that is taken: %v", err)
	}
	want := brought(4484)
	for s := range want.Services {
		want.Services[s] = 4484
	}
	if err := rules(t).Apply(want); err != nil {
		t.Fatal(err)
	}
	calls := func(from string) error {
		for _, call := range []string{
			"tcp 10.96.0.5:80", "tcp [fd96::5]:80", "udp 10.96.0.5:80", "udp [fd96::5]:80", "udp 10.1.0.1:30053", "udp [fd73::1]:30053",
		} {
			if err := ending(call); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s from %s: %v", call, from, err)
			}
		}
		return nil
	}
	if err := errors.Join(calls("this node"), elsewhere(func() error { return calls("another") })); err != nil {
		t.Fatal(err)
	}
}

// ending is how a call ends, by network and address. It asks each second, as often as the kernel
// answers a host by ICMP (icmp_ratelimit) that has asked often.
func ending(call string) error {
	network, at, _ := strings.Cut(call, " ")
	c, err := net.DialTimeout(network, at, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	for begun := time.Now(); time.Since(begun) < patience; {
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, _ = c.Write([]byte("?"))
		if _, err = c.Read(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return err
}

// elsewhere calls from the other end of the node's cable, by way of the node; the cable goes with
// it.
func elsewhere(call func() error) error {
	here, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer here.Close()
	away, err := here.LinkByName("away")
	if err != nil {
		return err
	}
	return thread.InFreshNet(func() error {
		if err := here.LinkSetNsPid(away, unix.Gettid()); err != nil {
			return fmt.Errorf("take the cable's end: %w", err)
		}
		if err := uplink("10.1.0.2/24", "10.96.0.0/16", four); err != nil {
			return err
		}
		if err := uplink("fd73::2/64", "fd96::/64", six); err != nil {
			return err
		}
		return call()
	})
}

// uplink gives the cable's end an address, and a way to a network by a node.
func uplink(own, network string, by netip.Addr) error {
	away, err := netlink.LinkByName("away")
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(own)
	if err != nil {
		return err
	}
	address.Flags = unix.IFA_F_NODAD
	_, to, err := net.ParseCIDR(network)
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetUp(away), netlink.AddrAdd(away, address),
		netlink.RouteAdd(&netlink.Route{LinkIndex: away.Attrs().Index, Dst: to, Gw: by.AsSlice()}))
}
