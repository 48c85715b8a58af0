package agent

import (
	"time"

	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/dispatch"
	"skerry.dev/skerry/proxy/reports"
	"skerry.dev/skerry/proxy/snapshot"
	"skerry.dev/skerry/proxy/usage"
)

const (
	// idleTicks is how seldom a Service is reported that nobody calls.
	idleTicks = 10
	// busyCPU is the share of its limit above which pods are taken to be called.
	busyCPU = 0.01
)

// reported is what was last seen of a Service's pods here.
type reported struct {
	at     time.Duration
	worked map[string]time.Duration // by pod
	total  time.Duration            // of pods that are gone as well: it only grows
}

// podUse is who reads what this node's pods use; groups is nil where nobody can.
type podUse struct {
	groups *usage.Reader
	last   map[snapshot.Key]reported
}

// measure reports what goes on here, and has balancers learn what goes on elsewhere.
func (a *agent) measure() {
	a.tick++
	var said []reports.Service
	var active []snapshot.Key
	for _, f := range a.table.Flights() {
		s := a.report(f)
		busy := len(s.Flights) > 0 || s.CPU > busyCPU
		if busy || a.tick%idleTicks == 0 {
			said = append(said, s)
			active = append(active, f.Service)
		}
	}
	a.link.Report(said)
	a.link.With(func(b *reports.Book) {
		now := a.now()
		a.table.Learn(active, func(service snapshot.Key, node string) balance.Node {
			n := b.About(service, node, now)
			if said, ok := a.metrics.of(service); ok {
				n.Usage = said[node].Measured
			}
			return n
		})
	})
}

// report is what this node says of a Service.
func (a *agent) report(f dispatch.Flights) reports.Service {
	s := reports.Service{Key: f.Service}
	for node, flight := range f.ByNode {
		s.Flights = append(s.Flights, reports.Flight{Node: node, InFlight: flight.InFlight, Done: flight.Done})
	}
	if len(f.Pods) > 0 && a.pods.groups != nil {
		a.pods.add(&s, f.Pods, a.now())
	}
	return s
}

// add adds what the Service's pods here use.
func (p podUse) add(s *reports.Service, pods []string, now time.Duration) {
	was, seen := p.last[s.Key]
	is := reported{at: now, worked: map[string]time.Duration{}, total: was.total}
	var ram float64
	for _, uid := range pods {
		sample, err := p.groups.Read(uid, now)
		if err != nil {
			continue // it is not there yet, or no more
		}
		s.Pods = true
		s.Cores = min(s.Cores+sample.Cores, sample.Node)
		ram = max(ram, sample.RAM)
		is.worked[uid] = sample.Worked
		if before, ok := was.worked[uid]; ok && sample.Worked > before {
			is.total += sample.Worked - before
		}
	}
	p.last[s.Key] = is
	s.RAM, s.Worked = ram, is.total
	if span := now - was.at; seen && span > 0 && s.Cores > 0 {
		s.CPU = float64(is.total-was.total) / (float64(span) * s.Cores)
	}
}
