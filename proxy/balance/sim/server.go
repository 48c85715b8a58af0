package sim

import "time"

// server is a pod: so many cores, and what waits for them.
type server struct {
	cores, busy int
	waiting     []*request
	head        int // of waiting

	moved           time.Duration // when busy or waiting last changed
	worked          float64       // busy × ns since usage was told
	queued          float64       // in flight × ns since the queue was told
	spent, services float64       // busy × ns, and requests that ended, with those long ago decayed
}

// here is what is at the server.
func (s *server) here() int { return s.busy + len(s.waiting) - s.head }

// tally adds up to now.
func (s *server) tally(now time.Duration) {
	span := float64(now - s.moved)
	s.worked += span * float64(s.busy)
	s.spent += span * float64(s.busy)
	s.queued += span * float64(s.here())
	s.moved = now
}

// begin has a request at the server, and says whether there is a core for it.
func (s *server) begin(now time.Duration, q *request) bool {
	s.tally(now)
	if s.busy < s.cores {
		s.busy++
		return true
	}
	s.waiting = append(s.waiting, q)
	return false
}

// end frees a core, and gives who takes it: nil is nobody.
func (s *server) end(now time.Duration) *request {
	s.tally(now)
	s.services++
	if s.head == len(s.waiting) {
		s.busy--
		return nil
	}
	q := s.waiting[s.head]
	if s.head++; 2*s.head > len(s.waiting) {
		s.waiting = append(s.waiting[:0], s.waiting[s.head:]...)
		s.head = 0
	}
	return q
}
