package proof

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// plainNs is the delay of the path without a link.
const plainNs = 30_000

// epoch is when probes begin, as CLOCK_REALTIME has it.
const epoch = int64(1_800_000_000_000_000_000)

// travel sends a probe of the link asked for over a link that does actual. The
// sender needs 8 us for a packet.
func travel(asked, actual impair.Stages, random *rand.Rand) []Timed {
	packets := Delays(asked...)
	rest, _ := Bursts(asked...)
	for _, p := range rest {
		p.At += 20 * time.Millisecond
		packets = append(packets, p)
	}
	const sendNs = 8_000
	var timed []Timed
	now := epoch
	for _, p := range packets {
		now = max(now+sendNs, epoch+int64(p.At))
		one := Timed{Packet: p, SentNs: now, ReceivedNs: 1}
		if all := actual.Together(); random.Float64() < 1-(1-all.MeanLoss())*(1-float64(all.Corrupt)) {
			one.ReceivedNs = 0
		}
		timed = append(timed, one)
	}
	due := make([]int64, len(timed))
	newModel(actual).pass(timed, random, due)
	for i := range timed {
		if timed[i].ReceivedNs > 0 {
			timed[i].ReceivedNs = due[i] + plainNs
		}
	}
	return timed
}

func TestPass(t *testing.T) {
	// Frames of 125 bytes at 1 Mbit/s take 1 ms each.
	sent := func(at ...time.Duration) (all []Timed) {
		for _, d := range at {
			all = append(all, Timed{Packet: Packet{Payload: 125 - overhead}, SentNs: epoch + int64(d), ReceivedNs: 1})
		}
		return all
	}
	for _, c := range []struct {
		name  string
		asked impair.Impairment
		sent  []Timed
		want  []time.Duration
	}{
		{"delay", impair.Impairment{Delay: 5 * ms}, sent(0, time.Millisecond), []time.Duration{5e6, 6e6}},
		{"rate", impair.Impairment{Rate: 1e6}, sent(0, 0, 5e6), []time.Duration{1e6, 2e6, 6e6}},
		{"rate, then delay", impair.Impairment{Rate: 1e6, Delay: 5 * ms}, sent(0, 500e3), []time.Duration{6e6, 7e6}},
		{"nothing", impair.Impairment{}, sent(0, 7), []time.Duration{0, 7}},
	} {
		due := make([]int64, len(c.sent))
		newModel(impair.Stages{c.asked}).pass(c.sent, nil, due)
		for i, want := range c.want {
			if got := time.Duration(due[i] - epoch); got != want {
				t.Errorf("%s: packet %d is due at %s, want %s", c.name, i, got, want)
			}
		}
	}
}

// Jitter keeps the order unless the link may reorder, and its bounds.
func TestPassJitter(t *testing.T) {
	asked := impair.Impairment{Delay: 5 * ms, Jitter: 2 * ms}
	sent := make([]Timed, 1000)
	for i := range sent {
		sent[i].SentNs, sent[i].ReceivedNs = epoch+int64(i)*1e5, 1
	}
	due := make([]int64, len(sent))
	newModel(impair.Stages{asked}).pass(sent, rand.New(rand.NewPCG(1, 1)), due)
	if !slices.IsSorted(due) {
		t.Error("packets have overtaken one another")
	}
	asked.Unordered = true
	newModel(impair.Stages{asked}).pass(sent, rand.New(rand.NewPCG(1, 1)), due)
	if slices.IsSorted(due) {
		t.Error("no packet has overtaken another, though they may")
	}
	for i, at := range due {
		if d := at - sent[i].SentNs; d < 3e6 || d > 7e6 {
			t.Errorf("packet %d takes %s, want 3 to 7 ms", i, time.Duration(d))
		}
	}
}

func TestBursts(t *testing.T) {
	for _, c := range []struct {
		name  string
		asked impair.Impairment
		// n packets with a payload, in each burst.
		n, payload int
	}{
		{"no rate", impair.Impairment{Delay: ms}, 0, 0},
		{"1 Gbit/s over 5 ms", impair.Impairment{Delay: 5 * ms, Rate: 1e9}, 247, 1472},
		{"half of the least queue", impair.Impairment{Delay: ms / 10, Rate: 1e9}, 50, 1472},
		{"100 Gbit/s", impair.Impairment{Delay: 5 * ms, Rate: 1e11}, burstPackets, 1472},
		{"10 Mbit/s", impair.Impairment{Delay: ms, Rate: 1e7}, 8, 468 - overhead},
		{"64 kbit/s", impair.Impairment{Delay: ms, Rate: 64_000}, 8, timedPayload},
		{"a queue of two full frames", impair.Impairment{Delay: ms, Rate: 1e9, Queue: 3028}, 8, 189 - overhead},
		{"a queue of nothing", impair.Impairment{Delay: ms, Rate: 64_000, Queue: 100}, 2, timedPayload},
	} {
		packets, span := Bursts(c.asked)
		if len(packets) != bursts*c.n {
			t.Errorf("%s: %d packets, want %d times %d", c.name, len(packets), bursts, c.n)
			continue
		}
		if c.n == 0 {
			continue
		}
		onWire := time.Duration(float64(c.n*(c.payload+overhead)) / float64(c.asked.Rate) * 8e9)
		if p := packets[0]; p.Payload != c.payload || p.Burst != 1 || p.At != 0 {
			t.Errorf("%s: first packet %+v", c.name, p)
		}
		if p := packets[c.n]; p.Burst != 2 || p.At <= onWire {
			t.Errorf("%s: the second burst %+v begins while the first is on the wire for %s", c.name, p, onWire)
		}
		if last := packets[len(packets)-1]; last.Burst != bursts || span < last.At+onWire {
			t.Errorf("%s: last packet %+v, all within %s", c.name, last, span)
		}
	}
}

// A probe sees what the link does, whatever else it does.
func TestMeasure(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	one := func(i impair.Impairment) impair.Stages { return impair.Stages{i} }
	lossy := impair.Impairment{Delay: 5 * ms, Rate: 1e9, Loss: 0.3}
	reordering, slower := impair.Impairment{Delay: 5 * ms, Reorder: 0.25}, impair.Impairment{Delay: 6 * ms, Reorder: 0.25}
	two, longer := impair.Stages{{Delay: 5 * ms, Rate: 1e8}, {Delay: 2 * ms, Rate: 1e7}}, impair.Stages{{Delay: 5 * ms, Rate: 1e8}, {Delay: 3 * ms, Rate: 1e7}}
	for _, c := range []struct {
		name          string
		asked, actual impair.Stages
		delay         time.Duration
		// rate in bit/s, 0 where none is told.
		rate float64
	}{
		{"delay", one(late(1)), one(late(1)), 1e6, 0},
		{"delay + 1 ms", one(late(1)), one(late(2)), 2e6, 0},
		{"no delay", one(impair.Impairment{Loss: 0.1}), one(impair.Impairment{Loss: 0.1}), 0, 0},
		{"slow rate", one(impair.Impairment{Rate: 1e6}), one(impair.Impairment{Rate: 1e6}), 0, 1e6},
		{"half rate", one(impair.Impairment{Delay: 5 * ms, Rate: 1e9}), one(impair.Impairment{Delay: 5 * ms, Rate: 5e8}), 5e6, 5e8},
		{"lossy", one(lossy), one(lossy), 5e6, 1e9},
		{"reordering", one(reordering), one(reordering), 5e6, 0},
		{"reordering + 1 ms", one(reordering), one(slower), 6e6, 0},
		{"two stages", two, two, 7e6, 1e7},
		{"two stages + 1 ms", two, longer, 8e6, 1e7},
	} {
		p := Measure(c.asked, plainNs, travel(c.asked, c.actual, random))
		if off := time.Duration(p.DelayNs) - c.delay; off < -2000 || off > 2000 {
			t.Errorf("%s: delay %s, want %s", c.name, time.Duration(p.DelayNs), c.delay)
		}
		if c.rate == 0 && p.Rate != 0 || c.rate > 0 && (p.Rate < 0.97*c.rate || p.Rate > 1.03*c.rate) {
			t.Errorf("%s: rate %g, want %g", c.name, p.Rate, c.rate)
		}
		if p.DelaySpreadNs != 0 || p.RateSpread != 0 {
			t.Errorf("%s: spread without jitter: %+v", c.name, p)
		}
	}
}

func late(milliseconds quantity.Duration) impair.Impairment {
	return impair.Impairment{Delay: milliseconds * ms}
}

// What was dropped behind a rate has taken its share of it, what was dropped
// before has not; copies take theirs.
func TestMeasureBehindARate(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	for name, c := range map[string]struct {
		stages impair.Stages
		rate   float64
	}{
		"lost before":   {impair.Stages{{Rate: 1e8, Loss: 0.3}}, 1e8},
		"lost behind":   {impair.Stages{{Rate: 1e8}, {Loss: 0.3}}, 0.7e8},
		"corrupted":     {impair.Stages{{Rate: 1e8, Corrupt: 0.3}}, 0.7e8},
		"all twice":     {impair.Stages{{Rate: 1e8, Duplicate: 1}}, 0.5e8},
		"copied before": {impair.Stages{{Duplicate: 1}, {Rate: 1e8}}, 0.5e8},
		"some twice":    {impair.Stages{{Rate: 1e8, Duplicate: 0.5}}, 1e8 / 1.5},
	} {
		var rate, expected moments
		for range 40 {
			p := Measure(c.stages, plainNs, travel(c.stages, c.stages, random))
			rate.add(p.Rate)
			expected.add(p.RateExpected)
		}
		if math.Abs(rate.mean()/c.rate-1) > 0.08 || math.Abs(expected.mean()/rate.mean()-1) > 0.05 {
			t.Errorf("%s: rate %.3g, expected %.3g, want %.3g", name, rate.mean(), expected.mean(), c.rate)
		}
	}
}

// The lower quartile does not see a host that holds up most of the packets, and
// a sender slower than the link is in what is expected of it.
func TestMeasureOnABusyHost(t *testing.T) {
	asked := impair.Impairment{Delay: ms, Rate: 1e9}
	timed := travel(impair.Stages{asked}, impair.Stages{asked}, rand.New(rand.NewPCG(4, 4)))
	for i := range timed {
		if timed[i].Burst == 0 && i%3 > 0 {
			timed[i].ReceivedNs += 700_000
		}
	}
	if p := Measure(impair.Stages{asked}, plainNs, timed); p.DelayNs < 999_000 || p.DelayNs > 1_001_000 {
		t.Errorf("two of three packets late: delay %d ns", p.DelayNs)
	}
	slow := make([]Timed, len(timed))
	for i, one := range timed {
		slow[i] = Timed{Packet: one.Packet, SentNs: epoch + int64(i)*40_000, ReceivedNs: 1}
	}
	due := make([]int64, len(slow))
	newModel(impair.Stages{asked}).pass(slow, nil, due)
	for i := range slow {
		slow[i].ReceivedNs = due[i] + plainNs
	}
	const sent = 1514 * 8 / 40e-6
	if p := Measure(impair.Stages{asked}, plainNs, slow); p.Rate != p.RateExpected || p.Rate < 0.99*sent || p.Rate > 1.01*sent {
		t.Errorf("a sender of %g bit/s: %+v", sent, p)
	}
}

func TestMeasureNothing(t *testing.T) {
	asked := edg10()
	timed := travel(impair.Stages{asked}, impair.Stages{{Loss: 1}}, rand.New(rand.NewPCG(5, 5)))
	if p := Measure(impair.Stages{asked}, plainNs, timed); p != (Probe{Sent: jitterPackets}) {
		t.Errorf("nothing arrived: %+v", p)
	}
	if _, ok := Plain(timed); ok {
		t.Error("a path that nothing comes over has a delay")
	}
	if p := Measure(impair.Stages{asked}, plainNs, nil); p != (Probe{}) {
		t.Errorf("nothing sent: %+v", p)
	}
	if ns, ok := Plain(travel(impair.Stages{{}}, impair.Stages{{}}, rand.New(rand.NewPCG(6, 6)))); !ok || ns != plainNs {
		t.Errorf("the plain path takes %d ns, want %d", ns, plainNs)
	}
}

// The same evidence gives the same figures.
func TestMeasureIsPure(t *testing.T) {
	timed := travel(impair.Stages{edg10()}, impair.Stages{edg10()}, rand.New(rand.NewPCG(7, 7)))
	before := slices.Clone(timed)
	first, again := Measure(impair.Stages{edg10()}, plainNs, timed), Measure(impair.Stages{edg10()}, plainNs, timed)
	if first != again || !slices.Equal(before, timed) {
		t.Errorf("got %+v, then %+v", first, again)
	}
	if spread := quantity.Duration(first.DelaySpreadNs); spread < ms/20 || spread > ms/5 {
		t.Errorf("jitter of %s gives the delay a standard error of %s", edg10().Jitter, spread)
	}
}
