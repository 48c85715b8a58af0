package socket_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/internal/socket"
)

// pair is a connection with the reads and writes of this package, and its other end.
func pair(t testing.TB) (*socket.Conn, *net.TCPConn) {
	t.Helper()
	near, far := conntest.Pair(t)
	c, err := socket.Of(near)
	if err != nil {
		t.Fatal(err)
	}
	return c, far
}

// TestAsNet has all bytes come, and the end told, through buffers that are full again and
// again.
func TestAsNet(t *testing.T) {
	c, far := pair(t)
	said := make([]byte, 8<<20)
	_, _ = rand.Read(said)
	go conntest.Echo(far)
	failed := make(chan error, 1)
	go func() {
		n, err := c.Write(said)
		if err == nil && n != len(said) {
			err = io.ErrShortWrite
		}
		failed <- errors.Join(err, c.CloseWrite())
	}()
	heard, err := io.ReadAll(struct{ io.Reader }{c}) // by Read, not by splice
	if err != nil || !bytes.Equal(heard, said) {
		t.Errorf("%d of %d bytes, %v", len(heard), len(said), err)
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Errorf("nothing was asked for: %d, %v", n, err)
	}
}

// TestErrors are those of package net, to whoever asks what kind they are.
func TestErrors(t *testing.T) {
	var b [1]byte
	t.Run("deadline", func(t *testing.T) {
		c, _ := pair(t)
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := c.Read(b[:])
		timeout, is := errors.AsType[net.Error](err)
		if !errors.Is(err, os.ErrDeadlineExceeded) || !is || !timeout.Timeout() {
			t.Error(err)
		}
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		c, _ := pair(t)
		time.AfterFunc(time.Millisecond, func() { _ = c.Close() })
		if _, err := c.Read(b[:]); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if _, err := c.Write(b[:]); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	t.Run("reset", func(t *testing.T) {
		c, far := pair(t)
		_ = far.SetLinger(0)
		_ = far.Close()
		if _, err := c.Read(b[:]); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
		if _, err := c.Write(b[:]); !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
	})
	t.Run("full until the deadline", func(t *testing.T) {
		c, _ := pair(t)
		many := make([]byte, 64<<20) // which takes a while
		_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		if n, err := c.Write(many); n == 0 || n == len(many) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d written, %v", n, err)
		}
	})
}

func TestKinds(t *testing.T) {
	c, _ := pair(t)
	again, err := socket.Of(c)
	if err != nil || socket.Plain(again) != socket.Plain(c) || socket.Plain(c) == nil {
		t.Errorf("of one of its own: %v", err)
	}
	one, other := net.Pipe()
	if _, err := socket.Of(one); err == nil || socket.Plain(one) != nil {
		t.Error("a pipe is one of TCP")
	}
	if _, err := other.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // a pipe gives it as it is
		t.Errorf("the pipe is not closed: %v", err)
	}
}

// TestNothingIsAllocated on the way of a byte.
func TestNothingIsAllocated(t *testing.T) {
	c, far := pair(t)
	go conntest.Echo(far)
	b := make([]byte, 60)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = c.Write(b)
		_, _ = io.ReadFull(c, b)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
