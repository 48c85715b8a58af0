package copyloop_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/proxy/dataplane"
	"skerry.dev/skerry/proxy/dataplane/copyloop"
)

const patience = 20 * time.Second

// choosing takes endpoints in turn, and notes what came of them.
type choosing struct {
	mu        sync.Mutex
	endpoints []netip.AddrPort
	next      int
	calls     []dataplane.Call
	done      map[dataplane.Outcome]int
	hold      chan struct{} // where it is not nil, until it is closed nothing is chosen
}

var errNobody = errors.New("nobody serves")

func (c *choosing) Choose(call dataplane.Call) (dataplane.Choice, error) {
	c.mu.Lock()
	c.calls = append(c.calls, call)
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.endpoints) == 0 {
		return dataplane.Choice{}, errNobody
	}
	c.next++
	return dataplane.Choice{Endpoint: c.endpoints[c.next%len(c.endpoints)]}, nil
}

func (c *choosing) Answered(*dataplane.Choice) {}

func (c *choosing) Done(_ *dataplane.Choice, o dataplane.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[o]++
}

func (c *choosing) count(o dataplane.Outcome) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[o]
}

// plane carries to endpoints until the test ends, or stop is called.
func plane(t *testing.T, endpoints ...netip.AddrPort) (at string, c *choosing, stop func()) {
	t.Helper()
	c = &choosing{endpoints: endpoints, done: map[dataplane.Outcome]int{}}
	p, err := copyloop.New([]netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, c)
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

// serve has something done with each connection, and says where.
func serve(t *testing.T, with func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go with(c)
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func dial(t *testing.T, at string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal(what)
		}
	}
}

func echo(c net.Conn) {
	_, _ = io.Copy(c, c)
	_ = c.Close()
}

// gone is an address where nobody listens.
func gone(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Bytes are carried both ways, to an endpoint that takes the connection.
func TestCarries(t *testing.T) {
	at, c, _ := plane(t, serve(t, echo), gone(t))
	for range 4 {
		conn := dial(t, at)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	await(t, "all are served", func() bool { return c.count(dataplane.Served) == 4 })
	if c.count(dataplane.Failed) == 0 || c.calls[0].Target.String() != at {
		t.Errorf("failed %d, called %v", c.count(dataplane.Failed), c.calls[0])
	}
}

// As kube-proxy's did, it breaks the connection off once the client has said all.
func TestHalfCloseIsLost(t *testing.T) {
	at, _, _ := plane(t, serve(t, func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // which ends as the loop closes its side
		_, _ = c.Write([]byte("answer"))
		_ = c.Close()
	}))
	conn := dial(t, at)
	_, _ = conn.Write([]byte("question"))
	_ = conn.CloseWrite()
	if answer, _ := io.ReadAll(conn); len(answer) != 0 {
		t.Errorf("%q comes: it is no copy of what kube-proxy had", answer)
	}
}

// As kube-proxy's did, it asks for no connection's endpoint before that of the one before it
// was called.
func TestOneAfterTheOther(t *testing.T) {
	at, c, _ := plane(t, serve(t, echo))
	asked := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.calls)
	}
	c.mu.Lock()
	c.hold = make(chan struct{})
	c.mu.Unlock()
	first, second := dial(t, at), dial(t, at)
	await(t, "the first is asked for", func() bool { return asked() == 1 })
	time.Sleep(50 * time.Millisecond) // in which the other could be
	if n := asked(); n != 1 {
		t.Errorf("%d are asked for at the same time", n)
	}
	close(c.hold)
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
	if conn, err := net.Dial("tcp", at); err == nil { // else it was reset at once
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("nobody serves it: %v", err)
		}
		_ = conn.Close()
	}
	at, c, stop := plane(t, serve(t, echo))
	conn := dial(t, at)
	_, _ = conn.Write([]byte("x"))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := conn.Read(make([]byte, 1)); err == nil || c.count(dataplane.Served) != 1 {
		t.Errorf("after the end: %v, %d served", err, c.count(dataplane.Served))
	}
}
