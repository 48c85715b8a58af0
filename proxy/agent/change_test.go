package agent

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"skerry.dev/skerry/proxy/capture"
	"skerry.dev/skerry/proxy/dispatch"
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
		for range idleTicks {
			a.tick++
			a.catchUp()
		}
	}
}
