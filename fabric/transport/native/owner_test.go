package native_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

// stalling is a service that echoes, and where it is first told to hold does not read on; that
// connection it gives.
func stalling(t *testing.T) (address string, held chan *net.TCPConn) {
	t.Helper()
	held = make(chan *net.TCPConn, 100)
	return conntest.Listen(t, func(c *net.TCPConn) {
		first := make([]byte, 4)
		if _, err := io.ReadFull(c, first); err == nil && string(first) == "hold" {
			held <- c
			return
		}
		_, _ = c.Write(first)
		conntest.Echo(c)
	}), held
}

// answered says that a new stream is, at once.
func answered(t *testing.T, p pair) {
	t.Helper()
	app := conntest.Dial(t, p.front)
	defer app.Close()
	_ = app.SetDeadline(time.Now().Add(3 * time.Second))
	b := []byte("hello")
	if _, err := app.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(app, b); err != nil {
		t.Errorf("a stream beside: %v", err)
	}
}

// What a service has yet to read holds up no other stream: not when the client has said its
// end, and not when it has given up.
func TestNextToStalled(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn) error{
		"said its end": (*net.TCPConn).CloseWrite,
		"given up":     func(c *net.TCPConn) error { transport.Reset(c); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			address, held := stalling(t)
			p := newPair(t, 1, to(address))
			conntest.Await(t, "a connection of its own", func() bool { return p.pool.Health().Idle > 0 })
			app := conntest.Dial(t, p.front)
			// More than buffers of the service take, less than all on the way.
			if _, err := app.Write(append([]byte("hold"), make([]byte, 7<<20)...)); err != nil {
				t.Fatal(err)
			}
			defer (<-held).Close()
			if err := end(app); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // which may reach the other gateway
			for range 3 {
				answered(t, p)
			}
			if name == "given up" { // the connection ends after a while, and that of the service
				conntest.Await(t, "no stream at the other gateway", func() bool { p.server.Sweep(); return p.server.Streams() == 0 })
			}
			p.cut()
			conntest.Await(t, "no stream", func() bool { return p.pool.Path().Streams == 0 })
		})
	}
}

// A client that has said its end and then gives up is heard of by the service.
func TestResetAfterEnd(t *testing.T) {
	heard := make(chan error, 1)
	p := newPair(t, 1, to(conntest.Listen(t, func(c *net.TCPConn) {
		_, _ = io.Copy(io.Discard, c)
		for {
			if _, err := c.Write(make([]byte, 1<<16)); err != nil {
				heard <- err
				return
			}
		}
	})))
	app := conntest.Dial(t, p.front)
	if err := app.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := app.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	transport.Reset(app)
	select {
	case err := <-heard:
		if !slices.ContainsFunc([]error{syscall.ECONNRESET, syscall.EPIPE}, func(want error) bool { return errors.Is(err, want) }) {
			t.Errorf("the service hears %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the service still sends")
	}
}

// Connections serve one stream after the other, also where the service ends first and is
// still reading.
func TestServiceEndsFirst(t *testing.T) {
	got := make(chan []byte, 10)
	p := newPair(t, 1, to(conntest.Listen(t, func(c *net.TCPConn) {
		_, _ = c.Write([]byte("hello"))
		_ = c.CloseWrite()
		all, _ := io.ReadAll(c)
		got <- all
	})))
	before := p.dialled.Load()
	for range 5 {
		app := conntest.Dial(t, p.front)
		if all, err := io.ReadAll(app); err != nil || string(all) != "hello" {
			t.Fatalf("%q, %v", all, err)
		}
		said := bytes.Repeat([]byte("x"), 1<<20)
		if _, err := app.Write(said); err != nil {
			t.Fatal(err)
		}
		app.Close()
		if err := <-p.broken; err != nil {
			t.Error(err)
		}
		if all := <-got; !bytes.Equal(all, said) {
			t.Errorf("%d of %d bytes came", len(all), len(said))
		}
		conntest.Await(t, "a free connection", func() bool { return p.pool.Health().Idle > 0 })
	}
	if n := p.dialled.Load() - before; n > 4 {
		t.Errorf("%d connections for 5 streams, one after the other", n)
	}
}
