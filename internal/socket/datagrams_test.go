package socket_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/internal/socket"
)

// TestDatagrams has them come by both families, and errors of the kinds of package net.
func TestDatagrams(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			d, err := socket.ListenDatagrams(netip.AddrPortFrom(netip.MustParseAddr(host), 0))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			own := d.Address()
			b := make([]byte, 3)
			for tries := 0; ; tries++ {
				began := time.Now()
				if err := d.SendTo([]byte("ten bytes!"), own); err != nil {
					t.Fatal(err)
				}
				sent := time.Now()
				time.Sleep(10 * time.Millisecond) // for which it lies
				n, came, err := d.Take(b)
				if n != 3 || err != nil || string(b) != "ten" {
					t.Fatalf("%d, %v, %q", n, err, b)
				}
				if came.After(began.Add(-time.Millisecond)) && came.Before(sent.Add(time.Millisecond)) {
					break
				}
				if tries == 100 {
					t.Fatalf("it came at %v, and was sent from %v to %v", came, began, sent)
				}
			}
			if err := d.SendTo(make([]byte, 1<<16), own); !errors.Is(err, unix.EMSGSIZE) {
				t.Errorf("of too much: %v", err)
			}
			if _, _, err := d.Take(b); !errors.Is(err, unix.EAGAIN) {
				t.Errorf("of nothing: %v", err)
			}
			_ = d.Close()
			if _, _, err := d.Take(b); !errors.Is(err, net.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
			if err := d.SendTo(b, own); !errors.Is(err, net.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		})
	}
}

// TestSendLast has the end leave in the segment of what was said last.
func TestSendLast(t *testing.T) {
	segments := func(send func(int, []byte) (int, unix.Errno)) uint32 {
		near, far := conntest.Pair(t)
		raw, err := near.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			if n, errno := send(int(fd), []byte("last")); n != 4 || errno != 0 {
				t.Fatal(n, errno)
			}
			_ = unix.Shutdown(int(fd), unix.SHUT_WR)
		})
		raw, err = far.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var info *unix.TCPInfo
		_ = raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err != nil {
			t.Fatal(err)
		}
		return info.Segs_in
	}
	if last, apart := segments(socket.SendLast), segments(socket.Send); last != apart-1 {
		t.Errorf("%d segments, and %d where the end comes apart", last, apart)
	}
}
