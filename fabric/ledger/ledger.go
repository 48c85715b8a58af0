// Package ledger keeps account of what a gateway carries and refuses: streams and bytes
// by peer for Prometheus, what passes just now for `skerry fabric status`, and a record
// of each flow for who keeps those. It costs a stream two turns of a lock and its bytes
// nothing: those are read where transports count them. It decides nothing. Start at New.
package ledger

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skerry.dev/skerry/fabric/flow"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/transport"
)

// Ledger is that of one gateway. It is safe for concurrent use.
type Ledger struct {
	registry *prometheus.Registry
	counters counters
	put      func(flow.Record)

	mu       sync.Mutex
	accounts map[Way]*account
	// gone are the sums of accounts that are not kept any more.
	gone map[Side]sums
}

// Side is a peer, and at which side of flows the gateway is.
type Side struct {
	Direction flow.Direction
	Peer      string
}

// Way is to or from one gateway of a peer, for what services speak: TCP or UDP.
type Way struct {
	Side
	Gateway, Protocol string
}

// New makes a ledger. Records of flows that are over go to put, which must not block; nil
// is for nobody.
func New(put func(flow.Record)) *Ledger {
	if put == nil {
		put = func(flow.Record) {}
	}
	l := &Ledger{registry: prometheus.NewRegistry(), put: put, accounts: map[Way]*account{}, gone: map[Side]sums{}}
	l.counters = newCounters()
	l.register()
	return l
}

// Stream is a flow that is not over. One goroutine at a time uses it.
type Stream struct {
	ledger  *Ledger
	record  flow.Record
	traffic *transport.Traffic // nil where nothing is counted
	way     *Way               // nil before there is one
}

// Begin begins a stream, of whose record the begin is known and what is asked for.
func (l *Ledger) Begin(r flow.Record, t *transport.Traffic) *Stream {
	if t != nil {
		r.Begin = t.Begin()
		r.Policy = t.Allowed
	}
	return &Stream{ledger: l, record: r, traffic: t}
}

// Record is what is known of the stream so far.
func (s *Stream) Record() flow.Record { return s.record }

// Decided notes what the policies here say about a peer's calling, or being called at, a
// cluster. A stream that may go one way stays allowed when it may not go another.
func (s *Stream) Decided(peer, cluster string, d policy.Decision) {
	s.ledger.decided(s.record.Direction, d.Allowed)
	if d.Allowed || s.Reason() == ReasonPolicy {
		s.goes(peer, cluster, d)
	}
}

// Chosen notes to which of the peers that the stream may go to it goes.
func (s *Stream) Chosen(peer string, d policy.Decision) { s.goes(peer, peer, d) }

func (s *Stream) goes(peer, cluster string, d policy.Decision) {
	s.record.Peer, s.record.Cluster, s.record.Policy = peer, cluster, ""
	if d.Policy != nil {
		s.record.Policy = d.Policy.Name
	}
	if d.Allowed {
		s.record.Verdict = flow.Allowed
		if s.traffic != nil {
			s.traffic.Allowed = s.record.Policy
		}
	}
}

// Reason is why the stream is refused if no way leads to where it may go.
func (s *Stream) Reason() Reason {
	if s.record.Verdict == flow.Allowed {
		return ReasonNoWay
	}
	return ReasonPolicy
}

// Via has the stream go by a gateway of the peer, and gives what counts it.
func (s *Stream) Via(gateway string) *transport.Traffic {
	s.record.Gateway = gateway
	if s.traffic == nil {
		return nil
	}
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	s.leaveLocked()
	s.way = &Way{Side{s.record.Direction, s.record.Peer}, gateway, s.record.Service.Protocol}
	a := l.accounts[*s.way]
	if a == nil {
		a = &account{open: map[*Stream]bool{}, samples: []sample{{at: time.Now()}}}
		l.accounts[*s.way] = a
	}
	a.open[s] = true
	return s.traffic
}

// Refuse ends a stream that was not carried.
func (s *Stream) Refuse(why Reason, words string) {
	s.record.Verdict, s.record.Why = flow.Refused, words
	if why == ReasonPolicy {
		s.record.Verdict = flow.Denied
	}
	s.over()
	s.ledger.refused(s.side(), why)
}

// End ends a stream that was carried, or that the peer has refused.
func (s *Stream) End(err error) {
	refusal, ok := errors.AsType[*transport.Refusal](err)
	switch {
	case err == nil:
		s.record.Verdict = flow.Allowed
		s.over()
	case ok && refusal.Code != transport.Broken:
		s.Refuse(reasonOf(refusal.Code), err.Error())
	default:
		s.record.Verdict, s.record.Why = flow.Broken, err.Error()
		s.over()
		s.ledger.broken(s.side())
	}
}

func (s *Stream) side() Side { return Side{s.record.Direction, s.record.Peer} }

// whyMax bounds in bytes why a flow ended, which a peer may have worded.
const whyMax = 512

// over leaves the account and tells the record.
func (s *Stream) over() {
	if s.traffic != nil {
		t := s.traffic.Totals()
		back := t.FirstToSocket
		s.record.ToServiceBytes, s.record.ToClientBytes = t.ToPeerBytes, t.ToSocketBytes
		if s.record.Direction == flow.Export {
			s.record.ToServiceBytes, s.record.ToClientBytes = t.ToSocketBytes, t.ToPeerBytes
			back = t.FirstToPeer
		}
		s.record.Timings = flow.Timings{OpenNs: int64(t.Open), FirstByteNs: int64(back), TotalNs: int64(time.Since(s.traffic.Begin()))}
	}
	s.record.Why = s.record.Why[:min(len(s.record.Why), whyMax)]
	s.ledger.mu.Lock()
	s.leaveLocked()
	s.ledger.mu.Unlock()
	s.ledger.put(s.record)
}

// leaveLocked moves what the stream has carried to its account.
func (s *Stream) leaveLocked() {
	if s.way == nil {
		return
	}
	a := s.ledger.accounts[*s.way]
	a.ended.add(s.traffic.Totals())
	delete(a.open, s)
	s.way = nil
}
