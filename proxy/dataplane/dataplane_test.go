package dataplane_test

import (
	"net"
	"net/netip"
	"testing"

	"skerry.dev/skerry/proxy/dataplane"
)

// A connection that nobody has redirected was meant for where it arrived; capture's tests
// have those that were.
func TestOriginalDestination(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Logf("%s: %v", at, err) // a machine without IPv6
			continue
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		local := netip.MustParseAddrPort(c.LocalAddr().String())
		err = raw.Control(func(fd uintptr) {
			if got, err := dataplane.OriginalDestination(int(fd), local); got != local || err != nil {
				t.Errorf("%s: %s, %v", local, got, err)
			}
		})
		if err != nil {
			t.Error(err)
		}
		_ = c.Close()
		_ = l.Close()
	}
}
