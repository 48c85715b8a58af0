package copyloop_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/dataplane/copyloop"
	"skerry.dev/skerry/proxy/dataplane/planetest"
)

// plane carries to endpoints until the test ends, or stop is called.
func plane(t *testing.T, endpoints ...string) (at string, c *planetest.Chooser, stop func()) {
	t.Helper()
	c = planetest.New(endpoints...)
	p, err := copyloop.New([]netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, 0, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, 10*time.Millisecond) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return p.Addresses()[0].String(), c, stop
}

// Bytes are carried both ways, to an endpoint that takes the connection.
func TestCarries(t *testing.T) {
	at, c, _ := plane(t, conntest.Listen(t, conntest.Echo), conntest.Closed(t))
	for range 4 {
		conn := conntest.Dial(t, at)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	conntest.Await(t, "all are served", func() bool { return c.Count(dataplane.Served) == 4 })
	if c.Count(dataplane.Failed) == 0 || c.Calls()[0].Target.String() != at {
		t.Errorf("failed %d, called %v", c.Count(dataplane.Failed), c.Calls()[0])
	}
}

// As kube-proxy's did, it breaks the connection off once the client has said all.
func TestHalfCloseIsLost(t *testing.T) {
	at, _, _ := plane(t, conntest.Listen(t, func(c *net.TCPConn) {
		_, _ = io.Copy(io.Discard, c) // which ends as the loop closes its side
		_, _ = c.Write([]byte("answer"))
		_ = c.Close()
	}))
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("question"))
	_ = conn.CloseWrite()
	if answer, _ := io.ReadAll(conn); len(answer) != 0 {
		t.Errorf("%q comes: it is no copy of what kube-proxy had", answer)
	}
}

// As kube-proxy's did, it asks for no connection's endpoint before that of the one before it
// was called.
func TestOneAfterTheOther(t *testing.T) {
	at, c, _ := plane(t, conntest.Listen(t, conntest.Echo))
	release := c.Hold()
	first, second := conntest.Dial(t, at), conntest.Dial(t, at)
	conntest.Await(t, "the first is asked for", func() bool { return len(c.Calls()) == 1 })
	time.Sleep(50 * time.Millisecond) // in which the other could be
	if n := len(c.Calls()); n != 1 {
		t.Errorf("%d are asked for at the same time", n)
	}
	release()
	for _, conn := range []net.Conn{first, second} {
		_, _ = conn.Write([]byte("x"))
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
}

// A connection that nobody serves is reset, and one that is open at the end is closed.
func TestEnds(t *testing.T) {
	at, _, _ := plane(t)
	conntest.Reset(t, at)
	at, c, stop := plane(t, conntest.Listen(t, conntest.Echo))
	conn := conntest.Dial(t, at)
	_, _ = conn.Write([]byte("x"))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := conn.Read(make([]byte, 1)); err == nil || c.Count(dataplane.Served) != 1 {
		t.Errorf("after the end: %v, %d served", err, c.Count(dataplane.Served))
	}
}
