package userspace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPendingLeavesByDueTimeThenArrival(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p := newPending(1000)
	const start = math.MaxUint32 - 500 // wraps around half way
	p.next = start
	var want []waiting
	for i := range 1000 {
		due := random.Int64N(50)
		w := waiting{due: due, id: uint32(i), place: place{slot: int32(i), where: uint32(i % 7)}}
		p.push(w)
		w.sequence = start + uint32(i)
		want = append(want, w)
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
		p.push(waiting{due: int64(i)})
	}
	for b.Loop() {
		w := p.pop()
		w.due += 1 << 13
		p.push(w)
	}
}
