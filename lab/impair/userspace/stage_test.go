package userspace

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mathext"

	"skerry.dev/skerry/lab/impair"
)

// wantBinomial wants a count within the 99 % interval of a binomial. Seeds are
// fixed, so that a test that passes goes on passing.
func wantBinomial(t *testing.T, what string, count, n int, p float64) {
	t.Helper()
	const tail = 0.01 / 2
	upper := 1.0 // P(X >= count)
	if count > 0 {
		upper = mathext.RegIncBeta(float64(count), float64(n-count+1), p)
	}
	lower := 1.0
	if count < n {
		lower = 1 - mathext.RegIncBeta(float64(count+1), float64(n-count), p)
	}
	if min(upper, lower) < tail {
		t.Errorf("%s: %d of %d, asked %g", what, count, n, p)
	}
}

// Of the packets that are not lost, each kind of chance takes its share, and none
// depends on another.
func TestChancesFollowTheirBinomials(t *testing.T) {
	const n = 100_000
	i := impair.Impairment{Delay: 5 * ms, Loss: 0.02, Duplicate: 0.03, Corrupt: 0.01, Reorder: 0.2}
	s := newStage(i, 7, 0)
	var passed, duplicated, corrupted, reordered, both int
	for k := range int64(n) {
		o := s.admit(k*1000, 100)
		if o.fate == lose {
			continue
		}
		passed++
		if o.duplicated {
			duplicated++
		}
		if o.corrupted {
			corrupted++
		}
		if o.reordered {
			reordered++
		}
		if o.duplicated && o.reordered {
			both++
		}
	}
	wantBinomial(t, "lost", n-passed, n, float64(i.Loss))
	wantBinomial(t, "duplicated", duplicated, passed, float64(i.Duplicate))
	wantBinomial(t, "corrupted", corrupted, passed, float64(i.Corrupt))
	wantBinomial(t, "reordered", reordered, passed, float64(i.Reorder))
	wantBinomial(t, "duplicated and reordered", both, passed, float64(i.Duplicate*i.Reorder))
}

// bursts are the lengths of runs in the bad state, as losses of a chain whose
// good state loses nothing and whose bad state loses all.
func TestBurstLengthsAreGeometric(t *testing.T) {
	const n, enter, leave = 100_000, 0.02, 0.25
	s := newStage(impair.Impairment{Burst: impair.Burst{Enter: enter, Leave: leave}}, 3, 0)
	lengths := map[int]int{}
	bursts, lost, run, good, entered := 0, 0, 0, 0, 0
	for range n {
		if s.admit(0, 100).fate == lose {
			lost++
			run++
			continue
		}
		good++
		if run > 0 {
			entered++
			bursts++
			lengths[run]++
		}
		run = 0
	}
	// A burst is k packets long with the chance leave·(1-leave)^(k-1).
	chance := leave
	for k := 1; k <= 8; k++ {
		wantBinomial(t, "bursts of one length", lengths[k], bursts, chance)
		chance *= 1 - leave
	}
	wantBinomial(t, "packets in the good state that begin a burst", entered, good, enter)
	// As many packets are lost as the shares of the states say; the variance of the
	// sum is (1+λ)/(1-λ) times that of independent ones, λ = 1-enter-leave.
	const share, lambda = enter / (enter + leave), 1 - enter - leave
	deviation := math.Sqrt(n * share * (1 - share) * (1 + lambda) / (1 - lambda))
	if off := math.Abs(float64(lost) - n*share); off > 2.58*deviation {
		t.Errorf("lost %d of %d, asked %.0f ± %.0f", lost, n, n*share, deviation)
	}
}

// Each state has its own loss, whatever the other's.
func TestBurstStatesHaveTheirOwnLoss(t *testing.T) {
	const n = 100_000
	i := impair.Impairment{Loss: 0.1, Burst: impair.Burst{Enter: 0.1, Leave: 0.1, Loss: 0.6}}
	s := newStage(i, 5, 0)
	var packets, lost [2]int
	for range n {
		state := 0
		if s.bad {
			state = 1
		}
		packets[state]++
		if s.admit(0, 100).fate == lose {
			lost[state]++
		}
	}
	wantBinomial(t, "lost in the good state", lost[0], packets[0], 0.1)
	wantBinomial(t, "lost in the bad state", lost[1], packets[1], 0.6)
}

// Half of all links begin in the bad state where that is half of the time.
func TestBurstsBeginInEitherState(t *testing.T) {
	const links = 2000
	bad := 0
	for seed := range uint64(links) {
		if newStage(impair.Impairment{Burst: impair.Burst{Enter: 0.001, Leave: 0.001}}, seed, 0).bad {
			bad++
		}
	}
	wantBinomial(t, "links that begin in the bad state", bad, links, 0.5)
}

func TestReorderedSkipTheDelayAndNotTheRate(t *testing.T) {
	// 1000 bytes at 8 Mbit/s take 1 ms.
	s := newStage(impair.Impairment{Delay: 50 * ms, Jitter: 5 * ms, Reorder: 0.25, Rate: 8e6}, 9, 0)
	var last, sent int64
	for k := range int64(1000) {
		arrival := k * int64(500*time.Microsecond)
		o := s.admit(arrival, 1000)
		if o.fate != pass {
			continue
		}
		sent = max(sent, arrival) + 1e6
		switch {
		case o.reordered && o.due != sent:
			t.Fatalf("packet %d skips the delay and is due %d ns after it has left the rate", k, o.due-sent)
		case !o.reordered && (o.due < last || o.due < sent+45e6):
			t.Fatalf("packet %d is due %d ns after it has left the rate, %d ns after the one before", k, o.due-sent, o.due-last)
		case !o.reordered:
			last = o.due
		}
	}
}

func TestCopiesTakeTheRateAndTheQueue(t *testing.T) {
	s := newStage(impair.Impairment{Delay: 5 * ms, Duplicate: 1, Rate: 8e6, Queue: 4500}, 1, 0)
	for k, want := range []struct {
		due, copyDue   int64
		fate, copyFate fate
	}{
		{6e6, 7e6, pass, pass},
		{8e6, 9e6, pass, pass}, // 4000 bytes wait
		{0, 0, overflow, overflow},
	} {
		o := s.admit(0, 1000)
		if o.due != want.due || o.copyDue != want.copyDue || o.fate != want.fate || o.copyFate != want.copyFate {
			t.Errorf("packet %d: got %+v, want %+v", k, o, want)
		}
	}
	// Room for a packet, and not for its copy.
	o := s.admit(500_000, 1000)
	if o.fate != pass || o.copyFate != overflow {
		t.Errorf("got %+v, want a packet without its copy", o)
	}
}

// Stages draw apart: what one does says nothing of the other.
func TestStagesDrawApart(t *testing.T) {
	const n, p = 100_000, 0.1
	loss := impair.Impairment{Loss: p}
	d := newDirection(impair.Stages{loss, loss}, 11)
	both := 0
	for range n {
		first, second := d.stages[0].admit(0, 100), d.stages[1].admit(0, 100)
		if first.fate == lose && second.fate == lose {
			both++
		}
	}
	wantBinomial(t, "lost in both", both, n, p*p)
}

func TestDirectionKnowsWhatIsToCome(t *testing.T) {
	corrupt := impair.Impairment{Corrupt: 0.1}
	d := newDirection(impair.Stages{{Delay: 4 * ms}, corrupt, {Delay: 16 * ms}}, 1)
	if !slices.Equal(d.copies, []bool{true, false, false}) || d.last(1) || !d.last(2) {
		t.Errorf("copies behind each stage: %v; last: %v, %v", d.copies, d.last(1), d.last(2))
	}
	if want := int64(400_000); d.tolerance != want { // 2 % of 20 ms
		t.Errorf("tolerance %d ns, want %d", d.tolerance, want)
	}
}
