package transport_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// What passes is counted from any goroutine, without an allocation; the times are those
// of what came first.
func TestTraffic(t *testing.T) {
	traffic := transport.NewTraffic(time.Now())
	if got := traffic.Totals(); got != (transport.Totals{}) {
		t.Errorf("before anything: %+v", got)
	}
	traffic.Opened()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				traffic.ToPeer(3)
				traffic.ToSocket(5)
			}
		})
	}
	all.Wait()
	before := traffic.Totals()
	if before.ToPeerBytes != 12_000 || before.ToSocketBytes != 20_000 || before.Open <= 0 || before.FirstToPeer < before.Open || before.FirstToSocket < before.Open {
		t.Errorf("got %+v", before)
	}
	if n := testing.AllocsPerRun(100, func() { traffic.ToPeer(1) }); n != 0 {
		t.Errorf("a frame costs %v allocations", n)
	}
	if after := traffic.Totals(); after.FirstToPeer != before.FirstToPeer {
		t.Errorf("the first byte was at %s, and is at %s", before.FirstToPeer, after.FirstToPeer)
	}
	var told error
	traffic.OnEnd(func(err error) { told = err })
	broken := errors.New("broken")
	if traffic.End(broken); !errors.Is(told, broken) {
		t.Errorf("told %v", told)
	}
}

// A stream that nobody counts is carried as well.
func TestNoTraffic(*testing.T) {
	var none *transport.Traffic
	none.Opened()
	none.ToPeer(1)
	none.ToSocket(1)
	none.OnEnd(func(error) {})
	none.End(nil)
}
