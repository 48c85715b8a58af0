package agent

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/loopback"
	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/dispatch"
	"skerry.dev/skerry/proxy/snapshot"
)

// ExplainPath is where a proxy says what the next choice of a Service rests on: of
// ?service=NAMESPACE/NAME, or of all.
const ExplainPath = "/v1/explain"

// AboutPath is where it says which it is, and how it was started.
const AboutPath = "/v1/about"

// About is which proxy this is, and how it was started.
type About struct {
	Config
	Uptime string `json:"uptime"`
	Kernel string `json:"kernel"`
}

// about is of this one.
func (a *agent) about(func(string) string) any {
	var is unix.Utsname
	_ = unix.Uname(&is) // does not fail
	return About{Config: a.Config, Uptime: a.now().Round(time.Second).String(), Kernel: unix.ByteSliceToString(is.Release[:])}
}

// prefix of the names of metrics.
const prefix = "skerry_proxy_"

// answer has operators ask, until ctx ends.
func (a *agent) answer(ctx context.Context) error {
	if a.Admin == "" {
		return nil
	}
	if err := loopback.CheckAddress(a.Admin); err != nil {
		return err
	}
	l, err := net.Listen("tcp", a.Admin)
	if err != nil {
		return fmt.Errorf("listen for operators: %w", err)
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collector{a})
	h := loopback.Handler(loopback.Answers{
		Metrics: metrics,
		Phase: func() (string, bool, bool) {
			phase, begun := a.phase.Load().(string)
			if !begun {
				phase = starting
			}
			return phase, true, phase == ready
		},
		Documents: map[string]func(func(string) string) any{ExplainPath: a.explain, AboutPath: a.about},
	})
	go func() {
		if err := loopback.Serve(ctx, l, h); err != nil {
			a.log.Error("no answer to operators any more", "reason", err)
		}
	}()
	return nil
}

// explain is what is asked for; nil is of no Service.
func (a *agent) explain(query func(string) string) any {
	if name := query("service"); name != "" {
		namespace, name, _ := strings.Cut(name, "/")
		if x := a.table.Explain(snapshot.Key{Namespace: namespace, Name: name}); x != nil {
			return x
		}
		return nil
	}
	all := []dispatch.Explanation{}
	for _, key := range a.table.Keys() {
		all = append(all, a.table.Explain(key)...)
	}
	return all
}

// collector tells Prometheus what there is now.
type collector struct{ *agent }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	n, r, failed := c.plane.Counts(), c.link.Counts(), c.metrics.failed.Load()
	for _, m := range []struct {
		name, help string
		kind       prometheus.ValueType
		value      int64
	}{
		{"connections_open", "Connections that are carried now.", prometheus.GaugeValue, n.Open},
		{"connections_accepted_total", "Connections that were brought.", prometheus.CounterValue, n.Accepted},
		{"connections_refused_total", "Connections that nobody could serve.", prometheus.CounterValue, n.Refused},
		{"endpoints_unreached_total", "Calls of endpoints that did not take them.", prometheus.CounterValue, n.Unreached},
		{"connections_reset_total", "Connections that one side broke off.", prometheus.CounterValue, n.Reset},
		{"client_bytes_total", "Bytes from clients.", prometheus.CounterValue, n.BytesIn},
		{"endpoint_bytes_total", "Bytes from endpoints.", prometheus.CounterValue, n.BytesOut},
		{"spliced_bytes_total", "Bytes that never were in the process.", prometheus.CounterValue, n.Spliced},
		{"datagrams_dropped_total", "Datagrams that nobody could serve.", prometheus.CounterValue, n.Dropped},
		{"datagram_clients_evicted_total", "Clients of UDP that were forgotten for others.", prometheus.CounterValue, n.Evicted},
		{"reports_sent_total", "Reports to other proxies.", prometheus.CounterValue, r.Sent},
		{"reports_heard_total", "Reports of other proxies.", prometheus.CounterValue, r.Heard},
		{"reports_old_total", "Reports that came twice, or late, or of who has not heard this proxy yet.", prometheus.CounterValue, r.Old},
		{"reports_forged_total", "Reports that no key of this cluster has signed.", prometheus.CounterValue, r.Forged},
		{"reports_malformed_total", "Reports that make no sense.", prometheus.CounterValue, r.Malformed},
		{"metrics_failed_total", "Questions to metrics.k8s.io without an answer.", prometheus.CounterValue, failed},
	} {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(prefix+m.name, m.help, nil, nil), m.kind, float64(m.value))
	}
	for _, key := range c.table.Alive() {
		for _, x := range c.table.Explain(key) {
			collect(to, x)
		}
	}
}

// collect tells of the endpoints of a port.
func collect(to chan<- prometheus.Metric, x dispatch.Explanation) {
	labels := []string{"service", "port", "protocol", "traffic_policy", "endpoint", "node"}
	for _, e := range x.Endpoints {
		values := []string{x.Service, fmt.Sprint(x.Port), string(x.Protocol), x.TrafficPolicy, e.ID, e.Node}
		tell := func(name, help string, kind prometheus.ValueType, value float64) {
			to <- prometheus.MustNewConstMetric(prometheus.NewDesc(prefix+"endpoint_"+name, help, labels, nil), kind, value, values...)
		}
		tell("chosen_total", "Connections that were given to the endpoint.", prometheus.CounterValue, float64(e.Chosen))
		tell("in_flight", "Connections of this proxy to the endpoint.", prometheus.GaugeValue, float64(e.InFlight))
		tell("latency_seconds", "What answers of its node take, on average of late.", prometheus.GaugeValue, e.Latency.Seconds())
		tell("ejections_total", "How often it was left out for its failures.", prometheus.CounterValue, float64(e.Ejections))
		tell("out_seconds", "For how long it is left out yet.", prometheus.GaugeValue, e.Out.Seconds())
		known(tell, e.Knowledge)
		if t := e.Cost; t != nil {
			tell("cost_seconds", "What the next request costs, as it is compared: wire + service × (1 + weight × waiting), and more where it is back only lately.", prometheus.GaugeValue, t.Total.Seconds())
			tell("cost_wire_seconds", "What of the next request is on the wire.", prometheus.GaugeValue, t.Wire.Seconds())
			tell("cost_service_seconds", "What it takes at the node alone.", prometheus.GaugeValue, t.Service.Seconds())
			tell("cost_waiting", "How many service times it would wait there.", prometheus.GaugeValue, t.Waiting)
			tell("cost_weight", "How much that weighs.", prometheus.GaugeValue, t.Weight)
		}
	}
}

// known tells what is known of an endpoint's node.
func known(tell func(name, help string, kind prometheus.ValueType, value float64), k balance.Knowledge) {
	age := func(name string, age time.Duration) {
		tell(name+"_age_seconds", "How long ago that was so.", prometheus.GaugeValue, age.Seconds())
	}
	if k.RTT != nil {
		tell("rtt_seconds", "The round trip to its node.", prometheus.GaugeValue, k.RTT.Seconds())
		age("rtt", k.RTTAge)
	}
	if k.Usage != nil {
		tell("cpu_ratio", "What the Service's pods on its node use of their limit of CPU.", prometheus.GaugeValue, k.Usage.CPU)
		tell("ram_ratio", "What they use of their limit of memory, the fullest of them.", prometheus.GaugeValue, k.Usage.RAM)
		age("usage", k.UsageAge)
	}
	if k.Queue != nil {
		tell("queue", "Connections at its node's servers, of all proxies, as reported.", prometheus.GaugeValue, k.Queue.InFlight)
		age("queue", k.QueueAge)
	}
}
