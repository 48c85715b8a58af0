package agent

import (
	"math"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/snapshot"
)

// Each Service is asked for again after a while; what was measured once does not become
// younger by being said again, and what nobody wants to know is forgotten.
func TestMetricsAge(t *testing.T) {
	const second = time.Second
	web, other := snapshot.Key{Namespace: "default", Name: "web"}, snapshot.Key{Namespace: "default", Name: "other"}
	m := newMetrics()
	if due := m.due([]snapshot.Key{web}, 0); !slices.Equal(due, []snapshot.Key{web}) {
		t.Errorf("at first %v", due)
	}
	at := time.Unix(100, 0)
	m.take(web, map[string]snapshot.Usage{"n1": {CPU: 0.5, Measured: at}}, second)
	m.take(other, map[string]snapshot.Usage{"n1": {CPU: 0.5, Measured: at}}, second)
	if _, ok := m.of(other); ok {
		t.Error("an answer that nobody wants any more is kept")
	}
	if due := m.due([]snapshot.Key{web, other}, 14*second); !slices.Equal(due, []snapshot.Key{other}) {
		t.Errorf("soon after %v", due)
	}
	if due := m.due([]snapshot.Key{web, other}, 15*second); !slices.Equal(due, []snapshot.Key{web}) {
		t.Errorf("later %v", due)
	}
	m.take(web, map[string]snapshot.Usage{"n1": {CPU: 0.5, Measured: at}, "n2": {CPU: 0.1, Measured: at}}, 16*second)
	if said, _ := m.of(web); said["n1"].At != second || said["n2"].At != 16*second {
		t.Errorf("said again: %+v", said)
	}
	m.take(web, map[string]snapshot.Usage{"n1": {CPU: 0.9, Measured: at.Add(15 * second)}}, 31*second)
	if said, _ := m.of(web); said["n1"].At != 31*second || said["n1"].Value.CPU != 0.9 || len(said) != 1 {
		t.Errorf("measured again: %+v", said)
	}
	m.take(web, map[string]snapshot.Usage{"n1": {CPU: 0.6, Cores: 0.2, Measured: at.Add(30 * second)}}, 46*second)
	said, _ := m.of(web)
	for left, want := range map[float64]float64{0: 0.6, 0.3: 0.6, 0.15: 0.8, 0.1: 1} {
		if got := said["n1"].among(balance.Known(balance.Queue{Cores: left}, 0)).Value.CPU; math.Abs(got-want) > 1e-9 {
			t.Errorf("0.6 of 0.2 cores, of which %v are left: %v, not %v", left, got, want)
		}
	}
	m.due([]snapshot.Key{web}, 40*second)
	m.fail(web)
	if due := m.due([]snapshot.Key{web}, 45*second); len(due) != 1 || m.failed.Load() != 1 {
		t.Errorf("after no answer %v, %d failures", due, m.failed.Load())
	}
	if m.due(nil, 40*second); len(m.said) != 0 {
		t.Errorf("kept: %v", m.said)
	}
}
