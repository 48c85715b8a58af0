package dispatch

import (
	"maps"
	"net/netip"
	"time"
)

// sleepAfter is for how long nobody calls a side until nothing more is learned for it.
const sleepAfter = 10 * time.Minute

// stays says whether anything is to be known of a Service on: clients of this node have called
// it lately, or it has pods here.
func (t *Table) stays(s *service, now time.Duration) bool {
	if s.awake(now) || len(s.pods) > 0 {
		return true
	}
	t.dies(s.Key)
	if s.awake(now) { // called meanwhile, which may have been noted before that
		t.lives(s.Key)
		return true
	}
	return false
}

// awake says whether somebody chooses for a port of the Service, and has who has had nothing
// to choose for long sleep until there is something.
func (s *service) awake(now time.Duration) (awake bool) {
	for _, p := range s.ports {
		p.mu.Lock()
		for _, side := range p.called() {
			side.asleep = side.held == 0 && now-side.last > sleepAfter
			awake = awake || !side.asleep
		}
		maps.DeleteFunc(p.stays, func(_ netip.Addr, s stay) bool { return !awake && now > s.until })
		p.mu.Unlock()
	}
	return awake
}
