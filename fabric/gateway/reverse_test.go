package gateway_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport/native"
	"skerry.dev/skerry/internal/conntest"
)

// reversed are a gateway of c1 that nobody can call, which opens connections to peers, and the
// one of c2 that calls by them.
func reversed(folders map[string]string, peers string, offering *snapshot.Snapshot) (hidden, caller gateway.Config) {
	offering.Peers = []snapshot.Peer{{Name: "c2", Transport: snapshot.Native, Gateways: []string{peers}, Reverse: true}}
	hidden = gateway.Config{Identity: folders["c1"], Connections: gateway.Connections{Ahead: 1, Most: 2}}
	caller = gateway.Config{Identity: folders["c2"], Listen: peers, Connections: gateway.Connections{Ahead: 2, Most: 4}}
	return hidden, caller
}

// A cluster that nobody can call opens the connections for what its peers call; it comes
// back after it was away, and so do they.
func TestReverse(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front, service := port(t), port(t), echo(t)
	offering := exports(service)
	hidden, caller := reversed(folders, peers, offering)
	hears := func(what string) {
		t.Helper()
		conntest.Await(t, "an answer "+what, func() bool { return call(t, front) == "hello" })
	}
	said, endHidden := start(t, hidden, offering, nil)
	said.await(t, "peer cannot be offered a connection", "refused")
	_, endCaller := start(t, caller, imports(front), nil)
	hears("at first")
	open(t, front)
	open(t, front)
	open(t, front)
	open(t, front) // shares
	hears("beside others")
	endHidden()
	_, endHidden = start(t, hidden, offering, nil)
	hears("after the hidden gateway was away")
	endCaller()
	_, endCaller = start(t, caller, imports(front), nil)
	hears("after the calling gateway was away")
	endHidden()
	endCaller()
}

// Who is revoked is called no more by connections that he has opened before.
func TestReverseRevoked(t *testing.T) {
	f := identitytest.NewFabric(t)
	hidden, caller := f.Gateway("c1"), f.Gateway("c2")
	peers, front := port(t), port(t)
	offering := exports(echo(t))
	offering.Peers = []snapshot.Peer{{Name: "c2", Transport: snapshot.Native, Gateways: []string{peers}, Reverse: true}}
	run(t, gateway.Config{Identity: caller, Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 1}}, imports(front), nil)
	run(t, gateway.Config{Identity: hidden, Connections: gateway.Connections{Ahead: 1, Most: 1}}, offering, nil)
	conntest.Await(t, "an answer", func() bool { return call(t, front) == "hello" })
	f.Revoke("c1", caller)
	conntest.Await(t, "a peer that is revoked to be called no more", func() bool { return call(t, front) != "hello" })
}

// Connections that nobody wants are bounded, and a cluster that is no peer offers none.
func TestOffersRefused(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2", "c3")
	peers, front := port(t), port(t)
	said := run(t, gateway.Config{Identity: folders["c2"], Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 1}}, imports(front), nil)
	offer := func(cluster string) *tls.Conn {
		t.Helper()
		store, err := identity.Open(folders[cluster])
		if err != nil {
			t.Fatal(err)
		}
		var conn *tls.Conn
		conntest.Await(t, "a connection of "+cluster, func() bool {
			conn, err = native.Offer(context.Background(), peers, store.Client("c2"))
			return err == nil
		})
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	stranger := offer("c3")
	_ = stranger.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := stranger.Read(make([]byte, 1)); err == nil {
		t.Error("a stranger's connection is wanted")
	}
	said.await(t, "peer refused", "that is no peer")
	for range 3 * native.OffersMost {
		offer("c1")
	}
	said.await(t, "peer refused", "that nobody wants")
}

// UDP is carried from a cluster that nobody can call, too; it comes back after either side
// was away, and is refused once the gateway is revoked.
func TestReverseUDP(t *testing.T) {
	f := identitytest.NewFabric(t)
	folders := map[string]string{"c1": f.Gateway("c1"), "c2": f.Gateway("c2")}
	peers, front := port(t), udpPort(t, "127.0.0.1")
	offering := udpExports(udpEcho(t, "a"))
	hidden, caller := reversed(folders, peers, offering)
	hears := func(what string) {
		t.Helper()
		if got := ask(t, dialUDP(t, front), what); got != "a"+what {
			t.Errorf("%s: got %q", what, got)
		}
	}
	_, endHidden := start(t, hidden, offering, nil)
	_, endCaller := start(t, caller, udpImports(front), nil)
	hears("at first")
	endHidden()
	_, endHidden = start(t, hidden, offering, nil)
	hears("after the hidden gateway was away")
	endCaller()
	_, endCaller = start(t, caller, udpImports(front), nil)
	hears("after the calling gateway was away")
	f.Revoke("c1", folders["c2"])
	conn := dialUDP(t, front)
	conntest.Await(t, "a gateway that is revoked to be called no more", func() bool { return silent(conn) })
	endHidden()
	endCaller()
}
