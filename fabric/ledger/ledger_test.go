package ledger

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/transport"
)

var (
	allowed = policy.Decision{Allowed: true, Policy: &policy.Policy{Name: "p"}}
	denied  = policy.Decision{}
)

// However a flow ends, its record says so, and so do the metrics.
func TestEnds(t *testing.T) {
	broken := errors.New("connection reset by peer")
	for _, c := range []struct {
		name   string
		do     func(s *Stream)
		want   flow.Record
		metric string
	}{
		{"carried", func(s *Stream) {
			s.Decided("c1", "c1", allowed)
			s.Via("a:1").ToPeer(3)
			s.End(nil)
		}, flow.Record{Verdict: flow.Allowed, Peer: "c1", Gateway: "a:1", Policy: "p", ToServiceBytes: 3}, `transmit_bytes_total{direction="import",peer="c1"} 3`},
		{"broken", func(s *Stream) {
			s.Decided("c1", "c1", allowed)
			s.Via("a:1").ToSocket(4)
			s.End(broken)
		}, flow.Record{Verdict: flow.Broken, Why: broken.Error(), Peer: "c1", Gateway: "a:1", Policy: "p", ToClientBytes: 4}, `streams_broken_total{direction="import",peer="c1"} 1`},
		{"denied here", func(s *Stream) {
			s.Decided("c1", "c1", denied)
			s.Refuse(s.Reason(), "no")
		}, flow.Record{Verdict: flow.Denied, Why: "no", Peer: "c1"}, `streams_refused_total{direction="import",peer="c1",reason="policy"} 1`},
		{"denied there", func(s *Stream) {
			s.Decided("c1", "c1", allowed)
			s.Via("a:1")
			s.End(&transport.Refusal{Code: transport.Denied})
		}, flow.Record{Verdict: flow.Refused, Why: "denied by policy", Peer: "c1", Gateway: "a:1", Policy: "p"}, `streams_refused_total{direction="import",peer="c1",reason="peer-policy"} 1`},
		{"one peer cannot be reached, the next is denied", func(s *Stream) {
			s.Decided("c1", "c1", allowed)
			s.Via("a:1")
			s.Decided("c3", "c3", denied)
			s.Refuse(s.Reason(), "no")
		}, flow.Record{Verdict: flow.Refused, Why: "no", Peer: "c1", Gateway: "a:1", Policy: "p"}, `streams_refused_total{direction="import",peer="c1",reason="no-way"} 1`},
		{"one denies, the next carries", func(s *Stream) {
			s.Decided("c1", "c1", denied)
			s.Decided("c3", "c3", allowed)
			s.Via("b:1").Opened()
			s.End(nil)
		}, flow.Record{Verdict: flow.Allowed, Peer: "c3", Gateway: "b:1", Policy: "p"}, `streams_opened_total{direction="import",peer="c3"} 1`},
		{"refused at length", func(s *Stream) { s.Refuse(ReasonNoWay, strings.Repeat("x", 1<<20)) },
			flow.Record{Verdict: flow.Refused, Why: strings.Repeat("x", whyMax)}, `streams_refused_total{direction="import",peer="",reason="no-way"} 1`},
		{"reset by the other end", func(s *Stream) {
			s.Decided("c1", "c1", allowed)
			s.Via("a:1")
			s.End(&transport.Refusal{Code: transport.Broken})
		}, flow.Record{Verdict: flow.Broken, Why: "reset by the other end", Peer: "c1", Gateway: "a:1", Policy: "p"}, `policy_decisions_total{direction="import",verdict="allowed"} 1`},
	} {
		var got []flow.Record
		l := New(func(r flow.Record) { got = append(got, r) })
		c.do(l.Begin(flow.Record{Direction: flow.Import}, transport.NewTraffic(time.Now())))
		if len(got) != 1 {
			t.Fatalf("%s: %d records", c.name, len(got))
		}
		r := got[0]
		if r.TotalNs <= 0 || r.Begin.IsZero() {
			t.Errorf("%s: got %+v", c.name, r)
		}
		r.Begin, r.Timings, r.Direction, r.Cluster = time.Time{}, flow.Timings{}, "", ""
		if fmt.Sprint(r) != fmt.Sprint(c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, r, c.want)
		}
		if text := scrape(t, l); !strings.Contains(text, "\n"+Prefix+c.metric+"\n") {
			t.Errorf("%s: no %s in\n%s", c.name, c.metric, text)
		}
		for way, a := range l.accounts {
			if len(a.open) > 0 {
				t.Errorf("%s: open by %v", c.name, way)
			}
		}
	}
}

func scrape(t *testing.T, l *Ledger) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(l.Registry(), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Body.String()
}

// What goes a way just now is known while streams are open, and a way that nothing goes
// is forgotten without a byte lost from the sums.
func TestAccounts(t *testing.T) {
	l := New(nil)
	s := l.Begin(flow.Record{Direction: flow.Import}, transport.NewTraffic(time.Now()))
	s.Decided("c1", "c1", allowed)
	traffic := s.Via("a:1")
	way := Way{Side{flow.Import, "c1"}, "a:1", ""}
	at := time.Now()
	for range 20 {
		at = at.Add(time.Second)
		l.Sample(at)
		traffic.ToPeer(1000)
		traffic.ToSocket(500)
	}
	n := l.Now(way, at)
	if n.Streams != 1 || n.SentRate < 1000 || n.SentRate > 1200 || n.ReceivedRate < 500 || n.ReceivedRate > 600 {
		t.Errorf("got %+v", n)
	}
	s.End(nil)
	for range 2 {
		l.Sample(at)
		at = at.Add(forgetAfter)
	}
	if n := l.Now(way, at); n != (Now{}) || len(l.accounts) != 0 {
		t.Errorf("it is not forgotten: %+v", n)
	}
	if _, sums := l.sums(); sums[way.Side].sentBytes != 20_000 || sums[way.Side].gotBytes != 10_000 {
		t.Errorf("got %+v", sums)
	}
}

// An error of a handshake has one of few classes.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{ErrBusy, "busy"},
		{fmt.Errorf("x: %w", identity.ErrRevoked), "revoked"},
		{fmt.Errorf("%w: %w", identity.ErrUntrusted, x509.CertificateInvalidError{Reason: x509.Expired}), "expired"},
		{fmt.Errorf("%w: %w", identity.ErrUntrusted, x509.UnknownAuthorityError{}), "untrusted"},
		{context.DeadlineExceeded, "timeout"},
		{io.EOF, "closed"},
		{tls.RecordHeaderError{}, "not-tls"},
		{errors.New("tls: client offered only unsupported versions"), "tls"},
	} {
		if got := class(c.err); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

// Each code of a refusal has a reason of its own.
func TestReasons(t *testing.T) {
	seen := map[Reason]bool{}
	for code := transport.Denied; code <= transport.Leaving; code++ {
		seen[reasonOf(code)] = true
	}
	if len(seen) != int(transport.Leaving-transport.Denied)+1 {
		t.Errorf("got %v", seen)
	}
	for reason, code := range map[Reason]transport.Code{
		ReasonPolicy: transport.Denied, ReasonClaims: transport.Denied, ReasonNoService: transport.NoService, ReasonNoBackend: transport.Unreachable,
	} {
		if reason.Code() != code {
			t.Errorf("%s is told as %s", reason, reason.Code())
		}
	}
}

// What a stream costs that is decided, carried and accounted for.
func BenchmarkStream(b *testing.B) {
	l := New(func(flow.Record) {})
	for b.Loop() {
		s := l.Begin(flow.Record{Direction: flow.Import}, transport.NewTraffic(time.Now()))
		s.Decided("c1", "c1", allowed)
		t := s.Via("a:1")
		t.Opened()
		t.ToPeer(60)
		t.ToSocket(60)
		s.End(nil)
	}
}

// What a frame costs.
func BenchmarkFrame(b *testing.B) {
	t := transport.NewTraffic(time.Now())
	for b.Loop() {
		t.ToPeer(60)
	}
}
