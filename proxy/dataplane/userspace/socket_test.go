package userspace

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/conntest"
)

// What a listener accepts sends at once and notices that its peer is gone, as it was set up.
func TestAcceptedIsSetUp(t *testing.T) {
	listener, at, err := listenTCP(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(listener) }()
	conntest.Dial(t, at.String())
	fd := -1
	conntest.Await(t, "a connection", func() bool {
		fd, _, err = unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return err == nil
	})
	defer func() { _ = unix.Close(fd) }()
	for _, o := range []struct{ level, name, want int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepEvery}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepCount},
	} {
		if got, err := unix.GetsockoptInt(fd, o.level, o.name); err != nil || got != o.want {
			t.Errorf("option %d/%d is %d, %v, want %d", o.level, o.name, got, err, o.want)
		}
	}
}
