package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/fabric/transport"
)

// Metrics are those that the status says: one truth for both.
func Metrics(status func() *Status) prometheus.Collector { return collector(status) }

type collector func() *Status

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	s, now := c(), time.Now()
	expiry := prometheus.NewDesc(ledger.Prefix+"certificate_expiry_timestamp_seconds",
		"When a certificate expires that the gateway stands on: its own (leaf), or the first of those above (authority).", []string{"certificate"}, nil)
	for _, one := range s.Certificates {
		to <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(one.End.Unix()), one.Of)
	}
	overdue := prometheus.NewDesc(ledger.Prefix+"certificate_renewal_overdue",
		"1 where less than a third of a certificate's life is left, and it was not renewed.", []string{"certificate"}, nil)
	for _, one := range s.Certificates {
		to <- prometheus.MustNewConstMetric(overdue, prometheus.GaugeValue, truth(one.Overdue), one.Of)
	}
	snapshot := prometheus.NewDesc(ledger.Prefix+"snapshot_timestamp_seconds", "When the files were read that are in force.", nil, nil)
	to <- prometheus.MustNewConstMetric(snapshot, prometheus.GaugeValue, float64(now.UnixNano()-s.SnapshotAgeNs)/float64(time.Second))
	for _, p := range s.Peers {
		for _, g := range p.Gateways {
			for _, m := range linkMetrics() {
				desc := prometheus.NewDesc(ledger.Prefix+m.name, m.help, []string{"peer", "gateway", "transport"}, nil)
				to <- prometheus.MustNewConstMetric(desc, m.kind, m.value(g.Link), p.Name, g.Address, g.Transport)
			}
		}
	}
	collectExtra(s.Extra, to)
	if s.Flows != nil {
		written := prometheus.NewDesc(ledger.Prefix+"flow_records_total", "Records in the log of flows.", nil, nil)
		to <- prometheus.MustNewConstMetric(written, prometheus.CounterValue, float64(s.Flows.Written))
		dropped := prometheus.NewDesc(ledger.Prefix+"flow_records_dropped_total", "Records of flows that were lost: too many waited, or the disk was full.", nil, nil)
		to <- prometheus.MustNewConstMetric(dropped, prometheus.CounterValue, float64(s.Flows.Dropped))
	}
}

func collectExtra(all []Extra, to chan<- prometheus.Metric) {
	desc := prometheus.NewDesc(ledger.Prefix+"extra_bytes_total",
		"Bytes sent to a peer that teach TCP its paths (training), say again what streams say (copy), or are of blocks that go in pieces (data, parity).", []string{"peer", "kind"}, nil)
	for _, e := range all {
		for kind, bytes := range map[string]uint64{"training": e.TrainingBytes, "copy": e.CopyBytes, "data": e.DataBytes, "parity": e.ParityBytes} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(bytes), e.Peer, kind)
		}
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// linkMetric is one of each way to a gateway of a peer.
type linkMetric struct {
	name, help string
	kind       prometheus.ValueType
	value      func(Link) float64
}

func linkMetrics() []linkMetric {
	return []linkMetric{
		{"link_up", "1 where a gateway of a peer answers.", prometheus.GaugeValue, func(l Link) float64 { return truth(l.State == transport.Up) }},
		{"link_connections", "Connections to a gateway of a peer that are open.", prometheus.GaugeValue, func(l Link) float64 { return float64(l.Connections) }},
		{"link_idle_connections", "Of these those that are open ahead of need.", prometheus.GaugeValue, func(l Link) float64 { return float64(l.Idle) }},
		{"link_dial_failures_total", "Dials that ended without a connection that the peer takes.", prometheus.CounterValue, func(l Link) float64 { return float64(l.DialsFailed) }},
		{"link_rtt_seconds", "Mean of the smoothed round-trip times of the connections that are open.", prometheus.GaugeValue, func(l Link) float64 { return time.Duration(l.RTTNs).Seconds() }},
		{"link_retransmitted_ratio", "Share of the segments with data that the connections which are open have sent again.", prometheus.GaugeValue, Link.Loss},
	}
}
