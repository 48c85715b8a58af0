package native

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Training teaches TCP a path before anybody waits for it: over a fresh connection it
// sends as much as the first window has room for, and needs ten round trips until a
// megabyte goes in one, whatever the link carries. Bytes for nobody are sent until
// queues or a loss show that the path is full, or the budget is spent.
type Training struct {
	perConnection int64
	budget        *rate.Limiter
	// calls is held by the connection to a gateway that learns, answers by the one from it:
	// of two each would learn a half.
	calls, answers sync.Mutex
}

// NewTraining allows so many bytes for each connection, and so many in an hour for all of
// them, at most those at once. Without bytes it is nil: nothing is trained.
func NewTraining(perConnection, perHour int64) *Training {
	if perConnection <= 0 || perHour <= 0 {
		return nil
	}
	return &Training{perConnection: perConnection, budget: rate.NewLimiter(rate.Limit(float64(perHour)/time.Hour.Seconds()), int(perHour))}
}

// lesson is how far the training of a connection has come.
type lesson struct {
	sent        int64
	rtt, least  time.Duration // now, and the least there was
	packets     uint32
	retransmits uint32
	// crowded is since when a queue stands on the path, zero while there is none.
	crowded time.Time
	// rate is the most that came through, in bytes a second; before is what it was when a
	// queue stood last.
	rate, before uint64
	growth
}

// growth counts the round trips since more came through, by a quarter. A round is over when
// all is delivered that was on its way at its begin, however long a machine pauses
// (draft-ietf-ccwg-bbr has the same rounds and the same quarter).
type growth struct {
	end    uint32 // packets delivered by the end of this round
	least  uint64 // the rate that counts as more
	rounds int
}

// note takes what TCP has delivered, what is on its way, and the most that came through.
func (g *growth) note(delivered, underway uint32, rate uint64) {
	if rate >= g.least {
		g.least, g.rounds = rate+rate/4, 0
	}
	if delivered >= g.end {
		g.end = delivered + underway
		g.rounds++
	}
}

// roundsMost is how many round trips may pass without more: BBR, where it takes the path
// for full, tries for more in one of eight.
const roundsMost = 10

// see notes what TCP knows now.
func (l *lesson) see(now time.Time, rtt, least time.Duration) {
	l.rtt, l.least = rtt, least
	switch {
	case !crowded(rtt, least):
		l.crowded = time.Time{}
	case l.crowded.IsZero():
		l.crowded = now
	}
}

// shortest is the round trip below which a window grows in no time.
const shortest = time.Millisecond

// over says whether a connection has learnt what there is to learn, or costs others
// something: one of two hundred packets is lost.
func (l *lesson) over(most int64) bool {
	const lossOne, retransmitsLeast = 200, 2
	return l.sent >= most || l.least < shortest || l.rounds > roundsMost || l.retransmits >= retransmitsLeast && l.retransmits*lossOne > l.packets
}

// queued says whether a queue stands for a round trip, and so has to go before more is sent.
func (l *lesson) queued(now time.Time) bool {
	return !l.crowded.IsZero() && now.Sub(l.crowded) > l.rtt
}

// full says, where a queue stood, whether the path is full: a machine on the way that
// pauses leaves a queue too, but then more comes through the next time, by a quarter.
func (l *lesson) full() bool {
	full := 4*l.rate < 5*l.before
	l.before, l.crowded = l.rate, time.Time{}
	return full
}

// call teaches a connection to a gateway its path, and lets the gateway learn the way
// back.
func (t *Training) call(c *connection) {
	if t != nil {
		t.calls.Lock()
		defer t.calls.Unlock()
	}
	t.train(c)
	const long = 10 * time.Second
	for end := time.Now().Add(long); c.idle() && !c.there.Load() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// answer teaches a connection from a gateway its path.
func (t *Training) answer(c *connection) {
	if t != nil {
		t.answers.Lock()
		defer t.answers.Unlock()
	}
	t.train(c)
}

// train teaches a connection its path, until it is needed or ends, and tells the peer.
func (t *Training) train(c *connection) {
	if t != nil {
		pad := make([]byte, headerBytes+payloadMax)
		t.teach(c.leg, t.perConnection, c.idle, pad, func(b []byte) error { return c.out(kindPad, 0, b) })
	}
	if c.open != nil { // the peer has the parity made
		c.tellLoss()
	}
	c.taught()
}

// lane teaches a lane of a bundle its path, until it is needed: one to a gateway, or from it.
func (t *Training) lane(l *lane, from bool) {
	if t == nil {
		return
	}
	one := &t.calls
	if from {
		one = &t.answers
	}
	one.Lock()
	defer one.Unlock()
	pad := append(shard{size: pieceLeast}.append(nil), make([]byte, pieceLeast)...)
	idle := func() bool { return len(l.queue) == 0 }
	t.teach(l.leg, laneTraining, idle, pad, func(b []byte) error { _, err := l.conn.Write(b); return err })
}

// teach sends padding over a leg until it has learnt or is needed.
func (t *Training) teach(l leg, most int64, idle func() bool, pad []byte, out func([]byte) error) {
	const waiting = 256 << 10
	l.hold(waiting)
	defer l.hold(0)
	defer l.blame(false)
	defer l.drain(idle)
	for at := (lesson{}); idle(); at.sent += int64(len(pad)) {
		now, knows := time.Now(), at.ask(l)
		if !knows {
			return
		}
		if !at.crowded.IsZero() {
			l.blame(true) // a queue that overflows is of this training
		}
		if at.queued(now) {
			l.drain(idle)
			if at.full() {
				return
			}
		}
		if at.over(most) || !t.budget.AllowN(now, len(pad)) {
			return
		}
		if err := out(pad); err != nil {
			return // who reads is told too
		}
	}
}

// ask notes what TCP knows now, if it does.
func (l *lesson) ask(of leg) bool {
	info := of.info()
	if info == nil {
		return false
	}
	l.see(time.Now(), micros(info.Rtt), micros(info.Min_rtt))
	l.packets, l.retransmits, l.rate = info.Data_segs_out, info.Total_retrans, max(l.rate, info.Delivery_rate)
	l.note(info.Delivered, info.Unacked, l.rate)
	return true
}

// drain waits until the peer has got all that was sent, or the connection is needed.
func (l leg) drain(idle func() bool) {
	for idle() {
		const look = time.Millisecond
		info := l.info()
		if info == nil || info.Unacked == 0 && info.Notsent_bytes == 0 {
			return
		}
		time.Sleep(look)
	}
}

func micros(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
