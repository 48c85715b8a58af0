package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/snapshot"
)

const (
	// metricsEvery is how often metrics.k8s.io is asked, as metrics-server asks kubelets;
	// metricsAgain is when it is asked again after it has not answered.
	metricsEvery, metricsAgain = 15 * time.Second, 5 * time.Second
	// metricsWait is how long it has to answer, metricsLook how often it is looked up for
	// whom it is to be asked.
	metricsWait, metricsLook = 5 * time.Second, time.Second
)

// metrics is what metrics.k8s.io has said of the Services that want it from there.
type metrics struct {
	mu     sync.Mutex
	said   map[snapshot.Key]answered
	failed atomic.Int64 // questions without an answer
}

// answered is what was said of a Service, by node.
type answered struct {
	asked  time.Duration
	byNode map[string]measured
}

// measured is what pods of a node use of so many cores, known since it was first said to have
// been measured at a time by another clock.
type measured struct {
	balance.Measured[balance.Usage]
	at    time.Time
	cores float64
}

// among is that of the cores which others leave for them, where a proxy there has reported these.
func (m measured) among(reported balance.Measured[balance.Queue]) balance.Measured[balance.Usage] {
	is := m.Measured
	if left := reported.Value.Cores; reported.Known && left > 0 && left < m.cores {
		is.Value.CPU = min(1, is.Value.CPU*m.cores/left)
	}
	return is
}

func newMetrics() *metrics { return &metrics{said: map[snapshot.Key]answered{}} }

// of is what is known of a Service; not ok is one that does not want it.
func (m *metrics) of(service snapshot.Key) (byNode map[string]measured, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.said[service]
	return s.byNode, ok
}

// due are those of the Services that are to be asked for now. The others are forgotten.
func (m *metrics) due(asking []snapshot.Key, now time.Duration) (due []snapshot.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := make(map[snapshot.Key]answered, len(asking))
	for _, key := range asking {
		s, ok := m.said[key]
		if !ok || now-s.asked >= metricsEvery {
			s.asked = now
			due = append(due, key)
		}
		said[key] = s
	}
	m.said = said
	return due
}

// take takes an answer. What was measured no later than before is as old as it was.
func (m *metrics) take(service snapshot.Key, usage map[string]snapshot.Usage, now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.said[service]
	if !ok {
		return
	}
	byNode := make(map[string]measured, len(usage))
	for node, u := range usage {
		is := measured{balance.Known(balance.Usage{CPU: u.CPU, RAM: u.RAM}, now), u.Measured, u.Cores}
		if was, ok := s.byNode[node]; ok && was.at.Equal(u.Measured) {
			is = was
		}
		byNode[node] = is
	}
	s.byNode = byNode
	m.said[service] = s
}

// fail has an answer that did not come asked for again.
func (m *metrics) fail(service snapshot.Key) {
	m.failed.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.said[service]; ok {
		s.asked -= metricsEvery - metricsAgain
		m.said[service] = s
	}
}

// ask asks metrics.k8s.io until ctx ends: for each Service once clients of this node have
// called it, and then again and again. What was said stays while nothing is.
func (a *agent) ask(ctx context.Context) {
	every := time.NewTicker(metricsLook)
	defer every.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		for _, key := range a.metrics.due(a.table.Asking(), a.now()) {
			err := a.askFor(ctx, key)
			if err != nil && !failing && ctx.Err() == nil {
				a.log.Warn("what pods use is as it was known", "service", key, "reason", err)
			}
			failing = err != nil
		}
	}
}

// askFor asks for one Service.
func (a *agent) askFor(ctx context.Context, key snapshot.Key) error {
	ctx, cancel := context.WithTimeout(ctx, metricsWait)
	defer cancel()
	usage, err := a.cluster.Usage(ctx, key)
	if err != nil {
		a.metrics.fail(key)
		return err
	}
	a.metrics.take(key, usage, a.now())
	return nil
}
