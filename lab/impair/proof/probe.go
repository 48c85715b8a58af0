package proof

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"skerry.dev/skerry/lab/impair"
)

// What a probe of one direction sends.
const (
	// timedPackets time the delay, timedPace apart.
	timedPackets = 24
	timedPace    = 400 * time.Microsecond
	// Where there is jitter or reordering they are jitterPackets, a jitterShare of
	// the jitter apart:
	// together about ten times as long as the jitter. In that time the standard
	// error of the delay comes down to a tenth of it, and where order is kept, to
	// less.
	jitterPackets   = 96
	jitterShare     = 0.1
	jitterPaceLeast = 100 * time.Microsecond
	jitterPaceMost  = time.Millisecond
	// timedPayload is their UDP payload in bytes.
	timedPayload = 32

	// bursts time the rate: each of about burstTime, less where half of the queue
	// does not hold that, of 2 to burstPackets packets, 8 where there is room.
	bursts       = 3
	burstTime    = 3 * time.Millisecond
	burstPackets = 512
	burstLeast   = 8

	// overhead is the UDP, IP and Ethernet headers of a frame, in bytes.
	overhead   = 8 + 20 + impair.EthernetHeader
	frameMax   = impair.DefaultMTU + impair.EthernetHeader
	frameLeast = timedPayload + overhead
)

// Packet is one packet of a probe.
type Packet struct {
	// At is when it is due, from the start of its part of the probe.
	At time.Duration
	// Payload is the UDP payload in bytes.
	Payload int
	// Burst it belongs to, from 1; 0 for a packet that times the delay.
	Burst int
}

// Timed is a packet that was sent, with both times by one clock, in ns.
// ReceivedNs is 0 where it did not arrive.
type Timed struct {
	Packet
	SentNs, ReceivedNs int64
}

// Delays are the packets that time the delay of a link.
func Delays(stages ...impair.Impairment) []Packet {
	asked := impair.Stages(stages).Together()
	n, pace := timedPackets, timedPace
	if asked.Jitter > 0 || asked.Reorder > 0 {
		n = jitterPackets
		pace = min(max(jitterPaceLeast, time.Duration(jitterShare*float64(asked.Jitter))), jitterPaceMost)
	}
	packets := make([]Packet, n)
	for i := range packets {
		packets[i] = Packet{At: time.Duration(i) * pace, Payload: timedPayload}
	}
	return packets
}

// Bursts are the packets that time the rate of a link, and the time that the
// link needs for all of them; none where it has no rate.
func Bursts(stages ...impair.Impairment) (packets []Packet, span time.Duration) {
	asked := impair.Stages(stages).Together()
	if asked.Rate == 0 {
		return nil, 0
	}
	half := int(leastQueue(stages) / 2)
	bytesIn := func(d time.Duration) float64 { return float64(asked.Rate) / 8 * d.Seconds() }
	room := min(bytesIn(burstTime), float64(half))
	frame := min(max(int(room/burstLeast), frameLeast), frameMax)
	n := min(max(int(room)/frame, 2), burstPackets)
	if bytesIn(burstTime) < burstLeast*frameLeast { // so slow that a burst takes longer
		n = min(max(n, burstLeast), max(2, half/frame))
	}
	// Times a burst's time on the link: the queue is empty before the next.
	spacing := 1.1 * (1 + float64(asked.Duplicate))
	each := time.Duration(spacing * float64(n*frame) / float64(asked.Rate) * 8e9)
	for b := range bursts {
		for range n {
			packets = append(packets, Packet{At: time.Duration(b) * each, Payload: frame - overhead, Burst: b + 1})
		}
	}
	return packets, bursts * each
}

// leastQueue is the smallest queue before a rate, in bytes.
func leastQueue(stages []impair.Impairment) int64 {
	least := int64(math.MaxInt64)
	for _, s := range stages {
		if s.Rate > 0 {
			least = min(least, s.QueueBytes())
		}
	}
	return least
}

// Plain is the delay of a path without a link, in ns, by what Delays saw of it:
// what Measure takes off. It is false where nothing arrived.
func Plain(timed []Timed) (ns int64, ok bool) {
	p := Measure(impair.Stages{{}}, 0, timed)
	return p.DelayNs, p.Received > 0
}

// Measure says what a probe saw of a link that was asked to do this, over a path
// of plainNs without it. The packets are in the order of their sends. What is
// seen is held against a model of the link asked for that was sent the very same
// packets: queueing, order and a slow sender are in both.
func Measure(stages impair.Stages, plainNs int64, timed []Timed) Probe {
	var p Probe
	at := make([]int64, len(timed))
	arrived := 0
	for i, t := range timed {
		at[i] = t.ReceivedNs - plainNs
		if t.Burst == 0 {
			p.Sent++
		}
		if t.ReceivedNs == 0 {
			continue
		}
		arrived++
		if t.Burst == 0 {
			p.Received++
		}
	}
	if p.Received == 0 {
		return p
	}
	link := newModel(stages)
	train := couple(timed, link.asked)
	delayNs, seenPace := train.figures(at)
	var delay, pace moments
	passages := 1
	if link.varies() {
		passages = jitterPassages
	}
	random := rand.New(rand.NewPCG(uint64(timed[0].SentNs), uint64(arrived)))
	for range passages {
		link.pass(timed, random, at)
		d, p := train.figures(at)
		delay.add(d)
		pace.add(p)
	}
	p.DelayNs = int64(link.asked.Delay) + int64(math.Round(delayNs-delay.mean()))
	p.DelaySpreadNs = int64(delay.deviation())
	if expected := pace.mean(); expected > 0 {
		p.Rate, p.RateExpected, p.RateSpread = 8e9/seenPace, 8e9/expected, pace.deviation()/expected
	}
	return p
}

// jitterPassages is how often the model is asked where it has anything to draw.
const jitterPassages = 200

// train is which of the packets that arrived tell what, by their index.
type train struct {
	sent  []Timed
	asked impair.Impairment
	timed []int
	// bursts hold the packets of each burst.
	bursts [][]int
}

func couple(sent []Timed, asked impair.Impairment) train {
	t := train{sent: sent, asked: asked, bursts: make([][]int, bursts)}
	for i, s := range sent {
		if s.ReceivedNs == 0 {
			continue
		}
		if s.Burst == 0 {
			t.timed = append(t.timed, i)
			continue
		}
		t.bursts[s.Burst-1] = append(t.bursts[s.Burst-1], i)
	}
	return t
}

// figures of the packets if they arrived at these times: the lower quartile of
// the delays in ns, above the share of packets that skip the delay, and the median
// of the bursts' paces in ns a byte, 0 where no burst has two packets.
func (t train) figures(at []int64) (delayNs, pace float64) {
	delays := make([]int64, len(t.timed))
	for i, packet := range t.timed {
		delays[i] = at[packet] - t.sent[packet].SentNs
	}
	slices.Sort(delays)
	var paces []float64
	for _, members := range t.bursts {
		if t.asked.Reorder > 0 {
			members = delayed(members, at, int64(t.asked.Delay))
		}
		if len(members) > 1 {
			paces = append(paces, t.pace(members, at))
		}
	}
	if len(paces) > 0 {
		slices.Sort(paces)
		pace = max(paces[len(paces)/2], paceLeast)
	}
	const quartile = 0.25
	return float64(delays[int((quartile+float64(t.asked.Reorder))*float64(len(delays)))]), pace
}

// delayed leaves out the packets of a burst that skipped the delay: those that
// have overtaken others, and at the beginning, where there is none to overtake,
// those that are far ahead of the rest.
func delayed(members []int, at []int64, delay int64) []int {
	latest := int64(math.MinInt64)
	members = slices.DeleteFunc(slices.Clone(members), func(packet int) bool {
		overtook := at[packet] < latest
		latest = max(latest, at[packet])
		return overtook
	})
	first := 0
	for i := 1; i <= len(members)/2; i++ {
		if i < len(members) && at[members[i]]-at[members[i-1]] > delay/2 {
			first = i
		}
	}
	return members[first:]
}

// paceLeast stands for a burst that arrives at once, in ns a byte: 1 Tbit/s.
const paceLeast = 0.008

// pace of a burst is the slope from its first quarter to its last: the mean of
// each takes the edge off jitter.
func (t train) pace(members []int, at []int64) float64 {
	quarter := max(1, len(members)/4)
	var bytes, first, last float64
	begin := at[members[0]]
	for i, packet := range members {
		frame := float64(t.sent[packet].Payload + overhead)
		// What lies between two packets is the second and all before it.
		bytes += frame * float64(min(i, quarter, len(members)-i)) / float64(quarter)
		if i < quarter {
			first += float64(at[packet]-begin) / float64(quarter)
		}
		if i >= len(members)-quarter {
			last += float64(at[packet]-begin) / float64(quarter)
		}
	}
	return (last - first) / bytes
}

// moments are a mean and a standard deviation in the making, by the recurrence of
// Welford (Technometrics 4, 1962), which loses no digits.
type moments struct {
	n, centre, squares float64
}

func (m *moments) add(v float64) {
	m.n++
	off := v - m.centre
	m.centre += off / m.n
	m.squares += off * (v - m.centre)
}

func (m *moments) mean() float64 { return m.centre }

// deviation is that of the values themselves; 0 for a single one.
func (m *moments) deviation() float64 {
	if m.n < 2 {
		return 0
	}
	return math.Sqrt(m.squares / (m.n - 1))
}
