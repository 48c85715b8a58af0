package control_test

import (
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/overlay/control"
)

// A container that asks who has an address that there is a route to is answered, by ARP and
// by neighbour discovery; of others nobody knows, and of its own it asks whether it is alone.
func TestNeighboursAreKnown(t *testing.T) {
	const nobody, own4, own6 = "10.9.0.78", "10.9.0.79", "fd00:9::79"
	l := newLAN(t)
	c, _ := l.daemon()
	must(t, c.Detach("test"))
	must(t, c.Attach(control.Attachment{Name: "pod", Path: filepath.Join(l.dir, "ktsn"), Interface: "data", Addresses: []netip.Addr{netip.MustParseAddr(own4), netip.MustParseAddr(own6)}}))
	for _, address := range []string{own4, own6} { // by which others reach it
		must(t, c.Route(netip.MustParseAddr(address), control.Hop{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 0x79}}))
	}
	routed := map[string]net.HardwareAddr{"10.9.0.77": {2, 0, 0, 0, 0, 0x77}, "fd00:9::77": {2, 0, 0, 0, 6, 0x77}}
	for address, mac := range routed {
		must(t, c.Route(netip.MustParseAddr(address), control.Hop{MAC: mac}))
	}
	for _, address := range []string{nobody, own4, own6, "10.9.0.77", "fd00:9::77"} {
		l.there(func() error {
			conn, err := net.Dial("udp", net.JoinHostPort(address, "9"))
			if err != nil {
				return err
			}
			_, err = conn.Write([]byte("who has you?"))
			return errors.Join(err, conn.Close())
		})
	}
	known := func() map[string]string {
		all := map[string]string{}
		l.there(func() error {
			for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
				neighbours, err := netlink.NeighList(0, family)
				if err != nil {
					return err
				}
				for _, n := range neighbours {
					all[n.IP.String()] = n.HardwareAddr.String()
				}
			}
			return nil
		})
		return all
	}
	for address, mac := range routed {
		until(t, 5*time.Second, "nobody has "+address, func() bool { return known()[address] == mac.String() })
	}
	for _, address := range []string{nobody, own4, own6} {
		if mac := known()[address]; mac != "" {
			t.Errorf("%s has %s", address, mac)
		}
	}
	if err := c.Attach(control.Attachment{Name: "other", Path: filepath.Join(l.dir, "other"), Interface: "nowhere"}); err == nil {
		t.Error("an interface that is not there is attached")
	}
}
