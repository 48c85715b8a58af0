package conntest_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"skerry.dev/skerry/internal/conntest"
)

// What is said is heard at the other end, and comes back from who echoes.
func TestLoopback(t *testing.T) {
	one, other := conntest.Pair(t)
	udp, err := net.Dial("udp", conntest.Datagrams(t, func(said []byte, _ net.Addr) []byte { return said }))
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp := conntest.Dial(t, conntest.Listen(t, conntest.Echo))
	for _, c := range []struct{ say, hear net.Conn }{{one, other}, {other, one}, {tcp, tcp}, {udp, udp}} {
		said, heard := []byte("hello"), make([]byte, 5)
		if _, err := c.say.Write(said); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c.hear, heard); err != nil || !bytes.Equal(heard, said) {
			t.Errorf("%s: %q, %v", c.say.LocalAddr(), heard, err)
		}
	}
}

// What becomes so is waited for, and no longer.
func TestAwait(t *testing.T) {
	n := 0
	conntest.Await(t, "the third try", func() bool { n++; return n == 3 })
	if n != 3 {
		t.Errorf("%d tries", n)
	}
}

// Who is broken off is reset.
func TestReset(t *testing.T) {
	conntest.Reset(t, conntest.Listen(t, func(c *net.TCPConn) {
		_ = c.SetLinger(0)
		_ = c.Close()
	}))
}

// Who calls where nobody listens is refused.
func TestClosed(t *testing.T) {
	if c, err := net.Dial("tcp", conntest.Closed(t)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, %v", c, err)
	}
}
