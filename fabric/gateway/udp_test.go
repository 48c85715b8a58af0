package gateway_test

import (
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

// udpTarget is a service's port 53.
func udpTarget(name string) transport.Target {
	return transport.Target{Namespace: "default", Name: name, Port: 53, Protocol: transport.UDP}
}

// udpEcho is a service that says back what it hears, behind its own name.
func udpEcho(t *testing.T, name string) string {
	t.Helper()
	return conntest.Datagrams(t, func(said []byte, _ net.Addr) []byte { return append([]byte(name), said...) })
}

// whoami is a service that says who has asked.
func whoami(t *testing.T) string {
	t.Helper()
	return conntest.Datagrams(t, func(_ []byte, from net.Addr) []byte { return []byte(from.String()) })
}

// udpPort is an address at which nobody listens, of an IP address.
func udpPort(t *testing.T, host string) string {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, number, _ := net.SplitHostPort(conn.LocalAddr().String())
	return net.JoinHostPort(host, number)
}

func udpExports(backends ...string) *snapshot.Snapshot {
	return &snapshot.Snapshot{Exports: []snapshot.Export{{Target: udpTarget("dns"), Backends: backends}}, Policies: everyone()}
}

func udpImports(front string, gateways ...string) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Peers:    []snapshot.Peer{{Name: "c1", Gateways: gateways, Transport: snapshot.Native}},
		Imports:  []snapshot.Import{{Target: udpTarget("dns"), Listen: []netip.AddrPort{netip.MustParseAddrPort(front)}, From: []string{"c1"}}},
		Policies: everyone(),
	}
}

// ask says something until it is answered, and gives the answer.
func ask(t *testing.T, conn net.Conn, what string) string {
	t.Helper()
	b := make([]byte, 1<<16)
	got := ""
	if !conntest.Eventually(func() bool {
		_, _ = conn.Write([]byte(what))
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		n, err := conn.Read(b)
		got = string(b[:n])
		return err == nil
	}) {
		t.Errorf("no answer to %d bytes from %s", len(what), conn.RemoteAddr())
	}
	return got
}

// silent says whether something is not answered, said a few times.
func silent(conn net.Conn) bool {
	for range 5 {
		_, _ = conn.Write([]byte("x"))
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 100)); err == nil {
			return false
		}
	}
	return true
}

func dialUDP(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A client asks a service of another cluster by UDP, at IPv4 and IPv6, and at a front
// that listens at all addresses is answered from the one that it has asked.
func TestUDP(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers := port(t)
	run(t, gateway.Config{Identity: folders["c1"], Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpExports(udpEcho(t, "a")), nil)
	for _, c := range []struct{ listen, ask string }{
		{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.2"}, {"0.0.0.0", "127.0.0.3"}, {"::1", "::1"}, {"::", "::1"}, {"::", "127.0.0.2"},
	} {
		front := udpPort(t, c.listen)
		run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpImports(front, peers), nil)
		_, number, _ := net.SplitHostPort(front)
		if got := ask(t, dialUDP(t, net.JoinHostPort(c.ask, number)), "hello"); got != "ahello" {
			t.Errorf("at %s asked at %s: got %q", c.listen, c.ask, got)
		}
	}
}

// What is said by UDP is seen as connections are: while it goes on, in the metrics and the status
// of both ends, and when it is over, or was refused by either, in their records.
func TestUDPObserved(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front, next := port(t), udpPort(t, "127.0.0.1"), make(chan *snapshot.Snapshot)
	exporting := udpExports(udpEcho(t, "a"))
	exporting.Exports = append(exporting.Exports, snapshot.Export{Target: udpTarget("gone"), Backends: []string{udpPort(t, "127.0.0.1")}})
	exporter := observe(t, gateway.Config{Identity: folders["c1"], Listen: peers}, exporting)
	config := gateway.Config{Identity: folders["c2"], Admin: port(t), Flows: filepath.Join(t.TempDir(), "flows"), Connections: gateway.Connections{Ahead: 1, Most: 16}}
	importing := udpImports(front, peers)
	importer := seen{run(t, config, importing, next), config.Admin, config.Flows}
	importer.said.await(t, "datagrams connected")
	if got := ask(t, dialUDP(t, front), "hello"); got != "ahello" {
		t.Fatalf("got %q", got)
	}
	for who, d := range map[seen]string{importer: "import", exporter: "export"} {
		labels := `{direction="` + d + `",peer="` + map[string]string{"import": "c1", "export": "c2"}[d] + `"} 1` + "\n"
		conntest.Await(t, "an open flow in the metrics of the "+d, func() bool { return who.has(t, "streams"+labels, "streams_opened_total"+labels) })
	}
	now := importer.status(t)
	if g := now.Peers[0].Gateways; len(g) != 2 || g[0].Streams != 0 || g[1].Transport != admin.Datagram || g[1].Address != peers {
		t.Fatalf("got %+v", g)
	}
	links := []admin.Link{now.Peers[0].Gateways[1].Link}
	for _, c := range exporter.status(t).Callers {
		if c.Transport == admin.Datagram && c.Gateway == "c2/g1" {
			links = append(links, c.Link)
		}
	}
	for i, l := range links {
		if len(links) != 2 || l.State != transport.Up || l.Streams != 1 || l.Connections != 1 || l.Idle != 0 || l.RTTNs <= 0 || l.MinRTTNs <= 0 || l.Segments == 0 || l.SentBytesPerSecond <= 0 || l.ReceivedBytesPerSecond <= 0 {
			t.Errorf("%d of %d: got %+v", i, len(links), l)
		}
	}
	next <- &snapshot.Snapshot{Peers: importing.Peers, Policies: importing.Policies}
	for who, d := range map[seen]flow.Direction{importer: flow.Import, exporter: flow.Export} {
		r := who.record(t, "dns")
		if r.Direction != d || r.Verdict != flow.Allowed || r.Policy != "all" || r.ToServiceBytes%5 != 0 || r.ToClientBytes == 0 || r.ToClientBytes%6 != 0 || r.OpenNs == 0 || r.FirstByteNs == 0 || r.TotalNs < r.FirstByteNs {
			t.Errorf("%s: got %+v", d, r)
		}
		if (r.Client != "") != (d == flow.Import) || r.From[policy.Cluster] != "c2" || r.Cluster != "c1" {
			t.Errorf("%s: got %+v", d, r)
		}
	}
	for _, c := range []struct {
		service     string
		policies    []policy.Policy
		here, there flow.Verdict
	}{
		{"gone", everyone(), flow.Refused, flow.Refused},
		{"none", everyone(), flow.Refused, flow.Refused},
		{"forbidden", nil, flow.Denied, ""},
	} {
		s := udpImports(front, peers)
		s.Imports[0].Target, s.Policies = udpTarget(c.service), c.policies
		next <- s
		client := dialUDP(t, front)
		said := func(who seen, v flow.Verdict) bool {
			r := who.last(t, c.service)
			return r != nil && r.Verdict == v && r.Why != "" && r.ToClientBytes == 0
		}
		conntest.Await(t, "records of "+c.service, func() bool {
			_, _ = client.Write([]byte("x")) // there may be no connection yet
			return said(importer, c.here) && (c.there == "" || said(exporter, c.there))
		})
	}
}

// A gateway of a peer that UDP does not reach is told, since when and why, and so is one that it
// reaches again.
func TestUDPUnreachable(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	stranger := identitytest.New(t, "c2")["c2"] // of another fabric
	peers := port(t)
	importer := observe(t, gateway.Config{Identity: folders["c2"]}, udpImports(udpPort(t, "127.0.0.1"), peers))
	lost := observe(t, gateway.Config{Identity: stranger}, udpImports(udpPort(t, "127.0.0.1"), peers))
	state := func(who seen) admin.Gateway { return who.status(t).Peers[0].Gateways[1] }
	down := func(who seen) func() bool {
		return func() bool {
			g := state(who)
			return g.State == transport.Down && g.Why != "" && g.SinceNs > 0
		}
	}
	conntest.Await(t, "a peer that is not there", down(importer))
	_, end := start(t, gateway.Config{Identity: folders["c1"], Listen: peers}, udpExports(udpEcho(t, "a")), nil)
	conntest.Await(t, "a peer that is there", func() bool { return state(importer).State == transport.Up })
	failed := state(lost).DialsFailed
	conntest.Await(t, "dials that the peer refuses", func() bool { // it is not now here, now there
		if !down(lost)() {
			t.Errorf("got %+v", state(lost))
		}
		return state(lost).DialsFailed >= failed+3
	})
	end()
	conntest.Await(t, "a peer that is gone", down(importer))
}

// A backend that is gone is told by ICMP: its flow ends, is not tried again at once, and
// the client's next takes another backend.
func TestUDPBackendGone(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front := port(t), udpPort(t, "127.0.0.1")
	run(t, gateway.Config{Identity: folders["c1"], Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpExports(udpPort(t, "127.0.0.1"), udpEcho(t, "a")), nil)
	said := run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpImports(front, peers), nil)
	for range 2 { // by turns, one of them begins with the one that is gone
		if got := ask(t, dialUDP(t, front), "hello"); got != "ahello" {
			t.Errorf("got %q", got)
		}
	}
	said.await(t, "flow refused", "default/dns:53/udp", "no backend accepts")
}

// A client's address has so many flows, and of more the one gives way that was silent for
// the longest: what it says next is another flow.
func TestUDPClientFlows(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front := port(t), udpPort(t, "127.0.0.1")
	run(t, gateway.Config{Identity: folders["c1"], Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpExports(whoami(t)), nil)
	run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpImports(front, peers), nil)
	const most = 1024
	var clients []net.Conn
	var seen []string
	for range most {
		clients = append(clients, dialUDP(t, front))
		seen = append(seen, ask(t, clients[len(clients)-1], "hello"))
	}
	again := func(i int) bool { return ask(t, clients[i], "hello") == seen[i] }
	if !again(0) {
		t.Error("a flow ends though there are not too many")
	}
	ask(t, dialUDP(t, front), "hello")
	if !again(0) || again(1) || !again(2+most/2) {
		t.Error("not the flow that was silent for the longest gives way")
	}
}

// Another snapshot ends flows that it does not allow, at both ends, and those of imports
// that are gone.
func TestUDPReload(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front, other := port(t), udpPort(t, "127.0.0.1"), udpPort(t, "127.0.0.1")
	exporter, importer := make(chan *snapshot.Snapshot), make(chan *snapshot.Snapshot)
	exported := udpExports(udpEcho(t, "a"))
	said := run(t, gateway.Config{Identity: folders["c1"], Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, exported, exporter)
	run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpImports(front, peers), importer)
	conn := dialUDP(t, front)
	ask(t, conn, "hello")

	denied := udpImports(front, peers)
	denied.Policies = nil
	importer <- denied
	importer <- denied // so that the one before was taken
	if !silent(conn) {
		t.Error("a policy that is gone at the importer still allows")
	}
	importer <- udpImports(front, peers)
	ask(t, conn, "hello")

	exporter <- &snapshot.Snapshot{Exports: exported.Exports}
	exporter <- &snapshot.Snapshot{Exports: exported.Exports}
	if !silent(conn) {
		t.Error("a policy that is gone at the exporter still allows")
	}
	said.await(t, "default/dns:53/udp", "denied: no policy selects it")
	exporter <- exported
	ask(t, conn, "hello")

	importer <- udpImports(other, peers)
	importer <- udpImports(other, peers)
	if !silent(conn) {
		t.Error("an import that is gone still answers")
	}
	ask(t, dialUDP(t, other), "hello")
}

// Where policies do not allow it or nothing is exported, each side says why.
func TestUDPRefused(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers := port(t)
	exported := udpExports(udpEcho(t, "a"))
	exported.Exports = append(exported.Exports, snapshot.Export{Target: udpTarget("secret"), Backends: []string{udpEcho(t, "s")}})
	exported.Policies = allow(is(policy.Cluster, "c2"), policy.Requirement{Key: policy.Service, Operator: policy.NotIn, Values: []string{"secret"}})
	exporter := run(t, gateway.Config{Identity: folders["c1"], Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, exported, nil)
	front, secret := udpPort(t, "127.0.0.1"), udpPort(t, "127.0.0.1")
	imported := udpImports(front, peers)
	imported.Imports = append(imported.Imports, snapshot.Import{Target: udpTarget("secret"), Listen: []netip.AddrPort{netip.MustParseAddrPort(secret)}, From: []string{"c1"}})
	importer := run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, imported, nil)
	ask(t, dialUDP(t, front), "hello")
	if !silent(dialUDP(t, secret)) {
		t.Error("what is denied is answered")
	}
	for who, why := range map[*log]string{exporter: "denied: no policy selects it", importer: "denied by policy"} {
		who.await(t, "default/secret:53/udp", why)
	}
}

// With one of a peer's gateways gone, or ending, new flows take the other; those that
// are open at one that ends go on.
func TestUDPFailover(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	one, two, front := port(t), port(t), udpPort(t, "127.0.0.1")
	_, end := start(t, gateway.Config{Identity: folders["c1"], Listen: one, Connections: gateway.Connections{Ahead: 1, Most: 16}, Drain: time.Minute}, udpExports(udpEcho(t, "a")), nil)
	said := run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpImports(front, one, two), nil)
	before := dialUDP(t, front)
	ask(t, before, "hello")
	_, _ = before.Write(make([]byte, 9601)) // which the log is to tell of
	run(t, gateway.Config{Identity: folders["c1"], Listen: two, Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpExports(udpEcho(t, "b")), nil)
	ended := ending(end)
	conntest.Await(t, "a new flow that takes the other gateway", func() bool {
		conn := dialUDP(t, front)
		defer conn.Close()
		return ask(t, conn, "hello") == "bhello"
	})
	if got := ask(t, before, "hello"); got != "ahello" {
		t.Errorf("got %q at the gateway that ends", got)
	}
	before.Close()
	select {
	case <-ended:
	case <-time.After(50 * time.Second):
		t.Error("it does not end with its last flow")
	}
	if got := ask(t, dialUDP(t, front), "hello"); got != "bhello" {
		t.Errorf("got %q with one gateway gone", got)
	}
	said.await(t, "datagrams dropped", "long=1")
}

// A new flow takes the gateway whose round trip is the shortest, in whatever order they are.
func TestUDPNearest(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	one, two, front := port(t), port(t), udpPort(t, "127.0.0.1")
	far := conntest.Relay(t, one, 40*time.Millisecond, 1<<16)
	run(t, gateway.Config{Identity: folders["c1"], Listen: one}, udpExports(udpEcho(t, "far ")), nil)
	run(t, gateway.Config{Identity: folders["c2"]}, udpImports(front, far, two), nil)
	conntest.Await(t, "the only gateway", func() bool { return ask(t, dialUDP(t, front), "hello") == "far hello" })
	run(t, gateway.Config{Identity: folders["c1"], Listen: two}, udpExports(udpEcho(t, "near ")), nil)
	conntest.Await(t, "the nearest gateway", func() bool { return ask(t, dialUDP(t, front), "hello") == "near hello" })
	for range 10 {
		if got := ask(t, dialUDP(t, front), "hello"); got != "near hello" {
			t.Errorf("got %q", got)
		}
	}
}

// Flows of who is revoked end within seconds, and no others begin.
func TestUDPRevoked(t *testing.T) {
	f := identitytest.NewFabric(t)
	exporter, importer := f.Gateway("c1"), f.Gateway("c2")
	peers, front := port(t), udpPort(t, "127.0.0.1")
	said := run(t, gateway.Config{Identity: exporter, Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpExports(udpEcho(t, "a")), nil)
	run(t, gateway.Config{Identity: importer, Connections: gateway.Connections{Ahead: 1, Most: 16}}, udpImports(front, peers), nil)
	conn := dialUDP(t, front)
	ask(t, conn, "hello")
	f.Revoke("c2", exporter)
	conntest.Await(t, "silence to who is revoked", func() bool { return silent(conn) })
	said.await(t, "peer refused", "c2/g1", identity.ErrRevoked.Error())
}
