// Package loopback is how an operator asks a program that runs: metrics for Prometheus,
// whether it serves, documents of its own, and profiles. It answers on the loopback
// alone, by HTTP without a key, and changes nothing. Start at Handler for what is
// answered, at Fetch for who asks.
package loopback

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

// Paths that every program has.
const (
	metricsPath = "/metrics"
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	pprofPath   = "/debug/pprof/"
)

const (
	headerTime = 5 * time.Second
	headerMax  = 16 << 10
	fetchTime  = 10 * time.Second
	// documentMax bounds a document that is read.
	documentMax = 64 << 20
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

// Answers are what a program says of itself now.
type Answers struct {
	Metrics prometheus.Gatherer
	// Phase is the word for how it is, with whether it is well, and whether it serves.
	Phase func() (word string, healthy, ready bool)
	// Documents are JSON, by path; nil is none of what the query asks for.
	Documents map[string]func(query func(string) string) any
}

// Handler gives the answers.
func Handler(a Answers) *http.ServeMux {
	m := http.NewServeMux()
	m.Handle("GET "+metricsPath, promhttp.HandlerFor(a.Metrics, promhttp.HandlerOpts{}))
	answer := func(w http.ResponseWriter, word string, good bool) {
		if !good {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintln(w, word) // who has gone need not know
	}
	m.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) {
		word, healthy, _ := a.Phase()
		answer(w, word, healthy)
	})
	m.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, _ *http.Request) {
		word, _, ready := a.Phase()
		answer(w, word, ready)
	})
	for path, document := range a.Documents {
		m.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			d := document(r.URL.Query().Get)
			if d == nil {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(d)
		})
	}
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

// ErrNone is of a document that there is not.
var ErrNone = errors.New("it knows nothing of that")

// Fetch asks the program that answers at an address for a document, by its path and
// query. What is what it is taken for, such as "gateway".
func Fetch(ctx context.Context, address, path, what string, document any) error {
	text, err := Read(ctx, address, path, what)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, document); err != nil {
		return fmt.Errorf("%s answers what is no answer of a %s: %w", address, what, err)
	}
	return nil
}

// Read is Fetch of what is no document, such as a profile, as it comes: 64 MiB at most.
func Read(ctx context.Context, address, path, what string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := (&http.Transport{Proxy: nil, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotFound && answer.Header.Get("Content-Type") != "":
		return nil, fmt.Errorf("%s answers %s: it is no %s, or %w", address, answer.Status, what, ErrNone)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s: it is no %s", address, answer.Status, what)
	}
	return io.ReadAll(io.LimitReader(answer.Body, documentMax))
}
