package agent

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"skerry.dev/skerry/proxy/capture"
	"skerry.dev/skerry/proxy/dataplane/userspace"
	"skerry.dev/skerry/proxy/dispatch"
	"skerry.dev/skerry/proxy/route"
	"skerry.dev/skerry/proxy/snapshot"
)

// kernel refuses rules for some times.
type kernel struct {
	refuses int
	brought int // how many Services it brings
}

func (k *kernel) Apply(want capture.Wanted) error {
	if k.refuses > 0 {
		k.refuses--
		return errors.New("change rules: no buffer space available")
	}
	k.brought = len(want.Services)
	return nil
}

func (k *kernel) Close() error { return nil }

// What the kernel refuses to bring is tried again each second, and load balancers are told
// meanwhile to send nobody.
func TestKernelRefuses(t *testing.T) {
	key := snapshot.Key{Namespace: "default", Name: "web"}
	rules := &kernel{refuses: 2}
	a := &agent{
		Config: Config{Port: 4480}, log: slog.New(slog.NewTextHandler(t.Output(), nil)), rules: rules,
		table:  dispatch.NewTable("n1", func() time.Duration { return 0 }),
		health: &health{answers: map[snapshot.Key]*answer{key: {service: key, port: 31000}}},
	}
	a.change(snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{key: {
		Key: key, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.5")}, HealthPort: 31000,
		Ports: []snapshot.Port{{Protocol: snapshot.TCP, Port: 80, Endpoints: []snapshot.Endpoint{{Addr: netip.MustParseAddrPort("10.1.0.11:80"), Node: "n1", Ready: true}}}},
	}}})
	for second, want := range []struct{ brought, status int }{{0, http.StatusServiceUnavailable}, {0, http.StatusServiceUnavailable}, {1, http.StatusOK}} {
		told := httptest.NewRecorder()
		a.health.answers[key].ServeHTTP(told, nil)
		if rules.brought != want.brought || told.Code != want.status || told.Header().Get("X-Load-Balancing-Endpoint-Weight") != "1" {
			t.Errorf("after %d s %d Services are brought, and load balancers are told %d %v %s", second, rules.brought, told.Code, told.Header(), told.Body)
		}
		a.second()
	}
}

// second has a second pass.
func (a *agent) second() {
	for range idleTicks {
		a.tick++
		a.catchUp()
	}
}

// A health check port that another has, as kube-proxy has that of a Service which has just
// opted in, is answered once that one has left it.
func TestHealthPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := snapshot.Key{Namespace: "default", Name: "web"}
	here := netip.MustParseAddr("127.0.0.1")
	a := &agent{
		log: slog.New(slog.NewTextHandler(t.Output(), nil)), rules: &kernel{}, table: dispatch.NewTable("n1", func() time.Duration { return 0 }),
		health: &health{log: slog.New(slog.NewTextHandler(t.Output(), nil)), here: []netip.Addr{here}, answers: map[snapshot.Key]*answer{}},
	}
	defer a.health.close()
	a.change(snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{key: {Key: key, HealthPort: netip.MustParseAddrPort(taken.Addr().String()).Port()}}})
	a.second()
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	a.second()
	if _, err := net.Listen("tcp", taken.Addr().String()); err == nil || a.health.lacking {
		t.Error("nobody answers there")
	}
}

// dns are the ports of a Service of UDP.
var dns = []snapshot.Port{{Protocol: snapshot.UDP, Port: 53, Endpoints: []snapshot.Endpoint{{Addr: netip.MustParseAddrPort("10.1.0.11:53"), Node: "n1", Ready: true}}}}

// A port of UDP that cannot be opened is tried again each second.
func TestFrontRefused(t *testing.T) {
	key := snapshot.Key{Namespace: "default", Name: "dns"}
	ended, opens := plane(t), plane(t)
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	rules := &kernel{}
	a := &agent{
		Config: Config{Here: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}, log: slog.New(slog.NewTextHandler(t.Output(), nil)), rules: rules,
		table: dispatch.NewTable("n1", func() time.Duration { return 0 }), health: &health{}, fronts: map[frontKey]openFront{}, planes: planes{plane: ended},
	}
	a.change(snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{key: {
		Key: key, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.53")}, Ports: dns,
	}}})
	if phase := a.phase.Load(); rules.brought != 0 || phase != behind {
		t.Errorf("what no front takes is brought, and the proxy is %s", phase)
	}
	a.plane = opens
	a.second()
	if phase := a.phase.Load(); rules.brought != 1 || phase != ready {
		t.Errorf("%d ports are brought, and the proxy is %s", rules.brought, phase)
	}
}

// A port of UDP is carried when the address goes that its front was opened for: at once, or
// when the kernel takes the change, and as before until then.
func TestFrontOfAnotherAddress(t *testing.T) {
	key := snapshot.Key{Namespace: "default", Name: "dns"}
	front := frontKey{key, 53, route.ExternalIP}
	rules := &kernel{}
	a := &agent{
		Config: Config{Here: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}, log: slog.New(slog.NewTextHandler(t.Output(), nil)), rules: rules,
		table: dispatch.NewTable("n1", func() time.Duration { return 0 }), health: &health{}, fronts: map[frontKey]openFront{}, planes: planes{plane: plane(t)},
	}
	serve := func(at string) {
		a.change(snapshot.Change{Services: map[snapshot.Key]*snapshot.Service{key: {
			Key: key, ExternalIPs: []netip.Addr{netip.MustParseAddr(at)}, Ports: dns,
		}}})
	}
	serve("192.0.2.1")
	first := a.fronts[front]
	rules.refuses = 1
	serve("192.0.2.2")
	if got := a.fronts[front]; got != first {
		t.Errorf("the kernel brings as before, and the front is of %s", got.target)
	}
	a.second()
	if got := a.fronts[front]; got.target.String() != "192.0.2.2:53" || got.port != first.port || len(a.fronts) != 1 {
		t.Errorf("the address has changed, and the front is of %s", got.target)
	}
}

// plane is one of the loopback.
func plane(t *testing.T) *userspace.Plane {
	t.Helper()
	p, err := userspace.New(userspace.Config{Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Loops: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() }) // once more does nothing
	return p
}
