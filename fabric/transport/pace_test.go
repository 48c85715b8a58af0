package transport_test

import (
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// Streams that share a pace carry no more together than it says, each way by itself.
func TestPace(t *testing.T) {
	const perSecond, burst = 4 << 20, 256 << 10
	p := transport.NewPace(perSecond)
	one, two := transport.NewTraffic(time.Now()), transport.NewTraffic(time.Now())
	one.Pace(p)
	two.Pace(p)
	began := time.Now()
	one.ToPeer(burst)
	one.ToSocket(burst) // the other way has its own
	free := time.Since(began)
	two.ToPeer(perSecond / 4)
	took := time.Since(began)
	if took < 240*time.Millisecond || free > took {
		t.Errorf("a quarter of what may pass in a second took %s, a burst before it %s", took, free)
	}
	p.Set(1 << 40)
	again := time.Now()
	two.ToPeer(perSecond)
	if fast := time.Since(again); fast > took {
		t.Errorf("a second's bytes took %s after the bound was lifted", fast)
	}
}
