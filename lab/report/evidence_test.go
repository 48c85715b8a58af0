package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
)

// One direction in four tries: two that count, one that drifted, and one that
// was rejected for the other direction.
func TestLinkShowsWhatWasAskedAndSeen(t *testing.T) {
	asked := impair.Impairment{Delay: 5 * ms, Loss: 0.001, Rate: 1e9}
	try := func(repetition int, before, after time.Duration, reasons ...string) Try {
		probe := func(delay time.Duration) proof.Probe {
			return proof.Probe{Sent: 9, Received: 9, DelayNs: delay.Nanoseconds(), Rate: 0.97e9, RateExpected: 0.98e9}
		}
		return Try{Repetition: repetition, Number: 1, Proof: proof.Proof{
			Directions: []proof.Direction{{Name: "a>b", Asked: asked, Before: probe(before), After: probe(after)}},
			Reasons:    reasons,
		}}
	}
	r := Result{Proofs: []Try{
		try(1, 5*time.Millisecond, 5020*time.Microsecond), try(2, 5010*time.Microsecond, 5030*time.Microsecond),
		try(3, 5*time.Millisecond, 6*time.Millisecond, "a>b: delay 6ms after the load"), try(3, 4*time.Millisecond, 5*time.Millisecond, "b>a: drifted"),
	}}
	l := Link{Asked: impair.Direction{Name: "a → b", Impairment: asked}, Seen: impair.Counters{Packets: 20_000, Lost: 21, Late: 1, LateMaxNs: 1_500_000}}
	want := linkView{
		Cell: "cell", Name: "a → b", Asked: "5ms 0.1% 1gbit", Before: "5.000 to 5.010", After: "5.020 to 5.030", Rate: "99.0%",
		Loss: "0.10% [0.055, 0.18]", Packets: "20000", Late: 1, LateMax: "1.500", Verdict: "as asked, after a rejected try", Good: true,
	}
	if got := linkOf("cell", r, l); got != want {
		t.Errorf("\ngot  %+v\nwant %+v", got, want)
	}
	r.Proofs = r.Proofs[:2]
	if got := linkOf("cell", r, l); !got.Good || got.Bad || got.Verdict != "as asked" {
		t.Errorf("a link that did what was asked: %+v", got)
	}
	// The probes of a cell that is rejected are shown, whatever they saw.
	r.Proofs, r.Rejected = []Try{try(1, 5*time.Millisecond, 6*time.Millisecond, "a>b: delay 6ms after the load")}, "drifted"
	if got := linkOf("cell", r, l); got.After != "6.000" || !got.Bad || got.Verdict != "not as asked in 1 of 1 tries" {
		t.Errorf("a link of a rejected cell: %+v", got)
	}
	if got := linkOf("cell", Result{}, Link{}); got.Verdict != "not probed" || got.Loss != noFigure || got.Good || got.Bad {
		t.Errorf("a link that nobody probed: %+v", got)
	}
}

// By scipy 1.17.1: binomtest(k, n).proportion_ci(0.99, method="exact").
func TestLossRangeAgreesWithScipy(t *testing.T) {
	for _, c := range []struct {
		lost, packets uint64
		low, high     float64
	}{
		{0, 100, 0, 0.05160403},
		{21, 20_000, 0.00055359, 0.00179664},
		{100, 100, 0.94839597, 1},
		{5, 10, 0.12831055, 0.87168945},
	} {
		low, high := lossRange(c.lost, c.packets)
		if math.Abs(low-c.low) > 1e-8 || math.Abs(high-c.high) > 1e-8 {
			t.Errorf("%d of %d: got [%.8f, %.8f], want [%.8f, %.8f]", c.lost, c.packets, low, high, c.low, c.high)
		}
	}
}

// A link that duplicates every packet and then loses most loses more than enter it.
func TestMoreLostThanEntered(t *testing.T) {
	for want, lost := range map[string]uint64{"100.0% [": 100, "101 of 100": 101, "180 of 100": 180} {
		l := Link{Asked: impair.Direction{Name: "a → b"}, Seen: impair.Counters{Packets: 100, Lost: lost}}
		if got := linkOf("cell", Result{}, l).Loss; !strings.HasPrefix(got, want) {
			t.Errorf("%d lost of 100 packets: %q, want %s", lost, got, want)
		}
	}
}

func TestLongTableIsCut(t *testing.T) {
	var all table[int]
	for range 3 {
		all.add(make([]int, rowsMax/2)...)
	}
	if len(all.Rows) != rowsMax || all.More != rowsMax/2 || all.Open() {
		t.Errorf("%d rows and %d more, open %v", len(all.Rows), all.More, all.Open())
	}
}

func TestScaledInWords(t *testing.T) {
	at := func(s float64, pods int) Scale { return Scale{At: time.Duration(s * 1e9), Pods: pods} }
	for want, scale := range map[string][]Scale{
		"":      nil,
		"1 pod": {at(0.004, 1)}, "2 pods": {at(0, 2)},
		"1 pod, 3 from 17.2 s, 2 from 81.0 s": {at(0, 1), at(17.21, 3), at(81, 2)},
	} {
		if got := (Scaled{Scale: scale}).String(); got != want {
			t.Errorf("%v reads %q, want %q", scale, got, want)
		}
	}
}
