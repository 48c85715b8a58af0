package userspace

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/internal/socket"
)

// What a caller has to say at once comes with the last segment of the handshake.
func TestCallSays(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	segments := func(says bool) (n uint32) {
		fd, err := call(l.Addr().(*net.TCPAddr).AddrPort(), says, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer release(fd)
		conntest.Await(t, "the endpoint", func() bool { _, err := unix.Getpeername(fd); return err == nil })
		if _, errno := socket.Send(fd, []byte("hello")); errno != 0 {
			t.Fatal(errno)
		}
		taken, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = taken.Close() }()
		if _, err := io.ReadFull(taken, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		raw, _ := taken.(*net.TCPConn).SyscallConn()
		_ = raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				t.Fatal(err)
			}
			n = info.Segs_in
		})
		return n
	}
	if says, later := segments(true), segments(false); says != later-1 {
		t.Errorf("%d segments with something to say, %d without", says, later)
	}
}

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
