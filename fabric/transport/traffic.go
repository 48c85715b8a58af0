package transport

import (
	"io"
	"sync/atomic"
	"time"
)

// Traffic is what passes on one stream, as this side's gateway sees it. The transport
// counts where bytes pass; the gateway that made the request reads, at any time. It is
// safe for concurrent use. A nil Traffic counts nothing.
type Traffic struct {
	begin time.Time
	// Allowed names the policy by which the stream may be. Whoever decides writes it,
	// before bytes pass.
	Allowed string

	pace             *Pace
	opened           atomic.Int64 // ns since begin, 0 before
	toPeer, toSocket count
	over             func(error)
}

// count is of one direction.
type count struct {
	bytes atomic.Int64
	first atomic.Int64 // ns since the begin of the stream, 0 before
}

// NewTraffic makes that of a stream whose client has asked for it at that time.
func NewTraffic(now time.Time) *Traffic { return &Traffic{begin: now} }

// Pace has the stream share a bound with others, which may hold it up where its bytes are
// counted. It is set before bytes pass.
func (t *Traffic) Pace(p *Pace) {
	if t != nil {
		t.pace = p
	}
}

// Begin is when the stream was asked for.
func (t *Traffic) Begin() time.Time { return t.begin }

// Opened notes that the way is open: to the peer at the side that calls, to the service
// at the one that is called.
func (t *Traffic) Opened() {
	if t != nil {
		t.opened.Store(t.since())
	}
}

// ToPeer counts bytes that this side's socket has said and the peer is sent.
func (t *Traffic) ToPeer(n int) {
	if t != nil {
		t.toPeer.add(n, t)
		if t.pace != nil {
			wait(t.pace.toPeer, n)
		}
	}
}

// ToSocket counts bytes of the peer that this side's socket has taken.
func (t *Traffic) ToSocket(n int) {
	if t != nil {
		t.toSocket.add(n, t)
		if t.pace != nil {
			wait(t.pace.fromPeer, n)
		}
	}
}

// OnEnd has a function called when a stream of the side that is called is over, with why
// it broke, if it did. The side that calls learns that from Carry.
func (t *Traffic) OnEnd(over func(error)) {
	if t != nil {
		t.over = over
	}
}

// End says that the stream is over.
func (t *Traffic) End(err error) {
	if t != nil && t.over != nil {
		t.over(err)
	}
}

// Totals are numbers of a stream so far.
type Totals struct {
	ToPeerBytes, ToSocketBytes int64
	// Open, FirstToPeer and FirstToSocket count from the begin, 0 for what has not
	// happened.
	Open, FirstToPeer, FirstToSocket time.Duration
}

// Totals reads them.
func (t *Traffic) Totals() Totals {
	return Totals{
		t.toPeer.bytes.Load(), t.toSocket.bytes.Load(),
		time.Duration(t.opened.Load()), time.Duration(t.toPeer.first.Load()), time.Duration(t.toSocket.first.Load()),
	}
}

// since is the time since the begin; never 0, which says that something was not yet.
func (t *Traffic) since() int64 { return max(int64(time.Since(t.begin)), 1) }

// add reads no clock but for the first bytes.
func (c *count) add(n int, t *Traffic) {
	if n > 0 && c.bytes.Add(int64(n)) == int64(n) {
		c.first.Store(t.since())
	}
}

// counted tells of the bytes that a writer takes.
type counted struct {
	io.Writer
	add func(int)
}

// Write writes, and counts.
func (c counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.add(n)
	return n, err
}
