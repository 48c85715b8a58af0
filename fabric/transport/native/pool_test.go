package native_test

import (
	"context"
	"io"
	"net"
	"testing"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

// A pool is settled when its connections know their paths, also those that were dialled
// since a stream could not wait.
func TestSettles(t *testing.T) {
	p := newPair(t, 1, to(conntest.Listen(t, conntest.Echo)))
	settled := func() bool { return p.pool.Health().Settled }
	conntest.Await(t, "a pool that is settled at first", settled)
	var open []net.Conn
	for range 6 {
		p.pool.Unshare()
		conn := conntest.Dial(t, p.front)
		_, _ = conn.Write([]byte("x"))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	for _, conn := range open {
		conn.Close()
	}
	conntest.Await(t, "a pool that is settled after streams that could not wait", settled)
}

// What an application has said already goes before what it says next.
func TestFirst(t *testing.T) {
	p := newPair(t, 1, to(conntest.Listen(t, conntest.Echo)))
	front := conntest.Listen(t, func(app *net.TCPConn) {
		p.broken <- p.pool.Carry(context.Background(), transport.Request{Target: web, Source: map[string]string{"label/app": "x"}, First: []byte("first, ")}, app)
	})
	app := conntest.Dial(t, front)
	_, _ = app.Write([]byte("then"))
	_ = app.CloseWrite()
	heard, err := io.ReadAll(app)
	if err != nil || string(heard) != "first, then" {
		t.Errorf("heard %q, %v", heard, err)
	}
}
