package admin_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/loopback"
)

// status of a gateway that has all there can be.
func status() *admin.Status {
	return &admin.Status{
		Fabric: "edge.example.org", Gateway: "c2/g1", Phase: admin.Serving, SnapshotAgeNs: 5e9,
		Certificates: []admin.Certificate{{Of: "leaf", End: time.Unix(2_000_000_000, 0).UTC(), Overdue: true}},
		Extra:        []admin.Extra{{Peer: "c1", TrainingBytes: 4, CopyBytes: 3, DataBytes: 13, ParityBytes: 2}},
		Peers: []admin.Peer{{Name: "c1", Gateways: []admin.Gateway{{
			Address: "198.51.100.1:4443", Transport: "native",
			Link: admin.Link{State: transport.Up, Connections: 2, Idle: 1, DialsFailed: 3, RTTNs: 20e6, Segments: 100, Retransmitted: 2},
		}}}},
		Flows: &admin.Flows{File: "flows", Written: 7, Dropped: 1},
	}
}

// serve answers by a status until the test ends.
func serve(t *testing.T, s func() *admin.Status) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewPedanticRegistry()
	metrics.MustRegister(admin.Metrics(s))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- loopback.Serve(ctx, l, admin.Handler(metrics, func() admin.Phase { return s().Phase }, s))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestHandler(t *testing.T) {
	draining := &admin.Status{Phase: admin.Draining}
	at, leaves := serve(t, status), serve(t, func() *admin.Status { return draining })
	for _, c := range []struct {
		url    string
		status int
		parts  []string
	}{
		{at + "/metrics", http.StatusOK, []string{
			`skerry_gateway_certificate_expiry_timestamp_seconds{certificate="leaf"} 2e+09`,
			`skerry_gateway_certificate_renewal_overdue{certificate="leaf"} 1`,
			`skerry_gateway_link_up{gateway="198.51.100.1:4443",peer="c1",transport="native"} 1`,
			`skerry_gateway_link_connections{gateway="198.51.100.1:4443",peer="c1",transport="native"} 2`,
			`skerry_gateway_link_idle_connections{gateway="198.51.100.1:4443",peer="c1",transport="native"} 1`,
			`skerry_gateway_link_dial_failures_total{gateway="198.51.100.1:4443",peer="c1",transport="native"} 3`,
			`skerry_gateway_link_rtt_seconds{gateway="198.51.100.1:4443",peer="c1",transport="native"} 0.02`,
			`skerry_gateway_link_retransmitted_ratio{gateway="198.51.100.1:4443",peer="c1",transport="native"} 0.02`,
			`skerry_gateway_extra_bytes_total{kind="training",peer="c1"} 4`, `skerry_gateway_extra_bytes_total{kind="copy",peer="c1"} 3`,
			`skerry_gateway_extra_bytes_total{kind="data",peer="c1"} 13`, `skerry_gateway_extra_bytes_total{kind="parity",peer="c1"} 2`,
			"skerry_gateway_flow_records_total 7", "skerry_gateway_flow_records_dropped_total 1", "skerry_gateway_snapshot_timestamp_seconds ",
		}},
		{at + "/healthz", http.StatusOK, []string{"serving"}},
		{at + "/readyz", http.StatusServiceUnavailable, []string{"serving"}},
		{leaves + "/healthz", http.StatusServiceUnavailable, []string{"draining"}},
		{at + "/v1/status", http.StatusOK, []string{`"gateway":"c2/g1"`, `"rttNs":20000000`, `"overdue":true`}},
		{at + "/debug/pprof/goroutine?debug=1", http.StatusOK, []string{"goroutine profile"}},
		{at + "/debug/pprof/cmdline", http.StatusOK, []string{"admin.test"}},
		{at + "/", http.StatusNotFound, nil},
	} {
		answer, err := http.Get("http://" + c.url)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		if err := answer.Write(&body); err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != c.status {
			t.Errorf("%s: %s", c.url, answer.Status)
		}
		for _, part := range c.parts {
			if !strings.Contains(body.String(), part) {
				t.Errorf("%s: no %s in\n%s", c.url, part, body.String())
			}
		}
	}
}

// What is asked for is what was said; who answers something else is no gateway.
func TestFetch(t *testing.T) {
	got, err := admin.Fetch(t.Context(), serve(t, status))
	if err != nil || !reflect.DeepEqual(got, status()) {
		t.Errorf("%v, got %+v", err, got)
	}
	for want, answer := range map[string]http.HandlerFunc{
		"it is no gateway":               http.NotFound,
		"what is no answer of a gateway": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
	} {
		other := httptest.NewServer(answer)
		_, err := admin.Fetch(t.Context(), other.Listener.Addr().String())
		other.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A peer is reachable as long as one of its gateways is, or nobody has tried; for UDP, too.
func TestUnreachable(t *testing.T) {
	udp := func(g admin.Gateway) admin.Gateway {
		g.Transport = admin.Datagram
		return g
	}
	up, down, untried := admin.Gateway{Link: admin.Link{State: transport.Up}}, admin.Gateway{Link: admin.Link{State: transport.Down}}, admin.Gateway{Link: admin.Link{State: transport.Untried}}
	for _, c := range []struct {
		gateways []admin.Gateway
		want     int
	}{
		{nil, 0}, {[]admin.Gateway{down}, 1}, {[]admin.Gateway{down, up}, 0}, {[]admin.Gateway{down, untried}, 0}, {[]admin.Gateway{down, down}, 2},
		{[]admin.Gateway{up, udp(down), udp(down)}, 2}, {[]admin.Gateway{down, udp(up)}, 1}, {[]admin.Gateway{up, udp(up), udp(down)}, 0},
	} {
		if got := (admin.Peer{Gateways: c.gateways}).Unreachable(); len(got) != c.want {
			t.Errorf("%+v: got %+v", c.gateways, got)
		}
	}
}
