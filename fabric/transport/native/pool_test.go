package native_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// A pool is settled when its connections know their paths, also those that were dialled
// since a stream could not wait.
func TestSettles(t *testing.T) {
	p := newPair(t, 1, to(listen(t, echo)))
	settles := func() bool {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if p.pool.Health().Settled {
				return true
			}
		}
		return false
	}
	if !settles() {
		t.Fatal("not settled at first")
	}
	var open []net.Conn
	for range 6 {
		p.pool.Unshare()
		conn := dial(t, p.front)
		_, _ = conn.Write([]byte("x"))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	for _, conn := range open {
		conn.Close()
	}
	if !settles() {
		t.Error("not settled after streams that could not wait")
	}
}

// What an application has said already goes before what it says next.
func TestFirst(t *testing.T) {
	p := newPair(t, 1, to(listen(t, echo)))
	front := listen(t, func(app *net.TCPConn) {
		p.broken <- p.pool.Carry(context.Background(), transport.Request{Target: web, Source: map[string]string{"label/app": "x"}, First: []byte("first, ")}, app)
	})
	app := dial(t, front)
	_, _ = app.Write([]byte("then"))
	_ = app.CloseWrite()
	heard, err := io.ReadAll(app)
	if err != nil || string(heard) != "first, then" {
		t.Errorf("heard %q, %v", heard, err)
	}
}
