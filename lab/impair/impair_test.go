package impair_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

const ms = quantity.Duration(time.Millisecond)

func TestCheckAcceptsWhatIsGood(t *testing.T) {
	for _, good := range []impair.Impairment{
		{},
		{Loss: 1},
		{Delay: 60_000 * ms},
		{Delay: 5 * ms, Jitter: 5 * ms},
		{Delay: 5 * ms, Jitter: 9 * ms, Distribution: impair.Normal},
		{Delay: 5 * ms, Jitter: ms, Distribution: impair.Uniform, Reorder: true, Loss: 0.0008, Rate: 1e9, Queue: 64 << 10},
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		bad         impair.Impairment
		field, want string
	}{
		{impair.Impairment{Delay: -ms}, "delay", "delay -1ms is negative; write 0 or more"},
		{impair.Impairment{Delay: 60_001 * ms}, "delay", "delay 1m0.001s is too long; write at most 1m0s"},
		{impair.Impairment{Delay: ms, Jitter: -ms}, "jitter", "jitter -1ms is negative; write 0 or more"},
		{impair.Impairment{Jitter: ms}, "jitter", "jitter 1ms has no delay to vary; set delay as well"},
		{impair.Impairment{Delay: ms, Jitter: 2 * ms}, "jitter", "jitter 2ms is larger than delay 1ms; a packet cannot arrive before it was sent: write at most the delay"},
		{impair.Impairment{Delay: ms, Jitter: 60_001 * ms, Distribution: impair.Normal}, "jitter", "jitter 1m0.001s is too long; write at most 1m0s"},
		{impair.Impairment{Delay: ms, Jitter: ms, Distribution: "pareto"}, "distribution", `distribution "pareto" is not known; write uniform or normal`},
		{impair.Impairment{Delay: ms, Distribution: impair.Normal}, "distribution", "distribution normal has no jitter to shape; set jitter as well"},
		{impair.Impairment{Delay: ms, Reorder: true}, "reorder", "reorder has no jitter to come from; set jitter as well"},
		{impair.Impairment{Loss: 1.5}, "loss", "loss 150% is no probability; write 0% to 100%"},
		{impair.Impairment{Loss: quantity.Fraction(math.NaN())}, "loss", ""},
		{impair.Impairment{Rate: -1}, "rate", "rate -1bit is negative; write 0 or more"},
		{impair.Impairment{Queue: 1500}, "queue", "queue 1500B has no rate to wait for; set rate as well"},
		{impair.Impairment{Rate: 1e9, Queue: -1}, "queue", "queue -1B is negative; write 0 or more"},
	} {
		err := c.bad.Check()
		var wrong *impair.Error
		if !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%+v: got error %v, want one of %s", c.bad, err, c.field)
		} else if c.want != "" && err.Error() != c.want {
			t.Errorf("%+v: got error %q, want %q", c.bad, err, c.want)
		}
	}
}

func TestQueueIsOneBandwidthDelayProduct(t *testing.T) {
	for _, c := range []struct {
		name string
		link impair.Impairment
		want int64
	}{
		{"round trip of 40 ms at 1 Gbit/s", impair.Impairment{Delay: 20 * ms, Rate: 1e9}, 5_000_000},
		{"short: 100 frames of 1514 bytes", impair.Impairment{Delay: ms / 10, Rate: 1e9}, 151_400},
		{"as asked for", impair.Impairment{Delay: 20 * ms, Rate: 1e9, Queue: 3000}, 3000},
	} {
		if got := c.link.QueueBytes(); got != c.want {
			t.Errorf("%s: got %d bytes, want %d", c.name, got, c.want)
		}
	}
}

func TestIsZeroAndSplitsPackets(t *testing.T) {
	for _, c := range []struct {
		name         string
		link         impair.Impairment
		zero, splits bool
	}{
		{"nothing", impair.Impairment{}, true, false},
		{"a distribution of nothing", impair.Impairment{Distribution: impair.Normal}, true, false},
		{"delay", impair.Impairment{Delay: ms}, false, false},
		{"jitter", impair.Impairment{Delay: ms, Jitter: ms}, false, true},
		{"loss", impair.Impairment{Loss: 0.1}, false, true},
		{"rate", impair.Impairment{Rate: 1e6}, false, true},
	} {
		if got := c.link.IsZero(); got != c.zero {
			t.Errorf("%s: IsZero is %v", c.name, got)
		}
		if got := c.link.SplitsPackets(impair.UnitPacket); got != c.splits {
			t.Errorf("%s: splits packets: %v, want %v", c.name, got, c.splits)
		}
		if c.link.SplitsPackets(impair.UnitSuperpacket) {
			t.Errorf("%s: splits super-packets", c.name)
		}
	}
}

func TestTolerance(t *testing.T) {
	for delay, want := range map[quantity.Duration]time.Duration{
		0: 100 * time.Microsecond, 5 * ms: 100 * time.Microsecond, 6 * ms: 120 * time.Microsecond, 50 * ms: time.Millisecond,
	} {
		if got := (impair.Impairment{Delay: delay}).Tolerance().Std(); got != want {
			t.Errorf("a delay of %s has %s, want %s", delay, got, want)
		}
	}
}

func TestMinus(t *testing.T) {
	early := impair.Counters{Packets: 10, Bytes: 1000, Lost: 1, Overflowed: 2, Late: 3, LateMaxNs: 90, Missed: 4}
	later := impair.Counters{Packets: 30, Bytes: 5000, Lost: 2, Overflowed: 2, Late: 5, LateMaxNs: 90, Missed: 4}
	want := impair.Counters{Packets: 20, Bytes: 4000, Lost: 1, Late: 2, LateMaxNs: 90}
	if got, forward := later.Minus(early); got != want || !forward {
		t.Errorf("got %+v, %v, want %+v", got, forward, want)
	}
	// Any count that has gone backwards tells that they began anew.
	for name, back := range map[string]func(*impair.Counters){
		"packets":    func(c *impair.Counters) { c.Packets = 9 },
		"bytes":      func(c *impair.Counters) { c.Bytes = 999 },
		"lost":       func(c *impair.Counters) { c.Lost = 0 },
		"overflowed": func(c *impair.Counters) { c.Overflowed = 1 },
		"late":       func(c *impair.Counters) { c.Late = 2 },
		"missed":     func(c *impair.Counters) { c.Missed = 3 },
	} {
		anew := later
		back(&anew)
		if got, forward := anew.Minus(early); got != anew || forward {
			t.Errorf("%s: got %+v, %v, want all since then", name, got, forward)
		}
	}
}
