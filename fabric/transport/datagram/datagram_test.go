package datagram

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/test/quiet"
)

var asking = transport.Request{Target: transport.Target{Namespace: "default", Name: "dns", Port: 53, Protocol: transport.UDP}}

// backend is at an address, and may deny all.
type backend struct {
	address string
	// offered is for connections that are opened to be called by; nil refuses them.
	offered *Link

	mu     sync.Mutex
	warned []error
	denies bool
	// allowed is called when it has allowed a flow, if there is one.
	allowed func()
}

func (b *backend) Allow(identity.Name, transport.Request) error {
	b.mu.Lock()
	denies, allowed := b.denies, b.allowed
	b.mu.Unlock()
	if denies {
		return &transport.Refusal{Code: transport.Denied}
	}
	if allowed != nil {
		allowed()
	}
	return nil
}

func (b *backend) Dial(ctx context.Context, _ identity.Name, _ transport.Request) (*net.UDPConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", b.address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

func (b *backend) Offered(identity.Name) (*Link, error) {
	if b.offered == nil {
		return nil, identity.ErrUntrusted
	}
	return b.offered, nil
}

func (b *backend) Warn(_ string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.warned = append(b.warned, err)
}

// isWarned waits until it was told of something.
func (b *backend) isWarned(of error) bool {
	return conntest.Eventually(func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return errors.Is(errors.Join(b.warned...), of)
	})
}

// pair is a server of c1, and a link to it of c2.
type pair struct {
	stores map[string]*identity.Store
	server *Server
	link   *Link
	drops  *Drops // at both
	told   chan error
	*backend
}

// newPair runs both until the test ends. The link may go by another address.
func newPair(t *testing.T, b *backend, by func(address string) string) pair {
	t.Helper()
	p := pair{stores: identitytest.Stores(t, "c1", "c2"), drops: new(Drops), told: make(chan error, 1000), backend: b}
	var err error
	p.server, err = NewServer("127.0.0.1:0", p.stores["c1"].Server(Protocol), b, p.drops)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	p.link = NewLink(by(p.server.Address().String()), p.stores["c2"].Client("c1", Protocol), p.drops, func(err error) { p.told <- err })
	running.Go(func() { p.server.Run(ctx) })
	running.Go(func() { p.link.Keep(ctx) })
	conntest.Await(t, "a connection", func() bool { return p.link.Path().Ready && len(p.server.connections()) == 1 })
	return p
}

func straight(address string) string { return address }

// open begins a flow, and gives what comes back, and by what code it ends.
func (p pair) open(t *testing.T) (f *Flow, heard chan []byte, ended chan transport.Code) {
	t.Helper()
	f, heard, ended, err := p.begin()
	if err != nil {
		t.Fatal(err)
	}
	return f, heard, ended
}

// begin opens a flow, if there is a connection.
func (p pair) begin() (f *Flow, heard chan []byte, ended chan transport.Code, err error) {
	heard, ended = make(chan []byte, 1000), make(chan transport.Code, 1)
	f, err = p.link.Open(asking, func(b []byte) { heard <- b }, func(c transport.Code) { ended <- c })
	return f, heard, ended, err
}

// echo is a service that says back what it hears.
func echo(t *testing.T) string {
	t.Helper()
	return conntest.Datagrams(t, func(said []byte, _ net.Addr) []byte { return said })
}

// Datagrams of all lengths that users send pass: of none, of DNS, of a tunnel's packets,
// of syslog; also where packets may have no more bytes than QUIC asks of a path. Longer
// ones are dropped, and counted.
func TestLengths(t *testing.T) {
	t.Run("wide", func(t *testing.T) { lengths(t, straight) })
	t.Run("narrow", func(t *testing.T) { lengths(t, func(to string) string { return conntest.Relay(t, to, 0, 1200) }) })
}

func lengths(t *testing.T, by func(string) string) {
	p := newPair(t, &backend{address: echo(t)}, by)
	f, heard, _ := p.open(t)
	for _, n := range []int{0, 1, 512, 1200, 1252, 1420, 1472, 1500, 4096, 8192, DatagramBytes} {
		said := bytes.Repeat([]byte{byte(n)}, n)
		var got []byte
		if !conntest.Eventually(func() bool {
			f.Send(said)
			select {
			case got = <-heard: // or what was said twice since the machine stood still
				return bytes.Equal(got, said)
			case <-time.After(time.Second):
				return false
			}
		}) {
			t.Errorf("of %d bytes %d came back", n, len(got))
		}
	}
	f.Send(make([]byte, DatagramBytes+1))
	if got := p.drops.Long.Load(); got != 1 {
		t.Errorf("%d counted as too long", got)
	}
}

// The first datagram of a flow takes no round trip more than any other.
func TestFirstDatagram(t *testing.T) {
	const delay = 30 * time.Millisecond
	p := newPair(t, &backend{address: echo(t)}, func(to string) string { return conntest.Relay(t, to, delay, 1<<16) })
	least := time.Hour
	for range 10 { // the least of them is what the machine does not disturb
		f, heard, _ := p.open(t)
		began := time.Now()
		f.Send([]byte("x"))
		select {
		case <-heard:
			least = min(least, time.Since(began))
		case <-time.After(10 * time.Second):
		}
	}
	if path := p.link.Path(); path.RTT < 2*delay || path.Loss != 0 || path.Streams == 0 {
		t.Errorf("the path is %+v at a round trip of %v", path, 2*delay)
	}
	if least < 2*delay || least > 3*delay {
		t.Errorf("the first answer takes %v at a round trip of %v", least, 2*delay)
	}
}

// A flow that is refused is told why, and so is one whose service is gone.
func TestRefusals(t *testing.T) {
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	p := newPair(t, &backend{address: nobody.LocalAddr().String()}, straight)
	for _, want := range []transport.Code{transport.Unreachable, transport.Denied} {
		p.mu.Lock()
		p.denies = want == transport.Denied
		p.mu.Unlock()
		f, _, ended := p.open(t)
		f.Send([]byte("x"))
		select {
		case got := <-ended:
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("it is not told: %s", want)
		}
	}
	if p.server.Flows() != 0 || p.link.Flows() != 0 {
		t.Error("a flow that is refused stays")
	}
}

// Flows end at both gateways when one of them says so, when nothing is said for a while,
// when the backend does not allow them any more, and with their connection.
func TestEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("all", func(t *testing.T) {
		p := newPair(t, &backend{address: echo(t)}, straight)
		for name, end := range map[string]func(*Flow){
			"said": func(f *Flow) { f.End(Over) },
			"idle": func(*Flow) {
				for _, c := range p.server.connections() {
					c.mu.Lock()
					c.idleAfter = time.Millisecond
					c.mu.Unlock()
				}
			},
			"not allowed": func(*Flow) {
				p.mu.Lock()
				p.denies = true
				p.mu.Unlock()
				p.server.Recheck(p.stores["c1"].CheckCaller)
			},
			"revoked": func(*Flow) {
				p.server.Recheck(func(tls.ConnectionState) error { return identity.ErrRevoked })
			},
		} {
			p.mu.Lock()
			p.denies = false
			p.mu.Unlock()
			conntest.Await(t, "an answer before it is "+name, func() bool { // on a connection that is not touched yet
				f, heard, _, err := p.begin()
				if err != nil { // it is not known yet that the one before has ended
					return false
				}
				f.Send([]byte("x"))
				select {
				case <-heard:
					end(f)
					return true
				case <-time.After(time.Second):
					return false
				}
			})
			if !conntest.Eventually(func() bool { return p.server.Flows() == 0 && p.link.Flows() == 0 }) {
				t.Errorf("%s: %d flows here, %d there", name, p.link.Flows(), p.server.Flows())
			}
			for _, c := range p.server.connections() {
				_ = c.conn.CloseWithError(codeEnded, "")
			}
			conntest.Await(t, "the end of all connections", func() bool { return len(p.server.connections()) == 0 })
			conntest.Await(t, "another connection", func() bool { return p.link.Path().Ready })
		}
	})
	if !conntest.Eventually(func() bool { return runtime.NumGoroutine() <= before }) {
		b := make([]byte, 1<<20)
		t.Errorf("%d goroutines, before there were %d:\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
	}
}

// A flow that is forbidden in the moment in which it begins does not outlast that.
func TestForbiddenMeanwhile(t *testing.T) {
	b := &backend{address: echo(t)}
	p := newPair(t, b, straight)
	var once sync.Once
	b.mu.Lock()
	b.allowed = func() {
		once.Do(func() {
			b.mu.Lock()
			b.denies = true
			b.mu.Unlock()
			p.server.Recheck(p.stores["c1"].CheckCaller)
		})
	}
	b.mu.Unlock()
	f, _, ended := p.open(t)
	f.Send([]byte("x"))
	select {
	case code := <-ended:
		if code != transport.Denied {
			t.Errorf("it ends by %s", code)
		}
	case <-time.After(5 * time.Second):
		t.Error("it goes on")
	}
	for _, c := range p.server.connections() {
		conntest.Await(t, "no request", func() bool { return len(c.asked()) == 0 })
	}
}

// Who is not of the fabric, or of another cluster than is called, gets no connection; the
// server says why.
func TestUntrusted(t *testing.T) {
	p := newPair(t, &backend{address: echo(t)}, straight)
	other := identitytest.Stores(t, "c2")["c2"].Client("c1", Protocol)
	other.VerifyConnection = nil // it believes anybody
	for name, config := range map[string]*tls.Config{
		"another fabric":  other,
		"another cluster": p.stores["c2"].Client("c3", Protocol),
		"no certificate":  {InsecureSkipVerify: true, NextProtos: []string{Protocol}},
		"no protocol":     p.stores["c2"].Client("c1", "h3"),
	} {
		conn, err := quic.DialAddr(t.Context(), p.server.Address().String(), config, settings(true))
		if err == nil {
			_, err = conn.AcceptUniStream(t.Context()) // until the server has seen the certificate
		}
		if err == nil {
			t.Errorf("%s: it is let in", name)
		}
	}
	if !p.isWarned(identity.ErrUntrusted) || !conntest.Eventually(func() bool { return p.server.handshakes.Load() == 0 }) {
		t.Errorf("%d handshakes; told was %v", p.server.handshakes.Load(), p.warned)
	}
}

// caller is a peer that speaks as it likes.
func (p pair) caller(t *testing.T) *quic.Conn {
	t.Helper()
	conn, err := quic.DialAddr(t.Context(), p.server.Address().String(), p.stores["c2"].Client("c1", Protocol), settings(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	return conn
}

// A peer that breaks the protocol is known by it, and its connection is over.
func TestMisbehaviour(t *testing.T) {
	good, err := transport.EncodeRequest(asking)
	if err != nil {
		t.Fatal(err)
	}
	say := func(what []byte) func(*quic.Conn) {
		return func(conn *quic.Conn) {
			s, err := conn.OpenStream()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = s.Write(what)
			_ = s.Close()
		}
	}
	for name, does := range map[string]func(*quic.Conn){
		"garbage":                 func(conn *quic.Conn) { _ = conn.SendDatagram([]byte{0xff}) },
		"a part of none":          func(conn *quic.Conn) { _ = conn.SendDatagram([]byte{0, contextPart, 0, 0, 9, 9, 'x'}) },
		"a flow that says twice":  say(append(bytes.Clone(good), good...)),
		"a flow that says naught": say(nil),
		"a long message":          say(make([]byte, transport.RequestBytes+1)),
	} {
		p := newPair(t, &backend{address: echo(t)}, straight)
		conn := p.caller(t)
		does(conn)
		select {
		case <-conn.Context().Done():
		case <-time.After(20 * time.Second):
			t.Errorf("%s: its connection goes on", name)
			continue
		}
		if ended, ok := errors.AsType[*quic.ApplicationError](context.Cause(conn.Context())); !ok || ended.ErrorCode != codeBreach {
			t.Errorf("%s: its connection ends by %v", name, context.Cause(conn.Context()))
		}
		if !p.isWarned(transport.ErrProtocol) {
			t.Errorf("%s: nobody is told", name)
		}
	}
}

// Flows that nobody has opened cost nothing, and a flood of those that are opened no
// more than their bound; who behaves is served meanwhile.
func TestFlood(t *testing.T) {
	quiet.Timed(t) // a connection that is silent for 5 s is over
	p := newPair(t, &backend{address: echo(t)}, straight)
	conn := p.caller(t)
	for i := range uint64(100) {
		_ = conn.SendDatagram(appendPacket(nil, packet{flow: 1e6 + i, payload: []byte("x")}))
	}
	text, err := transport.EncodeRequest(asking)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	opened := 0
	for range flowsMax + 500 {
		s, err := conn.OpenStreamSync(ctx)
		if err != nil {
			break
		}
		opened++
		_, _ = s.Write(text)
		_ = s.Close()
	}
	if opened <= flowsMax {
		t.Fatalf("%d flows were opened", opened)
	}
	if !conntest.Eventually(func() bool { return p.server.Flows() <= flowsMax }) {
		t.Errorf("%d flows", p.server.Flows())
	}
	f, heard, _ := p.open(t)
	conntest.Await(t, "service of who behaves", func() bool {
		f.Send([]byte("x"))
		select {
		case <-heard:
			return true
		case <-time.After(time.Second):
			return false
		}
	})
	if conn.Context().Err() != nil {
		t.Errorf("the connection ended: %v", context.Cause(conn.Context()))
	}
}

// A gateway has few connections at another: of more the oldest ends.
func TestConnections(t *testing.T) {
	p := newPair(t, &backend{address: echo(t)}, straight)
	first := p.caller(t)
	for range gatewayConnectionsMax {
		p.caller(t)
	}
	select {
	case <-first.Context().Done():
	case <-time.After(20 * time.Second):
		t.Error("the oldest goes on")
	}
	if !conntest.Eventually(func() bool { return len(p.server.connections()) <= gatewayConnectionsMax }) {
		t.Errorf("%d connections", len(p.server.connections()))
	}
}

// A gateway that ends says so, and peers open their flows elsewhere.
func TestLeave(t *testing.T) {
	p := newPair(t, &backend{address: echo(t)}, straight)
	f, heard, ended := p.open(t)
	p.server.Leave()
	conntest.Await(t, "a peer that hears of it", func() bool { return !p.link.Path().Ready })
	if up, left := <-p.told, <-p.told; up != nil || transport.CodeOf(left) != transport.Leaving {
		t.Errorf("told is %v, then %v", up, left)
	}
	f.Send([]byte("x"))
	select {
	case <-heard:
	case code := <-ended:
		t.Errorf("a flow that is open ends by %d: %v", code, context.Cause(f.c.conn.Context()))
	case <-time.After(20 * time.Second):
		t.Error("a flow that is open is not served")
	}
	if _, err := p.link.Open(asking, nil, nil); !errors.Is(err, transport.ErrNotOpened) {
		t.Errorf("another flow: %v", err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("a flow that says nothing stays")
	}
}
