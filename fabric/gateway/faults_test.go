package gateway_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/test/quiet"
)

// everyone may call everything.
func everyone() []policy.Policy {
	return []policy.Policy{{Name: "all", From: []policy.Selector{{}}, To: []policy.Selector{{}}}}
}

func exports(backend string) *snapshot.Snapshot {
	return &snapshot.Snapshot{Exports: []snapshot.Export{{Target: target("web"), Backends: []string{backend}}}, Policies: everyone()}
}

func imports(front string, gateways ...string) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Peers:    []snapshot.Peer{{Name: "c1", Gateways: gateways, Transport: snapshot.Native}},
		Imports:  []snapshot.Import{{Target: target("web"), Listen: []netip.AddrPort{netip.MustParseAddrPort(front)}, From: []string{"c1"}}},
		Policies: everyone(),
	}
}

// open connects and says hello, and wants it back.
func open(t *testing.T, front string) net.Conn {
	t.Helper()
	var conn net.Conn
	conntest.Await(t, "an answer at "+front, func() bool {
		var err error
		if conn, err = net.Dial("tcp", front); err != nil {
			return false
		}
		if hello(conn) {
			return true
		}
		conn.Close()
		return false
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

func hello(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = conn.Write([]byte("hello"))
	b := make([]byte, 5)
	_, err := io.ReadFull(conn, b)
	return err == nil && string(b) == "hello"
}

// Another snapshot changes what may begin and where, and nothing that has begun.
func TestReload(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front, other := port(t), port(t), port(t)
	run(t, gateway.Config{Identity: folders["c1"], Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, exports(echo(t)), nil)
	next := make(chan *snapshot.Snapshot)
	run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, imports(front, peers), next)
	before := open(t, front)
	next <- imports(other, peers)
	open(t, other)
	if conn, err := net.Dial("tcp", front); err == nil {
		conn.Close()
		t.Error("an import that is gone still listens")
	}
	denied := imports(other, peers)
	denied.Policies = nil
	next <- denied
	next <- denied // so that the one before was taken
	if call(t, other) == "hello" {
		t.Error("a policy that is gone still allows")
	}
	if !hello(before) {
		t.Error("a connection is dropped by a reload")
	}
	next <- &snapshot.Snapshot{}
	if !hello(before) {
		t.Error("a connection is dropped with its peer")
	}
}

// With one of a peer's gateways gone, connections take the other.
func TestFailover(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	one, two, front, service := port(t), port(t), port(t), echo(t)
	_, end := start(t, gateway.Config{Identity: folders["c1"], Listen: one, Connections: gateway.Connections{Ahead: 1, Most: 16}}, exports(service), nil)
	run(t, gateway.Config{Identity: folders["c1"], Listen: two, Connections: gateway.Connections{Ahead: 1, Most: 16}}, exports(service), nil)
	importer := observe(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 2, Most: 16}}, imports(front, one, two))
	open(t, front).Close()
	end()
	conntest.Await(t, "a peer that has heard", func() bool { // what begins before is lost
		return importer.status(t).Peers[0].Gateways[0].Connections == 0
	})
	for range 20 {
		if got := call(t, front); got != "hello" {
			t.Errorf("got %q with one gateway gone", got)
		}
	}
}

// A gateway that ends takes no more connections, tells peers so, and lets what is open
// end by itself.
func TestDrain(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	one, two, front, service := port(t), port(t), port(t), echo(t)
	said, end := start(t, gateway.Config{Identity: folders["c1"], Listen: one, Connections: gateway.Connections{Ahead: 1, Most: 16}, Drain: 20 * time.Second}, exports(service), nil)
	run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 2, Most: 16}}, imports(front, one, two), nil)
	before := open(t, front)
	run(t, gateway.Config{Identity: folders["c1"], Listen: two, Connections: gateway.Connections{Ahead: 1, Most: 16}}, exports(service), nil)
	ended := ending(end)
	said.await(t, "draining")
	for range 20 {
		if got := call(t, front); got != "hello" {
			t.Errorf("got %q while one gateway drains", got)
		}
	}
	if !hello(before) {
		t.Error("a connection is dropped by a gateway that drains")
	}
	before.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("it does not end with its last connection")
	}
}

// What is revoked ends, on both sides, within seconds; another certificate of the same
// gateway is taken without a connection lost.
func TestIdentityChanges(t *testing.T) {
	f := identitytest.NewFabric(t)
	exporter, importer := f.Gateway("c1"), f.Gateway("c2")
	peers, front := port(t), port(t)
	said := run(t, gateway.Config{Identity: exporter, Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, exports(echo(t)), nil)
	run(t, gateway.Config{Identity: importer, Connections: gateway.Connections{Ahead: 1, Most: 16}}, imports(front, peers), nil)
	conn := open(t, front)
	f.Renew("c1", exporter)
	said.await(t, "new identity")
	if !hello(conn) {
		t.Error("a connection is dropped by a new certificate")
	}
	open(t, front).Close()
	f.Revoke("c2", exporter, importer)
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection of one who is revoked ends by %v", err)
	}
	said.await(t, "peer refused", identity.ErrRevoked.Error())
	conntest.Await(t, "no answer to who is revoked", func() bool { return call(t, front) != "hello" })
}

// What begins while a gateway of a peer drains goes to another one, also where streams
// share a connection.
func TestDrainLeadsAway(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	one, two, front := port(t), port(t), port(t)
	said, end := start(t, gateway.Config{Identity: folders["c1"], Listen: one, Connections: gateway.Connections{Ahead: 1, Most: 1}, Drain: 20 * time.Second}, exports(echo(t)), nil)
	run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 1}}, imports(front, one, two), nil)
	before := []net.Conn{open(t, front), open(t, front)} // the second shares
	run(t, gateway.Config{Identity: folders["c1"], Listen: two, Connections: gateway.Connections{Ahead: 1, Most: 1}}, exports(answering(t, "other")), nil)
	ended := ending(end)
	said.await(t, "draining")
	conntest.Await(t, "calls that go to no gateway that drains", func() bool { return call(t, front) == "other" })
	for range 20 {
		if got := call(t, front); got != "other" {
			t.Errorf("got %q while one gateway drains", got)
		}
	}
	for _, conn := range before {
		if !hello(conn) {
			t.Error("a connection is dropped by a gateway that drains")
		}
		conn.Close()
	}
	<-ended
}

// A peer that is revoked is called no more, by no connection that is open to it.
func TestCallsNobodyRevoked(t *testing.T) {
	f := identitytest.NewFabric(t)
	exporter, importer := f.Gateway("c1"), f.Gateway("c2")
	peers, front := port(t), port(t)
	run(t, gateway.Config{Identity: exporter, Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 1}}, exports(echo(t)), nil)
	said := run(t, gateway.Config{Identity: importer, Connections: gateway.Connections{Ahead: 1, Most: 1}}, imports(front, peers), nil)
	open(t, front)
	open(t, front) // shares
	f.Revoke("c1", importer)
	said.await(t, "peer refused", identity.ErrRevoked.Error())
	conntest.Await(t, "no call to a peer that is revoked", func() bool { return call(t, front) != "hello" })
}

// A gateway of a peer that falls silent, without a word, is called no more: what begins
// goes to another one, and what went to it before that was known is broken off.
func TestSilentGateway(t *testing.T) {
	quiet.Timed(t)
	folders := identitytest.New(t, "c1", "c2")
	one, two, front := port(t), port(t), port(t)
	run(t, gateway.Config{Identity: folders["c1"], Listen: one}, exports(echo(t)), nil)
	passes, fallSilent := throttle(t, one)
	run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 2, Most: 4}}, imports(front, passes, two), nil)
	open(t, front)
	run(t, gateway.Config{Identity: folders["c1"], Listen: two}, exports(answering(t, "other")), nil)
	conntest.Await(t, "a call of the other gateway", func() bool { return call(t, front) == "other" })
	fallSilent()
	lost := make([]net.Conn, 8)
	for i := range lost {
		lost[i] = conntest.Dial(t, front)
		_, _ = lost[i].Write([]byte("hello"))
	}
	for _, conn := range lost {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := conn.Read(make([]byte, 8)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a connection hangs whose gateway is silent")
		}
	}
	inRow := 0 // on a machine whose cores are taken away the other one is silent at times, too
	conntest.Await(t, "no call to the silent gateway", func() bool {
		inRow++
		if call(t, front) != "other" {
			inRow = 0
		}
		return inRow == 20
	})
}

// throttle passes connections on to an address until it is told to fall silent: then it
// holds what comes, and takes no more.
func throttle(t *testing.T, to string) (address string, fallSilent func()) {
	t.Helper()
	silent, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done) })
	pass := func(to, from net.Conn) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			select {
			case <-silent:
				<-done
			default:
			}
			if err != nil {
				to.Close()
				return
			}
			_, _ = to.Write(buf[:n])
		}
	}
	address = conntest.Listen(t, func(near *net.TCPConn) {
		far, err := net.Dial("tcp", to)
		if err != nil {
			near.Close()
			return
		}
		go pass(far, near)
		pass(near, far)
	})
	return address, sync.OnceFunc(func() { close(silent) })
}

// answering is a service that says one thing to whoever says something.
func answering(t *testing.T, what string) string {
	t.Helper()
	return conntest.Listen(t, func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 16))
		_, _ = conn.Write([]byte(what))
		conn.Close()
	})
}
