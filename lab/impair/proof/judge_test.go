package proof

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

const ms = quantity.Duration(time.Millisecond)

// good is a direction that did what it was asked to do.
func good() Direction {
	asked := impair.Impairment{Delay: 5 * ms, Loss: 0.001, Rate: 1e9}
	probe := Probe{Sent: 24, Received: 24, DelayNs: 5_000_000, Rate: 1e9, RateExpected: 1e9}
	return Direction{
		Name: "c1>c2", Unit: impair.UnitPacket, Asked: asked, Before: probe, After: probe,
		Seen: impair.Counters{Packets: 20_000, Bytes: 3e7, Lost: 20},
	}
}

func TestJudge(t *testing.T) {
	const host = "; steal 10ms, longest gap 2ms (1 over 1ms)"
	cases := []struct {
		name  string
		spoil func(*Direction)
		// want is the reason without the direction and the host; empty for none.
		want string
	}{
		{"as asked", func(*Direction) {}, ""},
		{"delay at its bound", func(d *Direction) { d.After.DelayNs += 100_000 }, ""},
		{"delay above it", func(d *Direction) { d.After.DelayNs += 101_000 }, "delay 5.101ms after the load, asked 5ms ± 100µs"},
		{"delay below it", func(d *Direction) { d.Before.DelayNs -= 101_000 }, "delay 4.899ms before the load, asked 5ms ± 100µs"},
		{"a long delay has 2 %", func(d *Direction) {
			d.Asked.Delay, d.Before.DelayNs, d.After.DelayNs = 50*ms, 51e6, 49e6
		}, ""},
		{"a long delay above 2 %", func(d *Direction) {
			d.Asked.Delay, d.Before.DelayNs, d.After.DelayNs = 50*ms, 50e6, 51_100_000
		}, "delay 51.1ms after the load, asked 50ms ± 1ms"},
		// z is 3.29 at alpha 0.001.
		{"jitter within chance", func(d *Direction) {
			d.Asked.Jitter, d.After.DelaySpreadNs = ms, 80_000
			d.After.DelayNs += 363_000
		}, ""},
		{"jitter beyond chance", func(d *Direction) {
			d.Asked.Jitter, d.After.DelaySpreadNs = ms, 80_000
			d.After.DelayNs += 364_000
		}, "delay 5.364ms after the load, asked 5ms ± 363µs"},
		{"rate at its bound", func(d *Direction) { d.After.Rate = 0.91e9 }, ""},
		{"rate below it", func(d *Direction) { d.After.Rate = 0.9e9 }, "rate 900mbit after the load, asked 1gbit and expected 1gbit ± 10%"},
		{"rate above it", func(d *Direction) { d.Before.Rate = 1.2e9 }, "rate 1200mbit before the load, asked 1gbit and expected 1gbit ± 10%"},
		{"a slow sender", func(d *Direction) { d.After.Rate, d.After.RateExpected = 3e8, 3e8 }, ""},
		{"no rate to tell", func(d *Direction) { d.After.Rate, d.After.RateExpected = 0, 0 }, ""},
		{"no probe arrived", func(d *Direction) { d.After = Probe{Sent: 24} }, "none of 24 probes arrived after the load"},
		{"none can arrive", func(d *Direction) {
			d.Asked.Loss, d.Seen.Lost = 1, 20_000
			d.Before, d.After = Probe{Sent: 24}, Probe{Sent: 24}
		}, ""},
		{"no nodes to probe between", func(d *Direction) { d.Before, d.After = Probe{}, Probe{} }, ""},
		{"loss too high", func(d *Direction) { d.Seen.Lost = 45 }, "lost 45 of 20000 packets (0.225%), asked 0.1%"},
		{"loss too low", func(d *Direction) { d.Seen.Lost = 4 }, "lost 4 of 20000 packets (0.02%), asked 0.1%"},
		{"loss unasked", func(d *Direction) { d.Asked.Loss, d.Seen.Lost = 0, 1 }, "lost 1 of 20000 packets (0.005%), asked 0%"},
		{"loss counted in other units", func(d *Direction) { d.Seen.Lost, d.LossUnknown = 45, true }, ""},
		{"no packet", func(d *Direction) { d.Seen = impair.Counters{} }, ""},
		{"overflow is honest", func(d *Direction) { d.Seen.Overflowed = 5000 }, ""},
		{"missed", func(d *Direction) { d.Seen.Missed = 1 }, "1 packets were dropped before the emulator could read them"},
		{"late at the bound", func(d *Direction) { d.Seen.Late = 1000 }, ""},
		{"late above it by one stall", func(d *Direction) { d.Seen.Packets, d.Seen.Lost, d.Seen.Late = 67, 0, 6 }, ""},
		{"late above it", func(d *Direction) { d.Seen.Late, d.Seen.LateMaxNs = 1150, 2_500_000 },
			"the emulator fell behind: 5.75% of 20000 packets left more than 100µs late, the worst 2.5ms"},
		{"set anew", func(d *Direction) { d.Reset = true }, "the link was set anew during the load"},
	}
	for _, c := range cases {
		d := good()
		c.spoil(&d)
		p := Proof{Directions: []Direction{good(), d}, Host: Host{StealNs: 1e7, GapMaxNs: 2e6, Gaps: 1}}
		var want []string
		if c.want != "" {
			want = []string{"c1>c2: " + c.want + host}
		}
		if got := Judge(p, 0.001); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
}

// Every direction is judged, and each of its faults is told.
func TestJudgeTellsAll(t *testing.T) {
	p := Proof{}
	for i := range 3 {
		d := good()
		d.Name = fmt.Sprint(i)
		d.Seen.Missed, d.After.DelayNs = 1, 0
		p.Directions = append(p.Directions, d)
	}
	got := strings.Join(Judge(p, 0.01), "\n")
	if strings.Count(got, "\n") != 5 || strings.Count(got, "0: delay") != 1 || strings.Count(got, "2: 1 packets") != 1 {
		t.Errorf("got\n%s", got)
	}
	if !strings.HasSuffix(got, "; steal 0s, longest gap 0s") {
		t.Errorf("a quiet host is told as %s", got)
	}
}

func TestDisturbed(t *testing.T) {
	for _, c := range []struct {
		host Host
		want bool
	}{{Host{}, false}, {Host{GapMaxNs: 900_000}, false}, {Host{Gaps: 1}, true}, {Host{StealNs: 1e7}, true}} {
		if c.host.Disturbed() != c.want {
			t.Errorf("%+v: got %v", c.host, !c.want)
		}
	}
}

// Tails by scipy 1.17: 2·min(binom.cdf(k, n, p), binom.sf(k-1, n, p)), at most 1.
func TestTwoSided(t *testing.T) {
	for _, c := range []struct {
		n, k    uint64
		p, want float64
	}{
		{20000, 20, 0.001, 1},
		{20000, 45, 0.001, 2.08799573514e-06},
		{20000, 4, 0.001, 3.36701846047e-05},
		{10000000, 8300, 0.0008, 0.000864923229918},
		{10000000, 8000, 0.0008, 1},
		{10, 0, 0.5, 0.001953125},
		{10, 10, 0.5, 0.001953125},
		{1, 1, 0.3, 0.6},
		{5, 5, 0.001, 2e-15},
		{1000, 0, 0.02, 3.36593471443e-09},
		{300, 299, 0.999, 0.518585935688},
		{10, 0, 0, 1},
		{10, 1, 0, 0},
		{10, 10, 1, 1},
		{10, 9, 1, 0},
		{10, 11, 0.5, 0}, // no count of ours, but no panic either
	} {
		got := twoSided(c.n, c.k, c.p)
		if math.Abs(got-c.want) > 1e-7*c.want {
			t.Errorf("n=%d k=%d p=%g: got %.12g, want %.12g", c.n, c.k, c.p, got, c.want)
		}
	}
}

func TestTests(t *testing.T) {
	for _, c := range []struct {
		asked impair.Impairment
		want  int
	}{
		{impair.Impairment{Delay: ms}, 0},
		{impair.Impairment{Delay: ms, Rate: 1e9}, 0},
		{impair.Impairment{Loss: 1}, 0},
		{impair.Impairment{Loss: 0.1}, 3},
		{impair.Impairment{Delay: ms, Jitter: ms}, 2},
		{impair.Impairment{Delay: ms, Jitter: ms, Loss: 0.1, Rate: 1e9}, 7},
	} {
		if got := Tests(c.asked); got != c.want {
			t.Errorf("%s: got %d, want %d", c.asked, got, c.want)
		}
	}
	if Alpha(0) != 0.01 || Alpha(100) != 0.0001 {
		t.Errorf("alpha %g and %g, want 0.01 and 0.0001", Alpha(0), Alpha(100))
	}
}

// repeat is a proof of a repetition whose packets pass a link that does actual,
// where asked was asked for.
func repeat(asked, actual impair.Impairment, packets int, random *rand.Rand) Proof {
	var lost uint64
	for range packets {
		if random.Float64() < float64(actual.Loss) {
			lost++
		}
	}
	return Proof{Directions: []Direction{{
		Name: "c1>c2", Asked: asked,
		Before: Measure(asked, plainNs, cross(asked, asked, random)),
		After:  Measure(asked, plainNs, cross(asked, actual, random)),
		Seen:   impair.Counters{Packets: uint64(packets), Lost: lost},
	}}}
}

// edg10 is the link of the quickstart.
func edg10() impair.Impairment {
	return impair.Impairment{Delay: 5 * ms, Jitter: ms, Loss: 0.0008, Rate: 1e9}
}

// The level holds: at 10 % a test, of links that do what was asked no larger share
// of tests fails than chance makes likely; at the level of a large run, none.
func TestFalseRejection(t *testing.T) {
	slow := impair.Impairment{Delay: 5 * ms, Jitter: ms, Loss: 0.0008, Rate: 1e8}
	normal, reordering := slow, slow
	normal.Distribution = impair.Normal
	reordering.Reorder = true
	const repetitions, level, large = 60, 0.1, 10_000
	for name, asked := range map[string]impair.Impairment{"uniform": slow, "normal": normal, "reordering": reordering} {
		random := rand.New(rand.NewPCG(1, 1))
		var failed int
		for range repetitions {
			p := repeat(asked, asked, 5000, random)
			failed += len(Judge(p, level))
			if reasons := Judge(p, Alpha(large)); len(reasons) > 0 {
				t.Errorf("%s: rejected: %v", name, reasons)
			}
		}
		tests := repetitions * Tests(asked)
		if twoSided(uint64(tests), uint64(failed), level) < 0.001 && failed > tests/10 {
			t.Errorf("%s: %d of %d tests fail at the level %g", name, failed, tests, level)
		}
	}
}

// The alterations that the lab must find are found every time, at the level of a
// run of 100 repetitions over two directions.
func TestAlterationsAreFound(t *testing.T) {
	for _, asked := range []impair.Impairment{edg10(), {Delay: ms, Loss: 0.001, Rate: 4e8}} {
		for word, alter := range map[string]func(*impair.Impairment){
			"delay": func(i *impair.Impairment) { i.Delay += ms },
			"lost":  func(i *impair.Impairment) { i.Loss = 0.005 },
			"rate":  func(i *impair.Impairment) { i.Rate /= 2 },
		} {
			random := rand.New(rand.NewPCG(2, 2))
			for range 20 {
				actual := asked
				alter(&actual)
				reasons := strings.Join(Judge(repeat(asked, actual, 10_000, random), Alpha(100*2*Tests(asked))), "\n")
				if !strings.Contains(reasons, "c1>c2: "+word+" ") || strings.Contains(reasons, "before") {
					t.Fatalf("%s in place of %s: %q", actual, asked, reasons)
				}
			}
		}
	}
}
