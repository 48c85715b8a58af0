// Package conntest serves, calls and waits on loopback, for tests of what carries
// connections. Nothing is late or lost but by Relay. Start at Listen.
package conntest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// deadline is of all that is said and heard by Dial.
	deadline = 20 * time.Second
	// tries take half a minute at least. They are counted, for while a machine stands still
	// there are none.
	tries = 3000
	// pause is between two of them.
	pause = 10 * time.Millisecond
)

// Listen serves connections of TCP until the test ends, at the address that it gives.
func Listen(t testing.TB, serve func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go Accept(l, func(conn net.Conn) { serve(conn.(*net.TCPConn)) })
	return l.Addr().String()
}

// Accept serves the connections of a listener, all at once, until it is closed and they
// are over.
func Accept(l net.Listener, serve func(net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() { serve(conn) })
	}
}

// Closed is an address at which nobody listens, nor will.
func Closed(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Echo says back what it hears, and ends when it has heard all.
func Echo(conn *net.TCPConn) {
	_, _ = io.Copy(conn, conn)
	_ = conn.Close()
}

// Datagrams answers each datagram until the test ends, at the address that it gives; nil is
// no answer.
func Datagrams(t testing.TB, answer func(said []byte, from net.Addr) []byte) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			if with := answer(b[:n], from); with != nil {
				_, _ = conn.WriteTo(with, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

// Relay passes datagrams of up to so many bytes on after a while, at the address that it
// gives.
func Relay(t testing.TB, to string, delay time.Duration, most int) string {
	t.Helper()
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back, err := new(net.Dialer).DialContext(t.Context(), "udp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = front.Close()
		_ = back.Close()
	})
	client := make(chan net.Addr, 1)
	pass := func(read func([]byte) (int, error), write func([]byte) (int, error)) {
		b := make([]byte, 1<<16)
		for {
			n, err := read(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if said := bytes.Clone(b[:n]); err == nil && n <= most {
				time.AfterFunc(delay, func() { _, _ = write(said) })
			}
		}
	}
	go pass(func(b []byte) (int, error) {
		n, from, err := front.ReadFrom(b)
		select {
		case client <- from:
		default:
		}
		return n, err
	}, back.Write)
	go pass(back.Read, func(b []byte) (int, error) {
		at := <-client
		client <- at
		return front.WriteTo(b, at)
	})
	return front.LocalAddr().String()
}

// Dial connects until the test ends. Nothing is waited for on it longer than 20 s.
func Dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(deadline))
	return conn.(*net.TCPConn)
}

// Reset calls one who breaks off: at once, or without a word.
func Reset(t testing.TB, address string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(deadline))
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a client gets %v", err)
	}
}

// Pair gives both ends of a connection that lasts until the test ends.
func Pair(t testing.TB) (dialled, accepted *net.TCPConn) {
	t.Helper()
	ends := make(chan *net.TCPConn, 1)
	dialled = Dial(t, Listen(t, func(conn *net.TCPConn) { ends <- conn }))
	accepted = <-ends
	t.Cleanup(func() { _ = accepted.Close() })
	return dialled, accepted
}

// Eventually says whether something is so within half a minute of tries.
func Eventually(is func() bool) bool {
	for range tries {
		if is() {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

// Await ends a test that waits in vain for what is to be.
func Await(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !Eventually(is) {
		t.Fatalf("waited in vain for %s", what)
	}
}
