package trace_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"skerry.dev/skerry/lab/impair"
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
	const full = impair.DefaultMTU + impair.EthernetHeader
	const deliveries = "2\n2\n5\n10\n"
	const steps = "ms,mbit,delay_ms\n0,12,5\n10,0,6\n20,1.2,7\n30,1.2,7\n" // 1500 bytes take 1 ms at 12 Mbit/s
	for _, c := range []struct {
		name, text string
		queue      int64
		packets    []sent
	}{
		{"a delivery each", deliveries, 1e6, []sent{{at: 0, bytes: full, left: 2}, {at: 0, bytes: full, left: 2}, {at: 0, bytes: full, left: 5}, {at: 0, bytes: full, left: 10}, {at: 0, bytes: full, left: 12}}},
		{"small packets share one", deliveries, 1e6, []sent{{at: 0, bytes: 700, left: 2}, {at: 1, bytes: 700, left: 2}, {at: 1, bytes: 700, left: 2}, {at: 1, bytes: 928, left: 2}, {at: 1, bytes: 1, left: 5}}},
		{"what is not used is lost", deliveries, 1e6, []sent{{at: 3, bytes: full, left: 5}, {at: 6, bytes: 10, left: 10}, {at: 11, bytes: 10, left: 12}}},
		{"at its moment", deliveries, 1e6, []sent{{at: 2, bytes: full, left: 2}}},
		{"long after", deliveries, 1e6, []sent{{at: 1004, bytes: full, left: 1005}}},
		{"a queue", deliveries, 2 * full, []sent{{at: 0, bytes: full, left: 2}, {at: 0, bytes: full, left: 2}, {at: 0, bytes: full, drop: true}, {at: 2, bytes: full, left: 5}}},
		{"larger than the queue", deliveries, 100, []sent{{at: 0, bytes: full, left: 2}, {at: 0, bytes: 1, drop: true}}},
		{"a rate", steps, 1e6, []sent{{at: 1, bytes: 1500, left: 2, delay: 5}, {at: 1, bytes: 3000, left: 4, delay: 5}, {at: 8, bytes: 1500, left: 9, delay: 5}}},
		{"an outage", steps, 1e6, []sent{{at: 9.5, bytes: 1500, left: 25, delay: 7}, {at: 26, bytes: 150, left: 27, delay: 7}}},
		{"many rounds", "ms,mbit,delay_ms\n0,0,5\n1,1,6\n", 1e6, []sent{{at: 0.5, bytes: 1500, left: 24, delay: 6}, {at: 24.5, bytes: 1000, left: 40, delay: 6}, {at: 41, bytes: 63, left: 41.504, delay: 6}}},
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

// walker is a player that takes every delivery and every step one by one, with no
// bound of its queue.
type walker struct {
	*trace.Trace
	began, free int64
	place, left int
}

func (w *walker) next(places int) {
	w.left = trace.DeliveryBytes
	if w.place++; w.place == places {
		w.place = 0
		w.began += int64(w.Span)
	}
}

func (w *walker) send(arrival int64, bytes int) (left int64, delay time.Duration) {
	for n := len(w.Deliveries); n > 0; w.next(n) {
		left = w.began + int64(w.Deliveries[w.place])
		if served := min(bytes, w.left); left >= arrival {
			bytes -= served
			if w.left -= served; bytes == 0 {
				return left, 0
			}
		}
	}
	now := max(arrival, w.free)
	for bits := float64(bytes) * 8; ; w.next(len(w.Steps)) {
		end := w.began + int64(w.Span)
		if w.place+1 < len(w.Steps) {
			end = w.began + int64(w.Steps[w.place+1].At)
		}
		if now >= end {
			continue
		}
		s := w.Steps[w.place]
		could := s.Rate * float64(end-now) / 1e9
		if bits <= could {
			w.free = now + int64(math.Ceil(bits/s.Rate*1e9))
			return w.free, s.Delay
		}
		bits -= could
		now = end
	}
}

// However long a link was idle, packets leave when they would if every moment of
// its trace had been gone through.
func TestIdlePlayerIsWhereItWouldBe(t *testing.T) {
	const began = int64(3e9)
	for _, text := range []string{
		"2\n2\n5\n10\n", "0\n4\n4\n10\n", "1\n1\n1\n", "7\n",
		"ms,mbit,delay_ms\n0,12,5\n10,0,6\n20,1.2,7\n30,1.2,7\n", "ms,mbit,delay_ms\n0,0,1\n3,8,2\n", "ms,mbit,delay_ms\n0,1,0\n",
	} {
		read, err := trace.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, w := trace.NewPlayer(read, began), &walker{Trace: read, began: began, left: trace.DeliveryBytes}
		rng := rand.New(rand.NewPCG(1, 1))
		at := began
		for i := range 3000 {
			switch rng.IntN(4) {
			case 0: // by whole rounds and whole ms, where moments coincide
				at += rng.Int64N(300)*int64(read.Span) + rng.Int64N(5)*int64(ms)
			case 1:
				at += rng.Int64N(40 * int64(read.Span))
			}
			bytes := 1 + rng.IntN(4000)
			want, wantDelay := w.send(at, bytes)
			got, delay, ok := p.Send(at, bytes, 1<<40)
			w.free = got // a packet of many rounds may be rounded otherwise
			if !ok || got < want-1 || got > want+1 || delay != wantDelay {
				t.Fatalf("%q, packet %d at %d: leaves at %d, delay %s, %t; want %d, %s", text, i, at, got, delay, ok, want, wantDelay)
			}
		}
		// Gone through, the moments of a century would take hours.
		const century = int64(100 * 365 * 24 * time.Hour)
		late := at + century/int64(read.Span)*int64(read.Span)
		if got, _, _ := p.Send(late, 1, 1<<40); got < late || got > late+int64(2*read.Span) {
			t.Errorf("%q: a packet at %d leaves at %d", text, late, got)
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
