package native

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Training teaches TCP a path before anybody waits for it: over a fresh connection it
// sends as much as the first window has room for, and needs ten round trips until a
// megabyte goes in one, whatever the link carries. Bytes for nobody are sent until
// queues or a loss show that the path is full, or the budget is spent.
type Training struct {
	perConnection int64
	budget        *rate.Limiter
	extra         *Extra // that counts it
	// calls is held by the connection to a gateway that learns, answers by the one from it:
	// of two each would learn a half. Lanes share them.
	calls, answers *semaphore.Weighted
}

// lanesAtOnce is how many lanes learn at once in each direction: one has to carry a small part
// of what the path does.
const lanesAtOnce = 4

// NewTraining allows so many bytes for each connection, and so many in any hour for all of
// them: half at once, and as many again by and by. Without bytes it is nil: nothing is trained.
func NewTraining(perConnection, perHour int64, extra *Extra) *Training {
	if perConnection <= 0 || perHour <= 0 {
		return nil
	}
	half := float64(perHour) / 2
	return &Training{
		perConnection: perConnection, extra: extra, budget: rate.NewLimiter(rate.Limit(half/time.Hour.Seconds()), int(half)),
		calls: semaphore.NewWeighted(lanesAtOnce), answers: semaphore.NewWeighted(lanesAtOnce),
	}
}

// lesson is how far the training of a connection has come.
type lesson struct {
	sent       int64
	rtt, least time.Duration // now, and the least there was
	count                    // what TCP sent again is what was lost
	// standing is since when a queue stands on the path, zero while there is none.
	standing time.Time
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
func (l *lesson) see(now time.Time, rtt, least, varies time.Duration) {
	l.rtt, l.least = rtt, least
	switch {
	case !congested(rtt, least, varies):
		l.standing = time.Time{}
	case l.standing.IsZero():
		l.standing = now
	}
}

// shortest is the round trip below which a window grows in no time.
const shortest = time.Millisecond

// over says whether a connection has learnt what there is to learn, or costs others
// something: one of two hundred packets is lost, and no few by chance.
func (l *lesson) over(most int64) bool {
	return l.sent >= most || l.least < shortest || l.rounds > roundsMost || l.loses(200, 4)
}

// queued says whether a queue stands for a round trip, and so has to go before more is sent.
func (l *lesson) queued(now time.Time) bool {
	return !l.standing.IsZero() && now.Sub(l.standing) > l.rtt
}

// full says, where a queue stood, whether the path is full: a machine on the way that
// pauses leaves a queue too, but then more comes through the next time, by a quarter.
func (l *lesson) full() bool {
	full := 4*l.rate < 5*l.before
	l.before, l.standing = l.rate, time.Time{}
	return full
}

// call teaches a connection to a gateway its path, and lets the gateway learn the way
// back.
func (t *Training) call(c *connection) {
	if t != nil {
		defer turn(t.calls, lanesAtOnce)()
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
		defer turn(t.answers, lanesAtOnce)()
	}
	t.train(c)
}

// train teaches a connection its path, until it is needed or ends, and tells the peer.
func (t *Training) train(c *connection) {
	if t != nil {
		p := padding{c.leg, c.idle, make([]byte, headerBytes+payloadMax), func(b []byte) error { return c.out(kindPad, 0, b) }}
		const forProbe = 8 // a part
		t.probe(p, t.perConnection, t.teach(p, t.perConnection-t.perConnection/forProbe))
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
	one := t.calls
	if from {
		one = t.answers
	}
	defer turn(one, 1)()
	pad := append(shard{size: pieceLeast}.append(nil), make([]byte, pieceLeast)...)
	idle := func() bool { return len(l.queue) == 0 }
	t.teach(padding{l.leg, idle, pad, func(b []byte) error { _, err := l.conn.Write(b); return err }}, laneTraining)
}

// turnLong is how long a turn lasts at most. A lesson takes some round trips, but one whose peer is
// gone waits to write for as long as TCP tries, and would have no other gateway's path be learnt.
const turnLong = 10 * time.Second

// turn waits for one, and gives what ends that.
func turn(turns *semaphore.Weighted, weight int64) (done func()) {
	_ = turns.Acquire(context.Background(), weight) // which never ends
	over := sync.OnceFunc(func() { turns.Release(weight) })
	late := time.AfterFunc(turnLong, over)
	return func() {
		late.Stop()
		over()
	}
}

// padding is bytes for nobody that go out over a leg while it is idle.
type padding struct {
	leg
	idle  func() bool
	bytes []byte
	out   func([]byte) error
}

// padWaiting is how much padding waits to be sent at most.
const padWaiting = 256 << 10

// teach sends padding over a leg until it has learnt or is needed, and says how far it came.
func (t *Training) teach(p padding, most int64) (at lesson) {
	p.hold(padWaiting)
	defer p.hold(0)
	p.blame(true) // for it fills a queue, perhaps until that overflows
	t.fill(p, most, &at)
	p.drain(p.idle)
	p.blame(false)
	at.ask(p.leg) // what was on its way tells the most
	return at
}

// fill sends padding until there is nothing more to learn, or too little is left to send.
func (t *Training) fill(p padding, most int64, at *lesson) {
	for ; p.idle() && at.ask(p.leg); at.sent += int64(len(p.bytes)) {
		now := time.Now()
		if at.sent == 0 {
			p.restsFor(at.least)
		}
		if at.queued(now) {
			p.drain(p.idle)
			if at.full() {
				return
			}
		}
		if at.over(most) || !t.budget.AllowN(now, len(p.bytes)) {
			return
		}
		if err := t.pad(p); err != nil {
			return // who reads is told too
		}
	}
}

// pad sends padding once.
func (t *Training) pad(p padding) error {
	err := p.out(p.bytes)
	if err == nil {
		t.extra.Training.Add(uint64(len(p.bytes)))
	}
	return err
}

// probe sends padding at half the rate that a lesson has found, for some round trips. That
// makes no queue, so what is lost of it is the path's, unless others have made one.
func (t *Training) probe(p padding, most int64, after lesson) {
	left, rate := after.probes(most)
	before := p.info()
	if left <= 0 || before == nil || !p.idle() {
		return
	}
	p.hold(padWaiting)
	defer p.hold(0)
	p.pace(rate)
	defer p.pace(unpaced)
	defer func() {
		p.drain(p.idle)
		now := p.info()
		if now != nil && (congestedBy(now) || countOf(now).minus(countOf(before)).loses(50, 1)) {
			p.forgive() // others have filled the path
			p.blame(false)
		}
	}()
	known := time.Now().Add(2 * after.least) // until then TCP tells of the lesson's queue
	for ; left > 0 && p.idle(); left -= int64(len(p.bytes)) {
		now := time.Now()
		if now.After(known) && congestedBy(p.info()) || !t.budget.AllowN(now, len(p.bytes)) {
			return
		}
		if err := t.pad(p); err != nil {
			return // who reads is told too
		}
	}
}

// probes are the bytes of a probe that follows, and how many of them in a second: none where
// there was nothing to learn. BBR forgets in ten round trips what rate it knew.
func (l *lesson) probes(most int64) (bytes int64, rate uint64) {
	const rounds, enough = 4, 2 << 20
	if l.sent == 0 {
		return 0, 0
	}
	rate = l.rate / 2
	return min(enough, most-l.sent, int64(rounds*l.least.Seconds()*float64(rate))), rate
}

// ask notes what TCP knows now, if it does.
func (l *lesson) ask(of leg) bool {
	info := of.info()
	if info == nil {
		return false
	}
	l.see(time.Now(), micros(info.Rtt), micros(info.Min_rtt), micros(info.Rttvar))
	l.count, l.rate = countOf(info), max(l.rate, info.Delivery_rate)
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
