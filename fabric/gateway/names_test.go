package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"

	"skerry.dev/skerry/fabric/dns"
	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/internal/conntest"
)

// portOf is a port of a host that nobody listens at.
func portOf(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("needs the address %s: %v", host, err)
	}
	defer l.Close()
	return l.Addr().String()
}

// naming is a service that answers each connection by a word, at the address that it
// gives, until the function ends it.
func naming(t *testing.T, host string, word func(net.Conn) string, wrap func(net.Listener) net.Listener) (address string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("needs the address %s: %v", host, err)
	}
	t.Cleanup(func() { l.Close() })
	go conntest.Accept(wrap(l), func(conn net.Conn) {
		_, _ = io.WriteString(conn, word(conn))
		conn.Close()
	})
	return l.Addr().String(), func() { l.Close() }
}

func asIs(l net.Listener) net.Listener { return l }

// heard is what an import's service says to a client at an address.
func heard(t *testing.T, from, front string) (word, client string) {
	t.Helper()
	conn := reach(t, net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}, front)
	defer conn.Close()
	said, _ := io.ReadAll(conn)
	return string(said), conn.LocalAddr().String()
}

// serving runs a gateway until the test ends, and returns when peers can call it.
func serving(t *testing.T, identity, peers string, s *snapshot.Snapshot) *log {
	t.Helper()
	said := run(t, gateway.Config{Identity: identity, Listen: peers, Connections: gateway.Connections{Ahead: 1, Most: 16}}, s, nil)
	reach(t, net.Dialer{}, peers).Close()
	return said
}

// All parts have addresses of IPv6, a peer one with a zone, and an import listens at one of each family; a
// service that asks for it is told the client's address, by both transports.
func TestIPv6AndProxyProtocol(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	service, _ := naming(t, "::1", func(conn net.Conn) string { return conn.RemoteAddr().String() }, func(l net.Listener) net.Listener {
		return &proxyproto.Listener{Listener: l}
	})
	for _, by := range snapshot.Transports() {
		peers, six, four := portOf(t, "::1"), portOf(t, "::1"), portOf(t, "127.0.0.1")
		exported := exports(service)
		exported.Exports[0].ProxyProtocol = true
		serving(t, folders["c1"], peers, exported)
		imported := imports(six, strings.Replace(peers, "::1", "::1%lo", 1))
		imported.Peers[0].Transport = by
		imported.Imports[0].Listen = append(imported.Imports[0].Listen, netip.MustParseAddrPort(four))
		run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, imported, nil)
		for front, from := range map[string]string{six: "::1", four: "127.0.0.3"} {
			if got, client := heard(t, from, front); got != client {
				t.Errorf("%s: the service sees %q, want %s", by, got, client)
			}
		}
	}
}

// A host's name stands for all of its addresses, of gateways and of backends: a
// connection is by one that accepts, of whichever family.
func TestHostNames(t *testing.T) {
	const name = "host.default.svc.clusterset.local"
	hosts := []string{"127.0.0.2", "127.0.0.3", "::1"}
	names, err := dns.Listen(port(t))
	if err != nil {
		t.Fatal(err)
	}
	host := snapshot.Import{Target: target("host")}
	for _, at := range hosts {
		host.Listen = append(host.Listen, netip.MustParseAddrPort(portOf(t, at)))
	}
	names.Set(dns.NewZone([]snapshot.Import{host}))
	go names.Serve(t.Context())
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Resolver: before}).DialContext(ctx, network, names.Addr())
	}}
	folders := identitytest.New(t, "c1", "c2")
	byName := func(address string) string {
		_, port, _ := net.SplitHostPort(address)
		return net.JoinHostPort(name, port)
	}
	for _, at := range hosts {
		service, _ := naming(t, at, func(net.Conn) string { return at }, asIs)
		peers, front := portOf(t, at), port(t)
		serving(t, folders["c1"], peers, exports(byName(service)))
		run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, imports(front, byName(peers)), nil)
		if got, _ := heard(t, "127.0.0.1", front); got != at {
			t.Errorf("%s: got %q", at, got)
		}
	}
}

// Backends take turns; one that is gone costs no connection.
func TestBackendsTakeTurns(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front := port(t), port(t)
	exported := exports("")
	exported.Exports[0].Backends = nil
	var ends []func()
	for i := range 3 {
		address, end := naming(t, "127.0.0.1", func(net.Conn) string { return fmt.Sprint(i) }, asIs)
		exported.Exports[0].Backends = append(exported.Exports[0].Backends, address)
		ends = append(ends, end)
	}
	serving(t, folders["c1"], peers, exported)
	run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, imports(front, peers), nil)
	count := func() map[string]int {
		n := map[string]int{}
		for range 6 {
			word, _ := heard(t, "127.0.0.1", front)
			n[word]++
		}
		return n
	}
	if n := count(); n["0"] != 2 || n["1"] != 2 || n["2"] != 2 {
		t.Errorf("got %v", n)
	}
	ends[1]()
	if n := count(); n["0"] == 0 || n["2"] == 0 || n["0"]+n["2"] != 6 {
		t.Errorf("with one gone: got %v", n)
	}
}

// Who a client is, by its address, decides at both ends.
func TestWorkloads(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, front := port(t), port(t)
	service, _ := naming(t, "127.0.0.1", func(net.Conn) string { return "hello" }, asIs)
	exported := exports(service)
	exported.Policies = allow(is(policy.Label+"app", "cart"), is(policy.Service, "web"))
	exporter := serving(t, folders["c1"], peers, exported)
	imported := imports(front, peers)
	imported.Policies = allow(policy.Requirement{Key: policy.Workload, Operator: policy.Exists}, is(policy.Service, "web"))
	imported.Workloads = []snapshot.Workload{
		{Name: "cart", Namespace: "shop", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Labels: map[string]string{"app": "cart"}},
		{Name: "all", Namespace: "shop", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/30")}},
	}
	importer := run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, imported, nil)
	for from, want := range map[string]string{"127.0.0.2": "hello", "127.0.0.3": "", "127.0.0.4": ""} {
		if got, _ := heard(t, from, front); got != want {
			t.Errorf("%s: got %q", from, got)
		}
	}
	exporter.await(t, "denied: no policy selects it")
	importer.await(t, "client=127.0.0.4:", "denied: no policy selects it")
}

// An import's name leads to where the gateway listens for it, as soon as it does.
func TestNames(t *testing.T) {
	folders := identitytest.New(t, "c1", "c2")
	peers, names, front, other := port(t), port(t), portOf(t, "127.0.0.2"), portOf(t, "127.0.0.3")
	serving(t, folders["c1"], peers, exports(echo(t)))
	next := make(chan *snapshot.Snapshot)
	run(t, gateway.Config{Identity: folders["c2"], DNS: names, Connections: gateway.Connections{Ahead: 1, Most: 16}}, imports(front, peers), next)
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, names)
	}}
	for i, want := range []string{front, other} {
		if i > 0 {
			next <- imports(want, peers)
			next <- imports(want, peers) // so that the one before was taken
		}
		host, port, _ := net.SplitHostPort(want)
		var found []string
		if !conntest.Eventually(func() bool { // it listens
			found, _ = resolver.LookupHost(t.Context(), "web.default.svc.clusterset.local")
			return len(found) == 1
		}) || found[0] != host {
			t.Fatalf("got %v, want %s", found, host)
		}
		open(t, net.JoinHostPort(found[0], port)).Close()
	}
}
