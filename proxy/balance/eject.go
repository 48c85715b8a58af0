package balance

import (
	"cmp"
	"slices"
	"time"
)

// An endpoint that fails failuresMax times in a row, each within failuresApart of the one
// before, is left out for ejectedFirst, then for twice as long each time, up to ejectedMost;
// where it took long to fail again, for ejectedFirst. Back again, its costs are held to be
// higher, by a factor that falls over slowStart. Never are more than half left out. Time has to
// tell as well as what is served, since connections without an answer do not.
const (
	failuresMax   = 5
	failuresApart = time.Minute
	ejectedFirst  = 10 * time.Second
	ejectedMost   = 5 * time.Minute
	slowStart     = 10 * time.Second
	slowShare     = 0.1 // of its worth, as it returns
)

// standing is how an endpoint has done.
type standing struct {
	failures int           // in a row
	failed   time.Duration // when it did last
	ejected  int           // times, without a good time between
	times    uint64        // in all
	until    time.Duration // left out until then; 0 is never
}

// out says whether the endpoint is left out.
func (s *standing) out(now time.Duration) bool { return now < s.until }

// share is what an endpoint is worth: 1, and less where it has returned lately.
func (s *standing) share(now time.Duration) float64 {
	if s.until == 0 || now-s.until >= slowStart {
		return 1
	}
	return max(slowShare, float64(now-s.until)/float64(slowStart))
}

// judge takes what came of a connection, where so many of all are left out already, and
// says whether this one is now.
func (s *standing) judge(now time.Duration, served bool, out, all int) bool {
	switch {
	case served:
		s.failures = 0
		if now-s.until > slowStart {
			s.ejected = 0
		}
		return false
	case s.out(now): // begun before
		return false
	}
	if now-s.failed > failuresApart {
		s.failures = 0
	}
	if now-s.until > ejectedMost {
		s.ejected = 0
	}
	s.failed = now
	if s.failures++; s.failures < failuresMax || 2*(out+1) > all {
		return false
	}
	s.until = now + min(ejectedMost, ejectedFirst<<min(s.ejected, 5))
	s.ejected++
	s.times++
	s.failures = 0
	return true
}

// readmit has those back that would return next, while more than half are left out: who took
// connections is gone.
func readmit(all []*endpoint, now time.Duration) {
	var out []*endpoint
	for _, e := range all {
		if e.standing.out(now) {
			out = append(out, e)
		}
	}
	if 2*len(out) <= len(all) {
		return
	}
	slices.SortFunc(out, func(a, b *endpoint) int { return cmp.Compare(a.standing.until, b.standing.until) })
	for _, e := range out[:len(out)-len(all)/2] {
		e.standing.until = now
	}
}
