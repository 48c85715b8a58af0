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
	// idleTicks is how seldom is said what has not changed for as long: of a Service that nobody
	// calls, of a node to which nothing is sent, and that this proxy is there at all. It is of
	// ticks in which all peers hear.
	idleTicks = int(reports.Seldom / reports.Every)
	// busyCPU is the share of its limit above which pods are taken to be called.
	busyCPU = 0.01
)

// reported is what was last seen of a Service's pods here.
type reported struct {
	at     time.Duration
	worked map[string]time.Duration // by pod
	total  time.Duration            // of pods that are gone as well: it only grows
	node   time.Duration            // of all that share the node
	others float64                  // cores that others have used there lately
	share  float64                  // what the pods have used lately of what these left
}

const (
	// lately is the time over which use is averaged: in a tenth of a second quotas, which are
	// had in slices, make full pods look as if they had time to spare, to all proxies at once.
	lately = time.Second
	// leastSpare is the share of a node that a Service's pods have, whatever others use: these
	// would use less if it had to wait.
	leastSpare = 0.25
)

// podUse is who reads what this node's pods use; groups is nil where nobody can.
type podUse struct {
	groups *usage.Reader
	last   map[snapshot.Key]reported
}

// measure reports what goes on here, and has balancers learn what goes on elsewhere.
func (a *agent) measure() {
	a.link.Hear()
	a.nextTick(a.link.Rounds())
	var said []reports.Service
	var active []snapshot.Key
	for _, f := range a.table.Flights() {
		s := a.report(f)
		if len(s.Flights) > 0 || s.CPU > busyCPU || a.saysAll() {
			said = append(said, s)
			active = append(active, f.Service)
		}
	}
	if len(said) > 0 || a.saysAll() {
		a.link.Report(said)
	}
	a.link.Answer()
	a.link.With(func(b *reports.Book) {
		now := a.now()
		a.table.Learn(active, func(service snapshot.Key, node string) balance.Node {
			n := b.About(service, node, now)
			if said, ok := a.metrics.of(service); ok {
				n.Usage = said[node].among(n.Queue)
			}
			return n
		})
	})
}

// report is what this node says of a Service: what it sends to nodes, where that has changed
// lately, often enough that a report which is lost is made up for; and all of it now and then.
func (a *agent) report(f dispatch.Flights) reports.Service {
	s := reports.Service{Key: f.Service}
	sent := make(map[string]flown, len(f.ByNode))
	for node, flight := range f.ByNode {
		is, known := a.sent[f.Service][node]
		if flight.InFlight > 0 || !known || flight.Done != is.done {
			is = flown{flight.Done, a.turn}
		}
		sent[node] = is
		if a.turn-is.changed < idleTicks || a.saysAll() {
			s.Flights = append(s.Flights, reports.Flight{Node: node, InFlight: flight.InFlight, Done: flight.Done})
		}
	}
	a.sent[f.Service] = sent
	if len(f.Pods) > 0 && a.pods.groups != nil {
		a.pods.add(&s, f.Pods, a.now())
	}
	return s
}

// spoken is how often it was measured, and what of whom is sent where.
type spoken struct {
	tick int
	turn int                               // how often all peers could hear
	some int                               // ticks since, in which some of them could
	sent map[snapshot.Key]map[string]flown // by node

	refused map[snapshot.Key][]string // what of a Service users have been told of
}

// nextTick begins a tick; it takes so many rounds of them for all peers to hear.
func (s *spoken) nextTick(rounds int) {
	s.tick++
	if s.some++; s.some >= rounds {
		s.turn, s.some = s.turn+1, 0
	}
}

// saysAll says whether this is a turn in which all that there is is said.
func (s *spoken) saysAll() bool { return s.turn%idleTicks == 0 }

// flown is what a node has answered of a Service, and the turn in which that was another, or
// something was in flight, last.
type flown struct {
	done    uint64
	changed int
}

// add reads what the pods of a Service use. The cores that they may use are those of their
// limits, and no more than others leave of the node: the proxy itself is one of these, so that
// pods which have all that there is for them are told as full.
func (p podUse) add(s *reports.Service, pods []string, now time.Duration) {
	was, seen := p.last[s.Key]
	is := reported{at: now, worked: map[string]time.Duration{}, total: was.total, others: was.others, share: was.share}
	var ram float64
	var node usage.Node
	for _, uid := range pods {
		sample, err := p.groups.Read(uid, now)
		if err != nil {
			continue // it is not there yet, or no more
		}
		s.Pods = true
		s.Cores = min(s.Cores+sample.Cores, sample.Node.Cores)
		ram, node = max(ram, sample.RAM), sample.Node
		is.worked[uid] = sample.Worked
		if before, ok := was.worked[uid]; ok && sample.Worked > before {
			is.total += sample.Worked - before
		}
	}
	is.node = node.Worked
	span, worked := now-was.at, is.total-was.total
	left := func(others float64) float64 { return min(s.Cores, max(node.Cores-others, leastSpare*node.Cores)) }
	if seen && span > 0 && s.Cores > 0 {
		used := float64(worked) / (float64(span) * left(is.besides(was, worked, span)))
		is.share += (min(1, used) - is.share) * min(1, float64(span)/float64(lately))
	}
	s.CPU, s.Cores = is.share, left(is.others)
	s.RAM, s.Worked = ram, is.total
	p.last[s.Key] = is
}

// besides learns what others than the Service's pods, which have worked for so long of a time,
// use of their node, and says what they did in that time.
func (r *reported) besides(was reported, worked, span time.Duration) float64 {
	if was.node == 0 || r.node < was.node {
		return r.others // it is not known, or the pods are shared by others now
	}
	others := max(0, float64(r.node-was.node-worked)/float64(span))
	r.others += (others - r.others) * min(1, float64(span)/float64(lately))
	return others
}
