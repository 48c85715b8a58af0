package trace_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"skerry.dev/skerry/lab/impair/trace"
)

// sent is a packet and what is to become of it; times in ms.
type sent struct {
	at    float64
	bytes int
	left  float64
	delay float64
	drop  bool
}

func TestPlayer(t *testing.T) {
	const deliveries = "2\n2\n5\n10\n"
	const steps = "ms,mbit,delay_ms\n0,12,5\n10,0,6\n20,1.2,7\n30,1.2,7\n" // 1500 bytes take 1 ms at 12 Mbit/s
	for _, c := range []struct {
		name, text string
		queue      int64
		packets    []sent
	}{
		{"a delivery each", deliveries, 1e6, []sent{{at: 0, bytes: 1500, left: 2}, {at: 0, bytes: 1500, left: 2}, {at: 0, bytes: 1500, left: 5}, {at: 0, bytes: 1500, left: 10}, {at: 0, bytes: 1500, left: 12}}},
		{"small packets share one", deliveries, 1e6, []sent{{at: 0, bytes: 700, left: 2}, {at: 1, bytes: 700, left: 2}, {at: 1, bytes: 700, left: 2}, {at: 1, bytes: 900, left: 2}, {at: 1, bytes: 1, left: 5}}},
		{"what is not used is lost", deliveries, 1e6, []sent{{at: 3, bytes: 1500, left: 5}, {at: 6, bytes: 10, left: 10}, {at: 11, bytes: 10, left: 12}}},
		{"at its moment", deliveries, 1e6, []sent{{at: 2, bytes: 1500, left: 2}}},
		{"long after", deliveries, 1e6, []sent{{at: 1004, bytes: 1500, left: 1005}}},
		{"a queue", deliveries, 3000, []sent{{at: 0, bytes: 1500, left: 2}, {at: 0, bytes: 1500, left: 2}, {at: 0, bytes: 1500, drop: true}, {at: 2, bytes: 1500, left: 5}}},
		{"larger than the queue", deliveries, 100, []sent{{at: 0, bytes: 1500, left: 2}, {at: 0, bytes: 1, drop: true}}},
		{"a rate", steps, 1e6, []sent{{at: 1, bytes: 1500, left: 2, delay: 5}, {at: 1, bytes: 3000, left: 4, delay: 5}, {at: 8, bytes: 1500, left: 9, delay: 5}}},
		{"an outage", steps, 1e6, []sent{{at: 9.5, bytes: 1500, left: 25, delay: 7}, {at: 26, bytes: 150, left: 27, delay: 7}}},
		{"the next round", steps, 1e6, []sent{{at: 39, bytes: 1500, left: 40.9, delay: 5}, {at: 407, bytes: 1500, left: 408, delay: 5}}},
	} {
		read, err := trace.Read([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		const began = int64(7e12)
		p := trace.NewPlayer(read, began)
		for i, s := range c.packets {
			left, delay, ok := p.Send(began+int64(s.at*1e6), s.bytes, c.queue)
			if ok == s.drop || ok && (left != began+int64(s.left*1e6) || delay != time.Duration(s.delay*1e6)) {
				t.Errorf("%s, packet %d: leaves at %g ms, delay %s, %t; want %+v", c.name, i, float64(left-began)/1e6, delay, ok, s)
			}
		}
	}
}

// A link that always has something to send carries what the trace carries, in
// the order of arrival.
func TestPlayerCarriesAll(t *testing.T) {
	for _, name := range trace.Names() {
		read, _ := trace.Model(name, 1)
		p := trace.NewPlayer(read, 0)
		rng := rand.New(rand.NewPCG(1, 1))
		var last, bytes int64
		for last < int64(read.Span) {
			n := 60 + rng.IntN(1455)
			left, _, ok := p.Send(max(0, last-int64(50*ms)), n, 1<<40)
			if !ok || left < last {
				t.Fatalf("%s: a packet leaves at %d, after one at %d: %t", name, left, last, ok)
			}
			last = left
			bytes += int64(n)
		}
		if got := float64(bytes) * 8 / time.Duration(last).Seconds(); got < 0.999*read.Mean() || got > 1.001*read.Mean() {
			t.Errorf("%s: %.4g bit/s, the trace has %.4g", name, got, read.Mean())
		}
	}
}

func BenchmarkSend(b *testing.B) {
	read, _ := trace.Model(trace.NR, 1)
	p := trace.NewPlayer(read, 0)
	at := int64(0)
	for b.Loop() {
		at, _, _ = p.Send(at, 1514, 1<<40)
	}
}
