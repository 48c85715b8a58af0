package transport

import (
	"context"

	"golang.org/x/time/rate"
)

// Pace bounds the bytes that all streams with a peer together carry a second, each way. A
// nil Pace bounds nothing. It is safe for concurrent use.
type Pace struct{ toPeer, fromPeer *rate.Limiter }

// paceBurst is what may pass at once, more than a stream ever says in one piece.
const paceBurst = 256 << 10

// NewPace makes one of bytes a second.
func NewPace(perSecond int64) *Pace {
	return &Pace{rate.NewLimiter(rate.Limit(perSecond), paceBurst), rate.NewLimiter(rate.Limit(perSecond), paceBurst)}
}

// Set changes it for all streams that are open.
func (p *Pace) Set(perSecond int64) {
	p.toPeer.SetLimit(rate.Limit(perSecond))
	p.fromPeer.SetLimit(rate.Limit(perSecond))
}

// wait holds a stream up for bytes that it has carried: it reads no more meanwhile, and
// who says them is held up by TCP.
func wait(l *rate.Limiter, n int) {
	for n > 0 {
		part := min(n, paceBurst)
		_ = l.WaitN(context.Background(), part) // it fails for parts above the burst alone
		n -= part
	}
}
