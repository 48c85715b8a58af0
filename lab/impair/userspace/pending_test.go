package userspace

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPendingLeavesByDueTimeThenArrival(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p := newPending(1000)
	var want []waiting
	for i := range 1000 {
		due := random.Int64N(50)
		p.push(due, uint16(i%7), uint32(i))
		want = append(want, waiting{due: due, sequence: uint64(i), id: uint32(i), queue: uint16(i % 7)})
	}
	if !p.full() {
		t.Error("a heap at its bound does not say so")
	}
	slices.SortStableFunc(want, func(a, b waiting) int { return int(a.due - b.due) })
	for i, w := range want {
		if got := p.pop(); got != w {
			t.Fatalf("packet %d: got %+v, want %+v", i, got, w)
		}
	}
}

func BenchmarkPending(b *testing.B) {
	p := newPending(1 << 14)
	for i := range 1 << 13 {
		p.push(int64(i), 0, 0)
	}
	for b.Loop() {
		w := p.pop()
		p.push(w.due+1<<13, 0, 0)
	}
}
