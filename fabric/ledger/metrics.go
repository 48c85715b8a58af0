package ledger

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/transport"
)

// Reason is why a stream was refused, in a word.
type Reason string

// The reasons. Their number is bounded, since they are a label of metrics.
const (
	ReasonPolicy     Reason = "policy"      // here
	ReasonClaims     Reason = "claims"      // the peer claims to be another
	ReasonNoWay      Reason = "no-way"      // no gateway of a peer can be reached
	ReasonPeerPolicy Reason = "peer-policy" // the peer's
	ReasonNoService  Reason = "no-service"
	ReasonNoBackend  Reason = "no-backend"
	ReasonOverloaded Reason = "overloaded"
	ReasonLeaving    Reason = "leaving"
)

// Code is what a peer is told.
func (r Reason) Code() transport.Code {
	switch r {
	case ReasonPolicy, ReasonClaims:
		return transport.Denied
	case ReasonNoService:
		return transport.NoService
	default:
		return transport.Unreachable
	}
}

// reasonOf words what a peer tells.
func reasonOf(code transport.Code) Reason {
	switch code {
	case transport.Denied:
		return ReasonPeerPolicy
	case transport.NoService:
		return ReasonNoService
	case transport.Overloaded:
		return ReasonOverloaded
	case transport.Leaving:
		return ReasonLeaving
	default:
		return ReasonNoBackend
	}
}

// Prefix of the names of all metrics.
const Prefix = "skerry_gateway_"

// counters of what happens.
type counters struct {
	refused, broken, decisions, handshakes, breaches, reloads *prometheus.CounterVec
}

func newCounters() counters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: Prefix + name, Help: help}, labels)
	}
	return counters{
		refused:    counter("streams_refused_total", "Streams that were refused, here or by the peer.", "direction", "peer", "reason"),
		broken:     counter("streams_broken_total", "Streams that broke while they were carried.", "direction", "peer"),
		decisions:  counter("policy_decisions_total", "Decisions by policies here.", "direction", "verdict"),
		handshakes: counter("handshake_failures_total", "Connections to this gateway that were refused in their handshake.", "reason"),
		breaches:   counter("protocol_breaches_total", "Connections of a peer that were ended for a breach of protocol.", "peer"),
		reloads:    counter("reload_failures_total", "New files that could not be read, so that things stay as they were.", "what"),
	}
}

// register has the registry hold all that the ledger knows, and the process.
func (l *Ledger) register() {
	c := l.counters
	l.registry.MustRegister(c.refused, c.broken, c.decisions, c.handshakes, c.breaches, c.reloads, sides{l},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, what := range []string{ReloadIdentity, ReloadResources} {
		c.reloads.WithLabelValues(what)
	}
}

// Registry holds the metrics.
func (l *Ledger) Registry() *prometheus.Registry { return l.registry }

func (l *Ledger) decided(d flow.Direction, allowed bool) {
	verdict := flow.Denied
	if allowed {
		verdict = flow.Allowed
	}
	l.counters.decisions.WithLabelValues(string(d), string(verdict)).Inc()
}

func (l *Ledger) refused(s Side, why Reason) {
	l.counters.refused.WithLabelValues(string(s.Direction), s.Peer, string(why)).Inc()
}

func (l *Ledger) broken(s Side) {
	l.counters.broken.WithLabelValues(string(s.Direction), s.Peer).Inc()
}

// Breach counts a peer's breach of protocol.
func (l *Ledger) Breach(peer string) { l.counters.breaches.WithLabelValues(peer).Inc() }

// What may fail to be read anew.
const (
	ReloadIdentity  = "identity"
	ReloadResources = "resources"
)

// ReloadFailed counts a file that could not be read anew.
func (l *Ledger) ReloadFailed(what string) { l.counters.reloads.WithLabelValues(what).Inc() }

// sides collects the sums of streams by peer.
type sides struct{ *Ledger }

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(Prefix+name, help, []string{"direction", "peer"}, nil)
}

// Describe implements prometheus.Collector.
func (s sides) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, to) }

// Collect implements prometheus.Collector.
func (s sides) Collect(to chan<- prometheus.Metric) {
	streams, opened := describe("streams", "Streams that are open."), describe("streams_opened_total", "Streams that were opened, to the peer or to the service.")
	sent, received := describe("transmit_bytes_total", "Bytes of streams that were sent to the peer."), describe("receive_bytes_total", "Bytes of streams that came from the peer and were passed on.")
	open, totals := s.sums()
	for side, t := range totals {
		labels := []string{string(side.Direction), side.Peer}
		to <- prometheus.MustNewConstMetric(streams, prometheus.GaugeValue, float64(open[side]), labels...)
		to <- prometheus.MustNewConstMetric(opened, prometheus.CounterValue, float64(t.opened), labels...)
		to <- prometheus.MustNewConstMetric(sent, prometheus.CounterValue, float64(t.sentBytes), labels...)
		to <- prometheus.MustNewConstMetric(received, prometheus.CounterValue, float64(t.gotBytes), labels...)
	}
}

// sums are those of each side, with how many streams are open.
func (l *Ledger) sums() (open map[Side]int, totals map[Side]sums) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open, totals = map[Side]int{}, maps.Clone(l.gone)
	for way, a := range l.accounts {
		open[way.Side] += len(a.open)
		t := totals[way.Side]
		t.addAll(a.sums())
		totals[way.Side] = t
	}
	return open, totals
}
