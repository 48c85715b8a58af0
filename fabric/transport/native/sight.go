package native

import (
	"context"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// sight is what a pool sees of its way: how many packets are lost, and how long the gateway
// at its end takes to answer.
type sight struct {
	meter
	// back is of what the gateway sends, and told what it has said of that since a second.
	back meter
	told count
	// asked is since when a question has no answer, zero where none is open; alive is when
	// the last one was asked that has one.
	asked, alive time.Time
	// rtt is how long answers take of late, 0 before there was one.
	rtt time.Duration
}

const (
	// askEvery is how long a gateway rests between questions.
	askEvery = 250 * time.Millisecond
	// silentAfter is how long a gateway may leave one open, beyond twice the usual, until
	// others are taken.
	silentAfter = 500 * time.Millisecond
	// goneAfter is how long until it is told those who have called it since, and have
	// heard nothing.
	goneAfter = 3 * time.Second
)

// add adds what happened in a second, both ways.
func (s *sight) add(sent count) {
	s.meter.add(sent)
	s.back.add(s.told)
	s.told = count{}
}

// lossy says whether packets are lost on one of the ways, and loss what share on the worse.
func (s *sight) lossy() bool   { return s.meter.lossy() || s.back.lossy() }
func (s *sight) loss() float64 { return max(s.meter.loss(), s.back.loss()) }

// ask notes a question.
func (s *sight) ask(now time.Time) {
	if s.asked.IsZero() {
		s.asked = now
	}
}

// answer notes an answer. One that took longer than usual counts at once, one that was
// faster by a fifth: who chooses is told early that a way has become worse.
func (s *sight) answer(rtt time.Duration) {
	const part = 5
	s.alive, s.asked = s.asked, time.Time{}
	if rtt >= s.rtt || s.rtt == 0 {
		s.rtt = rtt
		return
	}
	s.rtt -= (s.rtt - rtt) / part
}

// silence is for how long the gateway owes an answer.
func (s *sight) silence(now time.Time) time.Duration {
	if s.asked.IsZero() {
		return 0
	}
	return now.Sub(s.asked)
}

// silent says whether it owes one for longer than it should.
func (s *sight) silent(now time.Time) bool { return s.silence(now) > silentAfter+2*s.rtt }

// ask asks the gateway over and over whether it is there, on the connection that streams
// share, until that ends. One on which no more begin ends with the last of them.
func (p *Pool) ask(s *session) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for p.see(s, func() { p.sight.ask(time.Now()) }) || s.NumStreams() > 0 {
		if rtt, err := s.Ping(); err == nil {
			p.see(s, func() { p.sight.answer(rtt) })
		}
		select {
		case <-s.CloseChan():
			return
		case <-tick.C:
		}
	}
	_ = s.Close() // nobody uses it
}

// see notes something of the way, if streams still begin on the session, and says so.
func (p *Pool) see(s *session, note func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared != s {
		return false
	}
	note()
	return true
}

// watch looks every second what packets are lost and who is silent, until the context
// ends.
func (p *Pool) watch(ctx context.Context) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-look.C:
			p.measure()
			p.giveUp(now)
		}
	}
}

// giveUp breaks streams off that were begun since a gateway that is silent was last heard,
// and of which it has said nothing: they would wait for as long as TCP tries.
func (p *Pool) giveUp(now time.Time) {
	p.mu.Lock()
	since := p.sight.alive
	gone := p.sight.silence(now) > goneAfter
	var open []*connection
	for c := range p.all {
		if gone {
			open = append(open, c)
		}
	}
	p.mu.Unlock()
	for _, c := range open {
		c.breakUnheard(since)
	}
}

// Path implements transport.Carrier.
func (p *Pool) Path() transport.Path {
	p.mu.Lock()
	defer p.mu.Unlock()
	ready := (len(p.free) > 0 || p.shared != nil) && !p.sight.silent(time.Now())
	return transport.Path{Ready: ready, RTT: p.sight.rtt, Loss: p.sight.loss(), Streams: p.demand.now}
}

// settledLocked says whether the connections that are needed are there, and both sides know
// their paths. One that a stream uses before may learn when that is over.
func (p *Pool) settledLocked() bool {
	known := 0
	for c := range p.all {
		switch {
		case !c.own:
		case c.settled():
			known++
		case c.idle():
			return false
		}
	}
	enough := p.shared != nil && known >= p.demand.connections(p.options.Ahead, p.options.Most)
	return enough && (!p.sight.lossy() || p.bundle != nil && p.bundle.settled())
}
