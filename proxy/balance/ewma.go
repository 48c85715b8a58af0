package balance

import (
	"math"
	"time"
)

// decay is the time in which what was seen of an endpoint's latency loses its weight,
// but for a share of 1/e.
const decay = 10 * time.Second

// peak is a moving average of latency that rises at once and falls by and by: the peak
// EWMA of Finagle, with which the better of two random endpoints is chosen.
type peak struct {
	mean float64 // ns
	at   time.Duration
}

func (p *peak) add(now, took time.Duration) {
	ns := float64(took)
	if ns >= p.mean {
		p.mean = ns
	} else {
		keep := math.Exp(-float64(now-p.at) / float64(decay))
		p.mean = p.mean*keep + ns*(1-keep)
	}
	p.at = now
}

// ewma takes of two random endpoints the one whose latency, for each that is in flight
// there and the one to come, is less.
type ewma struct{}

func (ewma) refresh(*field, time.Duration) {}

func (ewma) observe(e *endpoint, now, took time.Duration) { e.latency.add(now, took) }

func (ewma) pick(f *field, now time.Duration) *endpoint {
	a, b := f.two(f.endpoints)
	if b.load(now) < a.load(now) {
		return b
	}
	return a
}

func (e *endpoint) load(now time.Duration) float64 {
	return e.latency.mean * e.crowded(now)
}
