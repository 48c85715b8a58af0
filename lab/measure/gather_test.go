package measure

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/lab/sample"
)

// answered is a request that was due at a time and took as long, both in µs.
func answered(thread, index int32, due, took int64) sample.Request {
	return sample.Request{
		Thread: thread, Connection: 1, Index: index, ScheduledNs: due * 1000, LastByteNs: (due + took) * 1000, Status: 200,
	}
}

func TestPoolIsTheCellOfItsRepetitions(t *testing.T) {
	// Repetition 1 has one request a connection, repetition 2 keeps its
	// connection: so request 1 counts as a first request in both.
	one := []sample.Request{answered(0, 1, 0, 50)}
	two := []sample.Request{answered(0, 1, 0, 40), answered(0, 2, 100, 10), answered(0, 3, 200, 30), answered(0, 4, 300, 5)}
	two[0].Warmup = true
	two[3].Error = "timeout"
	p := Pool([]*Gathered{Gather(one), Gather(two)})
	if p.Summary.Requests != 4 || p.Summary.Errors != 1 || p.Summary.N != 2 || p.Summary.FirstN != 2 {
		t.Errorf("cell: %+v", p.Summary)
	}
	if p.Summary.Times.Median != 20*time.Microsecond || p.Summary.First != 45*time.Microsecond {
		t.Errorf("median %v, first %v, want 20µs and 45µs", p.Summary.Times.Median, p.Summary.First)
	}
	if p.Values.Len() != 1 || p.First.Len() != 2 {
		t.Errorf("%d repetitions with times and %d with first requests, want 1 and 2", p.Values.Len(), p.First.Len())
	}
	if len(p.Each) != 2 || p.Each[0].N != 0 || p.Each[0].FirstN != 1 || p.Each[1].N != 2 || p.Each[1].Errors != 1 {
		t.Errorf("repetitions: %+v", p.Each)
	}
	// 2 answers from 100 µs, when the first that counts was due, to 300 µs, when
	// the one that failed was.
	if want := 2 / 200e-6; p.Rates[1] != want {
		t.Errorf("rate %v, want %v", p.Rates[1], want)
	}
	if alone := Gather(one).Summary(); alone.N != 1 || alone.FirstN != 1 || alone.Times.Median != alone.First {
		t.Errorf("a repetition of new connections alone: %+v", alone)
	}
	if none := Pool(nil); none.Summary.Requests != 0 || none.Values.Len() != 0 {
		t.Errorf("no repetition: %+v", none.Summary)
	}
}

// A connection that failed at its second request carried one: those that were
// answered, each the first of its own, are the sample.
func TestFailuresKeepNoConnection(t *testing.T) {
	closed := answered(0, 2, 100, 0)
	closed.Error = "closed"
	p := Pool([]*Gathered{Gather([]sample.Request{answered(0, 1, 0, 30), closed, answered(0, 1, 200, 50)})})
	if s := p.Summary; s.N != 2 || s.FirstN != 2 || s.Errors != 1 || s.Times.Median != 40*time.Microsecond {
		t.Errorf("%+v, want two times with a median of 40µs", s)
	}
}

// at is a request that was due and answered at so many ms.
func at(due, answered int64) sample.Request {
	return sample.Request{Index: 2, ScheduledNs: due * 1e6, LastByteNs: answered * 1e6, Status: 200}
}

func TestRate(t *testing.T) {
	lost := at(1350, 0)
	lost.Error = "timeout"
	for name, c := range map[string]struct {
		requests []sample.Request
		want     float64
	}{
		"three in 300 ms":     {[]sample.Request{at(1000, 1100), at(1100, 1200), at(1200, 1300)}, 10},
		"in whatever order":   {[]sample.Request{at(1200, 1300), at(1000, 1100), at(1100, 1200)}, 10},
		"two threads":         {[]sample.Request{at(1000, 1200), at(1000, 1100), at(1100, 1200), at(1100, 1150)}, 20},
		"warm-up is before":   {[]sample.Request{warmup(at(100, 1000)), at(1000, 1250)}, 4},
		"a failure counts no": {[]sample.Request{at(1000, 1500), lost}, 2},
		"but takes its time":  {[]sample.Request{at(850, 1000), lost}, 2},
		"no answer":           {[]sample.Request{lost}, 0},
		"no request":          {nil, 0},
	} {
		if got := rate(c.requests); got != c.want {
			t.Errorf("%s: %v requests/s, want %v", name, got, c.want)
		}
	}
}

// Three threads of ten requests of 100 ms: one begins half a second late, one ends
// early by an error. While they work, each has its ten a second.
func TestByThread(t *testing.T) {
	var requests []sample.Request
	for i := range int64(10) {
		for thread, late := range []int64{0, 500, 0} {
			r := at(1000+late+100*i, 1100+late+100*i)
			r.Thread = int32(thread)
			if thread == 2 && i >= 5 {
				r.Error, r.LastByteNs = "timeout", 0
			}
			requests = append(requests, r)
		}
	}
	g := Gather(requests)
	if want := 25 / 1.5; g.rate != want {
		t.Errorf("together %v a second, want %v", g.rate, want)
	}
	g.ByThread(requests)
	// Thread 2: five answers, and the last failure was due 900 ms after the first.
	if want := 10 + 10 + 5/0.9; g.rate != want {
		t.Errorf("by thread %v a second, want %v", g.rate, want)
	}
	if g.ByThread(nil); g.rate != 0 {
		t.Errorf("no request: %v a second", g.rate)
	}
}

// Of a flow that is wholly lost nobody knows when its packets were due: they take no time,
// and move no beginning to that of the machine.
func TestLostFlowHasNoTimes(t *testing.T) {
	const up = 1_000_000 // ms
	packets := []sample.Request{at(up, up+1), at(up+100, up+101), at(up+200, up+201), at(up+300, up+400)}
	for range 4 {
		packets = append(packets, sample.Request{Thread: 1, Error: "lost"})
	}
	g := Gather(packets)
	if s := g.Summary(); g.rate != 10 || s.Requests != 8 || s.Errors != 4 {
		t.Errorf("%v a second, %d of %d lost; want 10, 4 of 8", g.rate, s.Errors, s.Requests)
	}
	if lines := Timelines(packets); len(lines) != 1 || lines[0].Points[1].At != 100*time.Millisecond {
		t.Errorf("timelines %+v, want one whose second packet was due after 100ms", lines)
	}
}

// Jitter is by how much more a packet was delayed than the one before it in its flow; a
// packet that is lost has none, and neither has the next.
func TestJitter(t *testing.T) {
	packets := []sample.Request{
		answered(0, 1, 0, 10), answered(0, 2, 1000, 14), answered(0, 3, 2000, 11), answered(0, 4, 3000, 12), answered(0, 5, 4000, 17),
		answered(1, 1, 500, 900), answered(1, 2, 1500, 901),
	}
	packets[2].Error = "lost"
	g := Gather(packets)
	g.ByPacket(packets)
	p := Pool([]*Gathered{g})
	if got, want := []float64(p.Jitter.Pooled()), []float64{1000, 4000, 5000}; !slices.Equal(got, want) {
		t.Errorf("jitter %v, want %v", got, want)
	}
	if d := p.Jitter.DrawIQR(Alone(rand.New(rand.NewPCG(1, 1)))); d.Value != 2000 {
		t.Errorf("the quartiles are %v apart, want 2000", d.Value)
	}
}
