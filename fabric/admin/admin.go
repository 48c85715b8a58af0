// Package admin is what an operator asks of a gateway that runs: metrics for Prometheus,
// whether it serves, its status, and profiles. It answers on the loopback alone, by HTTP
// without a key, and changes nothing. Start at Handler for what is answered, at Fetch for
// who asks.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Paths.
const (
	metricsPath = "/metrics"
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	statusPath  = "/v1/status"
	pprofPath   = "/debug/pprof/"
)

const (
	headerTime = 5 * time.Second
	headerMax  = 16 << 10
	fetchTime  = 10 * time.Second
	// statusMax bounds a status that is read.
	statusMax = 64 << 20
)

// ErrAnywhere says that others than this machine could ask.
var ErrAnywhere = errors.New("not an address of the loopback")

// CheckAddress says what is wrong with an address to answer at.
func CheckAddress(address string) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the admin address %q is no ADDRESS:PORT, such as 127.0.0.1:4440", address)
	}
	if !a.Addr().IsLoopback() {
		return fmt.Errorf("the admin address %s is %w: who can ask there learns of all flows, and can profile", address, ErrAnywhere)
	}
	return nil
}

// Handler answers by what these say now.
func Handler(metrics prometheus.Gatherer, phase func() Phase, status func() *Status) http.Handler {
	m := http.NewServeMux()
	m.Handle("GET "+metricsPath, promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	answer := func(w http.ResponseWriter, now Phase, good bool) {
		if !good {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintln(w, now) // who has gone need not know
	}
	m.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) {
		now := phase()
		answer(w, now, now == Serving || now == Ready)
	})
	m.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, _ *http.Request) {
		now := phase()
		answer(w, now, now == Ready)
	})
	m.HandleFunc("GET "+statusPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status())
	})
	m.HandleFunc(pprofPath, pprof.Index)
	m.HandleFunc(pprofPath+"cmdline", pprof.Cmdline)
	m.HandleFunc(pprofPath+"profile", pprof.Profile)
	m.HandleFunc(pprofPath+"symbol", pprof.Symbol)
	m.HandleFunc(pprofPath+"trace", pprof.Trace)
	return m
}

// Serve answers until the context ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, MaxHeaderBytes: headerMax}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Fetch asks the gateway that answers at an address for its status.
func Fetch(ctx context.Context, address string) (*Status, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+statusPath, nil)
	if err != nil {
		return nil, err
	}
	answer, err := (&http.Transport{Proxy: nil}).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: it is no gateway", address, answer.Status)
	}
	s := &Status{}
	if err := json.NewDecoder(io.LimitReader(answer.Body, statusMax)).Decode(s); err != nil {
		return nil, fmt.Errorf("%s answers what is no status: %w", address, err)
	}
	return s, nil
}
