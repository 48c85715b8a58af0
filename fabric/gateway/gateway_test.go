package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/gateway"
	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/conntest"
)

// log is what gateways have said.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// has says whether there is a line that has all of the parts.
func (l *log) has(parts ...string) bool {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}

// await waits for such a line.
func (l *log) await(t testing.TB, parts ...string) {
	t.Helper()
	if !conntest.Eventually(func() bool { return l.has(parts...) }) {
		t.Fatalf("no line of %q in\n%s", parts, l)
	}
}

// run runs a gateway until the test ends.
func run(t *testing.T, config gateway.Config, s *snapshot.Snapshot, next <-chan *snapshot.Snapshot) *log {
	t.Helper()
	said, end := start(t, config, s, next)
	t.Cleanup(end)
	return said
}

// start runs a gateway until it is ended.
func start(t testing.TB, config gateway.Config, s *snapshot.Snapshot, next <-chan *snapshot.Snapshot) (said *log, end func()) {
	t.Helper()
	said = &log{}
	g, err := gateway.New(config, slog.New(slog.NewTextHandler(said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx, s, next) }()
	return said, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// ending ends a gateway meanwhile.
func ending(end func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		end()
		close(ended)
	}()
	return ended
}

// echo is a service that says back what it hears, at the address that it gives.
func echo(t testing.TB) string {
	t.Helper()
	return conntest.Listen(t, conntest.Echo)
}

// target is a service's port 80.
func target(name string) transport.Target {
	return transport.Target{Namespace: "default", Name: name, Port: 80, Protocol: transport.TCP}
}

// port is an address that nobody listens at, nor will: each has a loopback address of its
// own, for at 127.0.0.1 the kernel may give the port away again.
func port(t testing.TB) string {
	t.Helper()
	alone := netip.AddrFrom4([4]byte{127, byte(1 + rand.N(254)), byte(rand.N(256)), byte(1 + rand.N(254))})
	l, err := net.Listen("tcp", netip.AddrPortFrom(alone, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func allow(from, to policy.Requirement) []policy.Policy {
	return []policy.Policy{{Name: "p", From: []policy.Selector{{from}}, To: []policy.Selector{{to}}}}
}

func is(key, value string) policy.Requirement {
	return policy.Requirement{Key: key, Operator: policy.In, Values: []string{value}}
}

// A client of one cluster calls a service of another where the policies of both allow
// it; each side says why it does not.
func TestGateways(t *testing.T) {
	service := echo(t)
	folders := identitytest.New(t, "c1", "c2")
	c1 := port(t)
	exporter := run(t, gateway.Config{Identity: folders["c1"], Listen: c1, Connections: gateway.Connections{Ahead: 1, Most: 16}}, &snapshot.Snapshot{
		Exports:  []snapshot.Export{{Target: target("web"), Backends: []string{service}}, {Target: target("dead"), Backends: []string{port(t)}}},
		Policies: allow(is(policy.Cluster, "c2"), policy.Requirement{Key: policy.Service, Operator: policy.NotIn, Values: []string{"secret"}}),
	}, nil)
	fronts := map[string]string{}
	var imports []snapshot.Import
	for _, name := range []string{"web", "dead", "secret", "none", "forbidden"} {
		fronts[name] = port(t)
		imports = append(imports, snapshot.Import{Target: target(name), Listen: []netip.AddrPort{netip.MustParseAddrPort(fronts[name])}, From: []string{"c1"}})
	}
	importer := run(t, gateway.Config{Identity: folders["c2"], Connections: gateway.Connections{Ahead: 1, Most: 16}}, &snapshot.Snapshot{
		Peers: []snapshot.Peer{{Name: "c1", Gateways: []string{c1}}}, Imports: imports,
		Policies: allow(is(policy.Cluster, "c2"), policy.Requirement{Key: policy.Service, Operator: policy.NotIn, Values: []string{"forbidden"}}),
	}, nil)
	for _, c := range []struct{ name, exporter, importer string }{
		{"web", "", ""},
		{"dead", "connection refused", "no backend accepts"},
		{"secret", "denied: no policy selects it", "denied by policy"},
		{"none", "no such service", "no such service"},
		{"forbidden", "", "denied: no policy selects it"},
	} {
		got := call(t, fronts[c.name])
		if (got == "hello") != (c.importer == "") {
			t.Errorf("%s: got %q", c.name, got)
		}
		for who, said := range map[*log]string{exporter: c.exporter, importer: c.importer} {
			if said != "" {
				who.await(t, "default/"+c.name+":80", said)
			}
		}
	}
}

// call says hello, and gives what comes back.
func call(t *testing.T, address string) string {
	t.Helper()
	conn := reach(t, net.Dialer{}, address)
	defer conn.Close()
	_, _ = conn.Write([]byte("hello"))
	b := make([]byte, 5)
	n, _ := io.ReadFull(conn, b)
	return string(b[:n])
}

// reach connects to who listens, or will.
func reach(t *testing.T, from net.Dialer, address string) (conn net.Conn) {
	t.Helper()
	conntest.Await(t, "who listens at "+address, func() bool {
		var err error
		conn, err = from.Dial("tcp", address)
		return err == nil
	})
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}
