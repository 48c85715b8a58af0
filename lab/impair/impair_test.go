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
		{Delay: 5 * ms, Jitter: ms, Distribution: impair.Uniform, Unordered: true, Loss: 0.0008, Rate: 1e9, Queue: 64 << 10},
		{Delay: 5 * ms, Jitter: 5 * ms, Distribution: impair.Pareto},
		{Distribution: "wan.csv"},
		{Delay: 5 * ms, Jitter: 9 * ms, Distribution: "./wan"},
		{Distribution: "../wan", Unordered: true},
		{Delay: ms, Reorder: 0.25, Duplicate: 1, Corrupt: 1},
		{Loss: 0.001, Burst: impair.Burst{Enter: 0.01, Leave: 0.25, Loss: 0.9}},
		{Burst: impair.Burst{Enter: 1, Leave: 1}},
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
		{impair.Impairment{Jitter: ms, Distribution: "wan.csv"}, "jitter", "jitter 1ms has no delay to vary; set delay as well"},
		{impair.Impairment{Delay: ms, Jitter: 2 * ms}, "jitter", "jitter 2ms is larger than delay 1ms; a packet cannot arrive before it was sent: write at most the delay"},
		{impair.Impairment{Delay: ms, Jitter: 60_001 * ms, Distribution: impair.Normal}, "jitter", "jitter 1m0.001s is too long; write at most 1m0s"},
		{impair.Impairment{Delay: ms, Jitter: ms, Distribution: "cauchy"}, "distribution", `distribution "cauchy" is not known; write uniform, normal, pareto, or a file such as delays.csv or ./delays`},
		{impair.Impairment{Delay: ms, Jitter: 2 * ms, Distribution: impair.Pareto}, "jitter", ""},
		{impair.Impairment{Delay: ms, Distribution: impair.Normal}, "distribution", "distribution normal has no jitter to shape; set jitter as well"},
		{impair.Impairment{Delay: ms, Unordered: true}, "unordered", "unordered has no jitter to come from; set jitter as well"},
		{impair.Impairment{Reorder: 0.01}, "reorder", "reorder 1% has no delay to skip; set delay as well"},
		{impair.Impairment{Delay: ms, Reorder: 0.26}, "reorder", "with reorder 26% the delay could not be proven; write at most 25%"},
		{impair.Impairment{Delay: ms, Reorder: -0.1}, "reorder", ""},
		{impair.Impairment{Duplicate: 1.5}, "duplicate", "duplicate 150% is no probability; write 0% to 100%"},
		{impair.Impairment{Corrupt: quantity.Fraction(math.NaN())}, "corrupt", ""},
		{impair.Impairment{Burst: impair.Burst{Enter: 2, Leave: 1}}, "burst.enter", "burst.enter 200% is no probability; write 0% to 100%"},
		{impair.Impairment{Burst: impair.Burst{Enter: 0.1, Leave: -1}}, "burst.leave", ""},
		{impair.Impairment{Burst: impair.Burst{Enter: 0.1, Leave: 0.1, Loss: 7}}, "burst.loss", ""},
		{impair.Impairment{Burst: impair.Burst{Leave: 0.1}}, "burst.enter", "a burst with enter 0% never begins; write how likely a packet begins one, such as 1%"},
		{impair.Impairment{Burst: impair.Burst{Enter: 0.1}}, "burst.leave", "a burst with leave 0% never ends; write how likely a packet ends one, such as 25%"},
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
		{"a distribution that is to be read", impair.Impairment{Distribution: "wan.csv"}, false, false},
		{"delay", impair.Impairment{Delay: ms}, false, false},
		{"jitter", impair.Impairment{Delay: ms, Jitter: ms}, false, true},
		{"loss", impair.Impairment{Loss: 0.1}, false, true},
		{"rate", impair.Impairment{Rate: 1e6}, false, true},
		{"reorder", impair.Impairment{Delay: ms, Reorder: 0.1}, false, true},
		{"burst", impair.Impairment{Burst: impair.Burst{Enter: 0.1, Leave: 0.1}}, false, true},
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
	for _, copies := range []impair.Impairment{{Duplicate: 0.1}, {Corrupt: 0.1}} {
		if copies.IsZero() || !copies.SplitsPackets(impair.UnitPacket) || !copies.SplitsPackets(impair.UnitSuperpacket) {
			t.Errorf("%s: does nothing, or does it to a super-packet", copies)
		}
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct {
		link impair.Impairment
		want string
	}{
		{impair.Impairment{}, "nothing"},
		{impair.Impairment{Delay: 5 * ms, Jitter: ms, Loss: 0.0008, Rate: 1e9}, "5ms ±1ms 0.08% 1gbit"},
		{impair.Impairment{Burst: impair.Burst{Enter: 0.01, Leave: 0.25}}, "burst 1%/25%"},
		{
			impair.Impairment{Delay: ms, Burst: impair.Burst{Enter: 0.01, Leave: 0.25, Loss: 0.9}, Duplicate: 0.02, Corrupt: 0.03, Reorder: 0.04},
			"1ms burst 1%/25%/90% duplicate 2% corrupt 3% reorder 4%",
		},
	} {
		if got := c.link.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestMeanLoss(t *testing.T) {
	for _, c := range []struct {
		link impair.Impairment
		want float64
	}{
		{impair.Impairment{}, 0},
		{impair.Impairment{Loss: 0.01}, 0.01},
		{impair.Impairment{Burst: impair.Burst{Enter: 0.01, Leave: 0.24}}, 0.04},
		{impair.Impairment{Loss: 0.5, Burst: impair.Burst{Enter: 0.1, Leave: 0.3, Loss: 0.9}}, 0.6},
	} {
		if got := c.link.MeanLoss(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: got %g, want %g", c.link, got, c.want)
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

// came are the counts of the first two further stages.
func came(first, second uint64) [impair.StagesMax - 1]uint64 {
	return [impair.StagesMax - 1]uint64{first, second}
}

func TestMinus(t *testing.T) {
	early := impair.Counters{Packets: 10, Bytes: 1000, Lost: 1, Overflowed: 2, Late: 3, LateMaxNs: 90, Missed: 4, Duplicated: 5, Corrupted: 6, Reordered: 7, Came: came(8, 9)}
	later := impair.Counters{Packets: 30, Bytes: 5000, Lost: 2, Overflowed: 2, Late: 5, LateMaxNs: 90, Missed: 4, Duplicated: 7, Corrupted: 9, Reordered: 11, Came: came(20, 10)}
	want := impair.Counters{Packets: 20, Bytes: 4000, Lost: 1, Late: 2, LateMaxNs: 90, Duplicated: 2, Corrupted: 3, Reordered: 4, Came: came(12, 1)}
	if got, forward := later.Minus(early); got != want || !forward {
		t.Errorf("got %+v, %v, want %+v", got, forward, want)
	}
	if sum := want.Plus(early); sum != later {
		t.Errorf("added again they are %+v, want %+v", sum, later)
	}
	// Any count that has gone backwards tells that they began anew.
	for name, back := range map[string]func(*impair.Counters){
		"packets":    func(c *impair.Counters) { c.Packets = 9 },
		"bytes":      func(c *impair.Counters) { c.Bytes = 999 },
		"lost":       func(c *impair.Counters) { c.Lost = 0 },
		"overflowed": func(c *impair.Counters) { c.Overflowed = 1 },
		"late":       func(c *impair.Counters) { c.Late = 2 },
		"missed":     func(c *impair.Counters) { c.Missed = 3 },
		"duplicated": func(c *impair.Counters) { c.Duplicated = 4 },
		"corrupted":  func(c *impair.Counters) { c.Corrupted = 5 },
		"reordered":  func(c *impair.Counters) { c.Reordered = 6 },
		"came":       func(c *impair.Counters) { c.Came[1] = 8 },
	} {
		anew := later
		back(&anew)
		if got, forward := anew.Minus(early); got != anew || forward {
			t.Errorf("%s: got %+v, %v, want all since then", name, got, forward)
		}
	}
}
