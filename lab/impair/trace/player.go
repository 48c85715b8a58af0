package trace

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Player says when packets leave a link that does what a trace did. Times are
// nanoseconds on any clock; packets are given in the order in which they arrive.
type Player struct {
	trace *Trace
	// began is when the round under way began, at the place in it.
	began int64
	place int
	// round is how many bits may go in one.
	round float64
	// free is when the packet before has left; left are the bytes that the
	// delivery at the place still lets go.
	free int64
	left int
	// queue holds what has arrived and not left.
	queue []leaving
	held  int64
}

type leaving struct {
	at    int64
	bytes int
}

// NewPlayer begins a trace at a time.
func NewPlayer(t *Trace, began int64) *Player {
	return &Player{trace: t, began: began, round: t.bits(t.Span), left: DeliveryBytes}
}

// Send has a packet of some bytes leave that arrives at a time: when its last
// byte has gone, and the delay that it meets from then on. A queue bound in
// bytes that would be exceeded makes it false: the packet is dropped.
func (p *Player) Send(arrival int64, bytes int, queue int64) (left int64, delay time.Duration, ok bool) {
	for len(p.queue) > 0 && p.queue[0].at <= arrival {
		p.held -= int64(p.queue[0].bytes)
		p.queue = p.queue[1:]
	}
	if p.held > 0 && p.held+int64(bytes) > queue {
		return 0, 0, false
	}
	if len(p.trace.Deliveries) > 0 {
		left = p.deliver(arrival, bytes)
	} else {
		left, delay = p.serialise(arrival, bytes)
	}
	p.free = left
	p.held += int64(bytes)
	p.queue = append(p.queue, leaving{left, bytes})
	return left, delay, true
}

// deliver takes the opportunities from the arrival on; the rest of the one that
// served the packet before is still there at its moment.
func (p *Player) deliver(arrival int64, bytes int) int64 {
	if p.moment() < arrival {
		p.await(arrival)
	}
	for bytes > p.left {
		bytes -= p.left
		p.next()
	}
	p.left -= bytes
	return p.moment()
}

// moment of the delivery at the place.
func (p *Player) moment() int64 { return p.began + int64(p.trace.Deliveries[p.place]) }

// await goes to the first delivery that is not before a time, which none has been
// yet. The last of a round is at its end, where the next round begins.
func (p *Player) await(now int64) {
	span := int64(p.trace.Span)
	rounds := (now - p.began - 1) / span
	p.began += rounds * span
	p.place, _ = slices.BinarySearch(p.trace.Deliveries, time.Duration(now-p.began))
	p.left = DeliveryBytes
}

// next goes to the delivery that follows.
func (p *Player) next() {
	p.left = DeliveryBytes
	p.place++
	if p.place == len(p.trace.Deliveries) {
		p.place = 0
		p.began += int64(p.trace.Span)
	}
}

// serialise sends the bits at the rates that hold meanwhile.
func (p *Player) serialise(arrival int64, bytes int) (int64, time.Duration) {
	now := max(arrival, p.free)
	bits := float64(bytes) * 8
	if bits > p.round { // whole rounds at once: one may be short and let next to nothing go
		rest := cmp.Or(math.Mod(bits, p.round), p.round)
		took := int64(math.Round((bits-rest)/p.round)) * int64(p.trace.Span)
		bits, p.began, now = rest, p.began+took, now+took
	}
	for {
		end := p.began + int64(p.trace.ends(p.place))
		if now >= end {
			p.reach(now)
			continue
		}
		s := p.trace.Steps[p.place]
		could := s.Rate * float64(end-now) / 1e9
		if bits <= could { // there are bits, so that the rate is not 0
			return now + int64(math.Ceil(bits/s.Rate*1e9)), s.Delay
		}
		bits -= could
		now = end
	}
}

// reach goes to the step that holds at a time, which none has yet.
func (p *Player) reach(now int64) {
	span := int64(p.trace.Span)
	rounds := (now - p.began) / span
	p.began += rounds * span
	p.place = p.trace.step(time.Duration(now - p.began))
}
