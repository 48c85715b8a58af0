package agent

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/proxy/dispatch"
	"skerry.dev/skerry/proxy/snapshot"
)

// health answers load balancers at the health check ports of Services whose external
// traffic stays local: 200 where this node has endpoints, 503 where it has none or where
// the kernel does not bring what it should, as kube-proxy does.
type health struct {
	log     *slog.Logger
	here    []netip.Addr
	answers map[snapshot.Key]*answer
	lacking bool // a port could not be had
}

// answer is what one Service's port answers.
type answer struct {
	service snapshot.Key
	port    uint16
	local   atomic.Int64
	brought atomic.Bool
	servers []*http.Server // none where the port could not be had
}

// set has the ports of these Services answered, and no others. A port that cannot be had, such
// as that of a Service which kube-proxy is just leaving, is told once and tried each time.
func (h *health) set(want map[snapshot.Key]dispatch.Health, brought bool) {
	for key, a := range h.answers {
		if w, ok := want[key]; !ok || w.Port != a.port {
			a.stop()
			delete(h.answers, key)
		}
	}
	h.lacking = false
	for key, w := range want {
		a, tried := h.answers[key]
		if !tried {
			a = &answer{service: key, port: w.Port}
			h.answers[key] = a
		}
		a.local.Store(int64(w.Local))
		a.brought.Store(brought)
		if len(a.servers) == 0 {
			if err := a.start(h.here); err != nil {
				a.stop()
				h.lacking = true
				if !tried {
					h.log.Error("a health check port is not answered", "service", key, "port", w.Port, "reason", err)
				}
			}
		}
	}
}

// close ends all.
func (h *health) close() { h.set(nil, false) }

// headerTime is how long a load balancer may take to ask.
const headerTime = 5 * time.Second

// start answers at all of this node's addresses, as node ports do, of the families of some.
func (a *answer) start(here []netip.Addr) error {
	for _, at := range here {
		network := "tcp4"
		if at.Is6() {
			network = "tcp6"
		}
		l, err := net.ListenTCP(network, &net.TCPAddr{Port: int(a.port)})
		if err != nil {
			return err
		}
		s := &http.Server{Handler: a, ReadHeaderTimeout: headerTime}
		a.servers = append(a.servers, s)
		go func() { _ = s.Serve(l) }() // it ends by stop
	}
	return nil
}

func (a *answer) stop() {
	for _, s := range a.servers {
		_ = s.Close()
	}
	a.servers = nil
}

// ServeHTTP implements http.Handler, in kube-proxy's words.
func (a *answer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	local, brought := a.local.Load(), a.brought.Load()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.FormatInt(local, 10))
	if local == 0 || !brought {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // who has gone need not know
		"service":             map[string]string{"namespace": a.service.Namespace, "name": a.service.Name},
		"localEndpoints":      local,
		"serviceProxyHealthy": brought,
	})
}
