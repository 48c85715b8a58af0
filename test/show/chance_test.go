package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
)

// Kolmogorov's distribution has these points in every table.
func TestKolmogorovChance(t *testing.T) {
	const n = 10_000
	for _, tt := range []struct{ point, want float64 }{
		{1.6276, 0.01}, {1.3581, 0.05}, {1.2238, 0.1}, {0.8276, 0.5}, {0.01, 1}, {5, 0},
	} {
		distance := tt.point / (100 + 0.12 + 0.11/100)
		if got := kolmogorovChance(distance, n); math.Abs(got-tt.want) > 0.0001 {
			t.Errorf("at the point %g: %.5f, want %g", tt.point, got, tt.want)
		}
	}
}

// jitters draws n jitters of a distribution, in ascending order.
func jitters(d impair.Impairment, n int, seed uint64) []float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	all := make([]float64, n)
	for i := range all {
		all[i] = d.Quantile(random.Float64())
	}
	slices.Sort(all)
	return all
}

// What was drawn from a distribution passes at 1 % about as often as it should, and
// what was not does not pass.
func TestKolmogorovTellsDistributionsApart(t *testing.T) {
	const n, runs, level = 2000, 100, 0.01
	table, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	all := []impair.Impairment{
		{Distribution: impair.Uniform}, {Distribution: impair.Normal}, {Distribution: impair.Pareto},
		{Distribution: "measured.csv", Table: table},
	}
	failed := 0
	for i, drawn := range all {
		for run := range runs {
			if kolmogorovChance(kolmogorov(jitters(drawn, n, uint64(i*runs+run)), drawn), n) < level {
				failed++
			}
		}
		for _, other := range all {
			sample := jitters(drawn, n, 1)
			if drawn != other && kolmogorovChance(kolmogorov(sample, other), n) >= level {
				t.Errorf("%s passes for %s", drawn.Distribution, other.Distribution)
			}
		}
		shifted := jitters(drawn, n, 1)
		for i := range shifted {
			shifted[i] += 0.1
		}
		if kolmogorovChance(kolmogorov(shifted, drawn), n) >= level {
			t.Errorf("%s passes when it is a tenth of the jitter late", drawn.Distribution)
		}
	}
	if low, high := binomialBounds(len(all)*runs, level); failed < low || failed > high {
		t.Errorf("%d of %d samples failed at 1 %%, want %d to %d", failed, len(all)*runs, low, high)
	}
}

// The tail of a table lies at its end, where a clock sees it a little beside.
func TestSharesAtTheEndOfATail(t *testing.T) {
	tail := 1 - math.Pow(impair.TableReach*math.Sqrt(0.75)+1.5, -3) // of a Pareto distribution
	for _, x := range []float64{impair.TableReach, impair.TableReach - 0.001, impair.TableReach + 0.001} {
		if below, most := shares(impair.Impairment{Distribution: impair.Pareto}, x); math.Abs(below-tail) > 1e-5 || most != 1 {
			t.Errorf("at %g: %g below, %g up to it, want %g and 1", x, below, most, tail)
		}
	}
	if below, most := shares(impair.Impairment{}, 0); below != 0.5 || most != 0.5 {
		t.Errorf("uniform at 0: %g below, %g up to it", below, most)
	}
}

// The intervals of bursts hold what a simulated channel does, and are no wider than
// they need be.
func TestBurstBoundsHoldTheModel(t *testing.T) {
	const n, runs = 10_000, 400
	b := impair.Burst{Enter: 0.01, Leave: 0.2}
	random := rand.New(rand.NewPCG(1, 1))
	var losses, lengths []float64
	for range runs {
		lost, bursts := 0, 0
		bad := random.Float64() < b.Share()
		for range n {
			turn := float64(b.Enter)
			if bad {
				lost++
				turn = float64(b.Leave)
			}
			if random.Float64() < turn {
				if bad {
					bursts++
				}
				bad = !bad
			}
		}
		losses = append(losses, float64(lost)/n)
		lengths = append(lengths, float64(lost)/float64(bursts))
	}
	for _, c := range []struct {
		name string
		seen []float64
		want spread
	}{{"loss", losses, burstLoss(b, n)}, {"length", lengths, burstLength(b, n)}} {
		low, high := c.want.bounds()
		out := 0
		for _, v := range c.seen {
			if v < low || v > high {
				out++
			}
		}
		if out > runs/25 {
			t.Errorf("%s: %d of %d outside of %g to %g", c.name, out, runs, low, high)
		}
		s := measure.Sort(c.seen)
		if wide := (high - low) / (s.Quantile(0.995) - s.Quantile(0.005)); wide > 1.3 || math.Abs(s.Mean()/c.want.mean-1) > 0.02 {
			t.Errorf("%s: mean %g, want %g; the interval is %.2f times what was seen", c.name, s.Mean(), c.want.mean, wide)
		}
	}
}

func TestOrderStatistic(t *testing.T) {
	var values []float64
	for i := range 1001 {
		values = append(values, float64(i))
	}
	// Ranks 500 ± 1.96 sqrt(n/4).
	if e := orderStatistic(measure.Sort(values), 1001, 0.5); e.value != 500 || math.Abs(e.low-469) > 1 || math.Abs(e.high-531) > 1 {
		t.Errorf("median %+v", e)
	}
	if e := orderStatistic(measure.Sort(values[:11]), 11, 0.99); e.high != 10 {
		t.Errorf("p99 of 11 values %+v, want the greatest as its end", e)
	}
}

// The guest's lines count as if they were made here; what else it says is kept.
func TestTranscriptCountsLines(t *testing.T) {
	var out bytes.Buffer
	tr := &transcript{bench: &bench{out: &out, lines: 1}}
	const pass, fail = "PASS  a: 1, bound 2  [x]\n", "FAIL  b: 3, bound 2  [x]\n"
	for _, b := range []string{"[    0.1] boot\nPA", "SS  a: 1, bound 2  [x]\n" + fail, "guest: exit 0\nhalf a line"} {
		if n, err := tr.Write([]byte(b)); n != len(b) || err != nil {
			t.Errorf("wrote %d of %q, %v", n, b, err)
		}
	}
	if out.String() != pass+fail || tr.lines != 3 || tr.failed != 1 || tr.talk.String() != "[    0.1] boot\nguest: exit 0\n" {
		t.Errorf("%d lines, %d failed, out %q, talk %q", tr.lines, tr.failed, out.String(), tr.talk.String())
	}
}

// A line that chance fails once is measured again, and the second one counts.
func TestTwice(t *testing.T) {
	for _, c := range []struct {
		name, want string
		passes     []bool
		failed     int
	}{
		{"at once", "PASS  a: 1, bound 2  [make show AREA=netem]\n", []bool{true}, 0},
		{"then", "PASS  a, once more after a: 1: 2, bound 2  [make show AREA=netem]\n", []bool{false, true}, 0},
		{"never", "FAIL  a, once more after a: 1: 2, bound 2  [make show AREA=netem]\n", []bool{false, false}, 1},
	} {
		var out bytes.Buffer
		r := &reference{bench: &bench{out: &out}}
		n := 0
		err := r.twice(func() ([]line, error) {
			n++
			return []line{{what: "a", seen: string(rune('0' + n)), bound: "2", pass: c.passes[n-1]}}, nil
		})
		if err != nil || out.String() != c.want || r.failed != c.failed || n != len(c.passes) {
			t.Errorf("%s: %q, %v, %d failed, measured %d times", c.name, out.String(), err, r.failed, n)
		}
	}
}
