package native_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/native"
	"skerry.dev/skerry/internal/conntest"
)

var web = transport.Target{Namespace: "default", Name: "web", Port: 80, Protocol: transport.TCP}

// pair is two gateways: applications connect at front, and what backend dials answers.
type pair struct {
	front  string
	pool   *native.Pool
	server *native.Server
	// dialled counts the connections between the gateways, ended those of them that are over.
	dialled, ended *atomic.Int32
	// broken are the errors of streams at the side that calls.
	broken chan error

	mu    *sync.Mutex
	conns *[]net.Conn
}

// cut ends all connections between the gateways.
func (p pair) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range *p.conns {
		_ = conn.(*tls.Conn).NetConn().Close()
	}
	*p.conns = nil
}

// open counts the connections between the gateways.
func (p pair) open() int { return int(p.dialled.Load() - p.ended.Load()) }

// newPair runs two gateways until the test ends.
func newPair(t *testing.T, size int, backend transport.Backend) pair {
	t.Helper()
	stores := identitytest.Stores(t, "c1", "c2")
	l, err := tls.Listen("tcp", "127.0.0.1:0", stores["c1"].Server(native.Protocol, native.ProtocolShared, native.ProtocolLane))
	if err != nil {
		t.Fatal(err)
	}
	p := pair{
		pool:    native.NewPool(l.Addr().String(), stores["c2"].Client("c1", native.Protocol), native.Options{Ahead: size, Most: 64, Peer: untrained("")}),
		dialled: new(atomic.Int32), ended: new(atomic.Int32), broken: make(chan error, 1000),
		mu: new(sync.Mutex), conns: new([]net.Conn),
	}
	server := native.NewServer(backend, "", untrained)
	p.server = server
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		l.Close()
		running.Wait()
	})
	running.Go(func() {
		conntest.Accept(l, func(conn net.Conn) {
			defer conn.Close()
			p.dialled.Add(1)
			defer p.ended.Add(1)
			p.mu.Lock()
			*p.conns = append(*p.conns, conn)
			p.mu.Unlock()
			context.AfterFunc(ctx, func() { conn.Close() })
			if err := conn.(*tls.Conn).Handshake(); err != nil {
				return // it was cut
			}
			name, err := identity.Peer(conn.(*tls.Conn).ConnectionState())
			if err != nil || name.String() != "c2/g1" {
				t.Errorf("called by %v: %v", name, err)
			}
			_ = map[string]func(net.Conn, identity.Name) error{
				native.Protocol: server.Serve, native.ProtocolShared: server.ServeShared, native.ProtocolLane: server.ServeLane,
			}[conn.(*tls.Conn).ConnectionState().NegotiatedProtocol](conn, name)
		})
	})
	running.Go(func() { p.pool.Keep(ctx) })
	p.front = conntest.Listen(t, func(app *net.TCPConn) {
		p.broken <- p.pool.Carry(ctx, transport.Request{Target: web, Source: map[string]string{"label/app": "x"}}, app)
	})
	conntest.Await(t, "a connection between the gateways", func() bool { return p.pool.Path().Ready })
	return p
}

// untrained is of connections that are taught no path.
func untrained(string) native.Peer { return native.Peer{Extra: new(native.Extra)} }

// dials is a backend that allows all.
type dials func(context.Context, identity.Name, transport.Request) (transport.Conn, error)

func (dials) Allow(identity.Name, transport.Request) error { return nil }

func (d dials) Dial(ctx context.Context, peer identity.Name, r transport.Request) (transport.Conn, error) {
	return d(ctx, peer, r)
}

// denies is a backend that allows nothing.
type denies struct{ dials }

func (denies) Allow(identity.Name, transport.Request) error {
	return &transport.Refusal{Code: transport.Denied}
}

// to is a backend at an address.
func to(address string) transport.Backend {
	return dials(func(ctx context.Context, _ identity.Name, r transport.Request) (transport.Conn, error) {
		if r.Target != web || r.Source["label/app"] != "x" {
			return nil, &transport.Refusal{Code: transport.NoService}
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return conn.(*net.TCPConn), nil
	})
}

// All that an application says arrives and comes back, of any size; both sides may end
// their direction first, and connections between the gateways serve one stream after
// the other.
func TestStreams(t *testing.T) {
	p := newPair(t, 1, to(conntest.Listen(t, conntest.Echo)))
	sizes := slices.Repeat([]int{0, 1, 60, 64 << 10, 64<<10 + 1, 5 << 20}, 2)
	for _, size := range sizes {
		said := make([]byte, size)
		_, _ = rand.Read(said)
		app := conntest.Dial(t, p.front)
		go func() {
			_, _ = app.Write(said)
			_ = app.CloseWrite()
		}()
		heard, err := io.ReadAll(app)
		if err != nil || !bytes.Equal(heard, said) {
			t.Errorf("%d bytes: %d came back, %v", size, len(heard), err)
		}
		app.Close()
		if err := <-p.broken; err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	// Twice what is in use, one ahead, and one to share; two are in use where an application
	// has its end before the connection is free.
	if n := p.dialled.Load(); n > 6 {
		t.Errorf("%d connections for %d streams, one after the other", n, len(sizes))
	}
}

// A service that speaks first is heard by an application that says nothing.
func TestServerSpeaksFirst(t *testing.T) {
	p := newPair(t, 1, to(conntest.Listen(t, func(conn *net.TCPConn) {
		_, _ = conn.Write([]byte("220 ready"))
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	})))
	app := conntest.Dial(t, p.front)
	heard, err := io.ReadAll(app)
	if err != nil || string(heard) != "220 ready" {
		t.Errorf("%q, %v", heard, err)
	}
	if _, err := app.Write([]byte("QUIT")); err != nil { // its own direction is open yet
		t.Error(err)
	}
	app.Close()
	if err := <-p.broken; err != nil {
		t.Error(err)
	}
}

// A reset at one end is a reset at the other.
func TestResets(t *testing.T) {
	heard := make(chan error, 1)
	address := conntest.Listen(t, func(conn *net.TCPConn) {
		b := make([]byte, 5)
		_, _ = io.ReadFull(conn, b)
		if string(b) == "reset" {
			transport.Reset(conn)
			return
		}
		_, err := conn.Read(b)
		heard <- err
	})
	p := newPair(t, 1, to(address))
	app := conntest.Dial(t, p.front)
	_, _ = app.Write([]byte("reset"))
	if _, err := app.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the application hears %v of a service that resets", err)
	}
	if err := <-p.broken; err == nil {
		t.Error("no error")
	}
	app = conntest.Dial(t, p.front)
	_, _ = app.Write([]byte("hello"))
	transport.Reset(app)
	if err := <-heard; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the service hears %v of an application that resets", err)
	}
}

// Why a stream is refused reaches the side that asked.
func TestRefusals(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	for code, backend := range map[transport.Code]transport.Backend{
		transport.Unreachable: to(nobody.Addr().String()),
		transport.Denied:      denies{},
	} {
		p := newPair(t, 1, backend)
		app, err := net.Dial("tcp", p.front)
		if err == nil { // else it was reset before it was told that it is connected
			t.Cleanup(func() { _ = app.Close() })
			_, err = app.Write(make([]byte, 1<<20))
		}
		if err == nil { // a kernel tells of a reset once
			_, err = app.Read(make([]byte, 1))
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the application hears %v", code, err)
		}
		refusal, ok := errors.AsType[*transport.Refusal](<-p.broken)
		if !ok || refusal.Code != code {
			t.Errorf("got %v, want %s", refusal, code)
		}
	}
}

// When the connection below ends, the application hears of it, and the next one is
// served by another connection.
func TestConnectionCut(t *testing.T) {
	p := newPair(t, 1, to(conntest.Listen(t, conntest.Echo)))
	for range 2 {
		var app *net.TCPConn
		b := make([]byte, 5)
		conntest.Await(t, "an answer", func() bool { // the side that calls may not know yet of the cut before
			app = conntest.Dial(t, p.front)
			_, _ = app.Write([]byte("hello"))
			_, err := io.ReadFull(app, b)
			if err != nil {
				<-p.broken
			}
			return err == nil
		})
		p.cut()
		if _, err := app.Read(b); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the application hears %v", err)
		}
		if err := <-p.broken; err == nil {
			t.Error("no error")
		}
	}
}

// A stream that is to be confirmed sends nothing before the service has accepted.
func TestConfirmed(t *testing.T) {
	accepts := make(chan struct{})
	address := conntest.Listen(t, conntest.Echo)
	p := newPair(t, 1, dials(func(ctx context.Context, peer identity.Name, r transport.Request) (transport.Conn, error) {
		if !r.Confirm {
			t.Error("the request does not ask")
		}
		<-accepts
		return to(address).Dial(ctx, peer, r)
	}))
	done := make(chan error, 1)
	front := conntest.Listen(t, func(app *net.TCPConn) {
		r := transport.Request{Target: web, Source: map[string]string{"label/app": "x"}, Confirm: true}
		done <- p.pool.Carry(t.Context(), r, app)
	})
	app := conntest.Dial(t, front)
	_, _ = app.Write([]byte("hello"))
	_ = app.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	b := make([]byte, 5)
	if n, err := app.Read(b); err == nil {
		t.Errorf("%d bytes come before it is accepted", n)
	}
	close(accepts)
	_ = app.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(app, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	app.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Streams at once have connections of their own, also more than are ahead of need.
func TestManyAtOnce(t *testing.T) {
	p := newPair(t, 2, to(conntest.Listen(t, conntest.Echo)))
	const n = 50
	var all []*net.TCPConn
	for range n {
		app := conntest.Dial(t, p.front)
		if _, err := app.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		all = append(all, app)
	}
	for _, app := range all {
		b := make([]byte, 5)
		if _, err := io.ReadFull(app, b); err != nil || string(b) != "hello" {
			t.Fatalf("%q, %v", b, err)
		}
	}
	for _, app := range all {
		app.Close()
		if err := <-p.broken; err != nil {
			t.Error(err)
		}
	}
}

// Where packets are lost, bytes of bursts come in pieces over a bundle of connections, and
// are the same, and few go twice; without it they do not. What lanes carry that end is made of the others.
func TestBundle(t *testing.T) {
	p := newPair(t, 2, to(conntest.Listen(t, conntest.Echo)))
	ask(t, p, 3<<20, func() {})
	extra := p.pool.Extra()
	if n := extra.Data.Load() + extra.Parity.Load() + extra.Copies.Load(); n > 0 {
		t.Errorf("%d bytes for losses that there are not", n)
	}
	p.pool.Lose(true)
	conntest.Await(t, "connections that send blocks", func() bool { n, _ := p.pool.Bundled(); return n > 1 })
	_, before := p.pool.Bundled()
	ask(t, p, 100, func() {})
	if p.pool.Copies() == 0 || extra.Copies.Load() == 0 {
		t.Error("what is small was sent once")
	}
	ask(t, p, 3<<20, func() {})
	if _, after := p.pool.Bundled(); after == before {
		t.Error("no block was sent")
	}
	if data, parity := extra.Data.Load(), extra.Parity.Load(); parity == 0 || 5*parity > data {
		t.Errorf("%d bytes of parity for %d", parity, data)
	}
	ask(t, p, 3<<20, func() { p.pool.EndLanes(1) })
	p.pool.Lose(false)
	conntest.Await(t, "no connection that sends blocks", func() bool { n, _ := p.pool.Bundled(); return n == 0 })
	ask(t, p, 3<<20, func() {})
}

// When too many lanes end, streams may break, and then there is another bundle.
func TestBundleEnds(t *testing.T) {
	p := newPair(t, 1, to(conntest.Listen(t, conntest.Echo)))
	p.pool.Lose(true)
	bundled := func() bool { n, _ := p.pool.Bundled(); return n > 0 }
	conntest.Await(t, "a connection that sends blocks", bundled)
	before := p.pool.BundleID()
	p.pool.EndLanes(10)
	conntest.Await(t, "another bundle", func() bool { return p.pool.BundleID() != before && bundled() })
	ask(t, p, 3<<20, func() {})
}

// Services that do not read hold up their streams alone, and the gateways hold no more for
// them than they may.
func TestSlowReaders(t *testing.T) {
	for name, c := range map[string]struct{ streams, bytes int }{"one": {1, 100 << 20}, "many": {20, 7 << 20}} {
		t.Run(name, func(t *testing.T) { slowReaders(t, c.streams, c.bytes) })
	}
}

func slowReaders(t *testing.T, streams, bytes int) {
	address, held := stalling(t)
	p := newPair(t, 2, to(address))
	p.pool.Lose(true)
	conntest.Await(t, "connections that send blocks", func() bool { n, _ := p.pool.Bundled(); return n > 1 })
	for range streams {
		slow := conntest.Dial(t, p.front)
		_ = slow.SetDeadline(time.Time{})
		go func() {
			_, _ = slow.Write(append([]byte("hold"), make([]byte, bytes)...))
			slow.Close()
		}()
	}
	all := make([]*net.TCPConn, streams)
	for i := range all {
		all[i] = <-held
	}
	for range 3 {
		ask(t, p, 3<<20, func() {})
	}
	for _, c := range all {
		n, err := io.Copy(io.Discard, c)
		if err != nil || n != int64(bytes) {
			t.Errorf("%d bytes came, %v", n, err)
		}
		c.Close()
	}
}

// A peer that ends connections as soon as they are there is not called again and again.
func TestRefusedAtOnce(t *testing.T) {
	stores := identitytest.Stores(t, "c1", "c2")
	l, err := tls.Listen("tcp", "127.0.0.1:0", stores["c1"].Server(native.Protocol, native.ProtocolShared))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var calls atomic.Int32
	go conntest.Accept(l, func(conn net.Conn) {
		calls.Add(1)
		_ = conn.(*tls.Conn).Handshake()
		conn.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	native.NewPool(l.Addr().String(), stores["c2"].Client("c1", native.Protocol), native.Options{Ahead: 1, Most: 8, Peer: untrained("")}).Keep(ctx)
	if n := calls.Load(); n < 2 || n > 6 {
		t.Errorf("%d calls in half a second", n)
	}
}

// ask sends random bytes and hears them again; midway it does something.
func ask(t *testing.T, p pair, size int, midway func()) {
	t.Helper()
	said := make([]byte, size)
	_, _ = rand.Read(said)
	app := conntest.Dial(t, p.front)
	defer app.Close()
	go func() {
		_, _ = app.Write(said[:size/2])
		midway()
		_, _ = app.Write(said[size/2:])
		_ = app.CloseWrite()
	}()
	heard, err := io.ReadAll(app)
	if err != nil || !bytes.Equal(heard, said) {
		t.Errorf("%d bytes: %d came back, %v", size, len(heard), err)
	}
}
