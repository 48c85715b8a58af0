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

// judgement is a direction that is not what was asked for, and what is said of it.
type judgement struct {
	name  string
	spoil func(*Direction)
	// want is the reason without the direction and the host; empty for none.
	want string
}

func judge(t *testing.T, cases []judgement) {
	t.Helper()
	const host = "; steal 10ms, longest gap 2ms (1 over 1ms)"
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

func TestJudge(t *testing.T) {
	judge(t, []judgement{
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
	})
}

// behind adds a stage to which a number of packets came.
func behind(d *Direction, came uint64, stage impair.Impairment) {
	d.Then = append(d.Then, stage)
	d.Seen.Came[len(d.Then)-1] = came
}

// What a link chooses at random is counted, and the stages add up.
func TestJudgeCountsAndStages(t *testing.T) {
	judge(t, []judgement{
		{"bursts by chance", func(d *Direction) {
			// 0.0385 ± 0.0066 (4 standard deviations, as they are with bursts) is lost.
			d.Asked.Loss, d.Asked.Burst, d.Seen.Lost = 0, impair.Burst{Enter: 0.01, Leave: 0.25}, 870
		}, ""},
		{"bursts too long", func(d *Direction) {
			d.Asked.Loss, d.Asked.Burst, d.Seen.Lost = 0, impair.Burst{Enter: 0.01, Leave: 0.25}, 1100
		}, "lost 1100 of 20000 packets (5.5%), asked 3.85%"},
		{"duplicates as asked", func(d *Direction) { d.Asked.Duplicate, d.Seen.Duplicated = 0.01, 200 }, ""},
		{"duplicates unasked", func(d *Direction) { d.Seen.Duplicated = 1 }, "duplicated 1 of 20000 packets (0.005%), asked 0%"},
		{"too few duplicates", func(d *Direction) { d.Asked.Duplicate, d.Seen.Duplicated = 0.01, 130 }, "duplicated 130 of 20000 packets (0.65%), asked 1%"},
		{"corruption as asked", func(d *Direction) { d.Asked.Corrupt, d.Seen.Corrupted = 0.01, 200 }, ""},
		{"too much corruption", func(d *Direction) { d.Asked.Corrupt, d.Seen.Corrupted = 0.01, 260 }, "corrupted 260 of 20000 packets (1.3%), asked 1%"},
		{"corruption that is not counted", func(d *Direction) { d.Asked.Corrupt, d.CopiesUnknown = 0.01, true }, ""},
		{"reordering as asked", func(d *Direction) { d.Asked.Reorder, d.Seen.Reordered = 0.01, 200 }, ""},
		{"no reordering", func(d *Direction) { d.Asked.Reorder = 0.01 }, "reordered 0 of 20000 packets (0%), asked 1%"},
		{"nothing of it counted", func(d *Direction) {
			d.Asked.Corrupt, d.Asked.Duplicate, d.LossUnknown = 0.01, 0.01, true
		}, ""},
		{"delays of stages add up", func(d *Direction) {
			d.Then = []impair.Impairment{{Delay: 2 * ms}}
			d.Before.DelayNs, d.After.DelayNs = 7e6, 7e6
		}, ""},
		{"a stage is missing", func(d *Direction) {
			d.Then = []impair.Impairment{{Delay: 2 * ms}}
			d.Before.DelayNs = 7e6
		}, "delay 5ms after the load, asked 7ms ± 140µs"},
		{"losses of stages add up", func(d *Direction) {
			behind(d, 19_980, impair.Impairment{Loss: 0.009})
			d.Seen.Lost = 200
		}, ""},
		{"the loss of a stage is missing", func(d *Direction) {
			behind(d, 19_980, impair.Impairment{Loss: 0.009})
		}, "lost 20 of 20000 packets (0.1%), asked 0.999%"},
		// An event has the loss of a stage begin while packets are under way to it.
		{"losses of packets that entered before", func(d *Direction) {
			behind(d, 22_480, impair.Impairment{Loss: 0.2})
			d.Seen.Lost = 4516
		}, ""},
		{"too few losses of these", func(d *Direction) {
			behind(d, 22_480, impair.Impairment{Loss: 0.2})
			d.Seen.Lost = 4200
		}, "lost 4200 of 20000 packets (21%), asked 20.1%"},
		{"losses of packets that have not come to it", func(d *Direction) {
			behind(d, 17_480, impair.Impairment{Loss: 0.2})
			d.Seen.Lost = 3516
		}, ""},
		{"none has come to it", func(d *Direction) { behind(d, 0, impair.Impairment{Loss: 0.2}) }, ""},
		{"losses by a back end that cannot tell", func(d *Direction) {
			behind(d, 0, impair.Impairment{Loss: 0.2})
			d.Seen.Lost, d.CopiesUnknown = 4016, true
		}, ""},
		{"too many losses by it", func(d *Direction) {
			behind(d, 0, impair.Impairment{Loss: 0.2})
			d.Seen.Lost, d.CopiesUnknown = 4516, true
		}, "lost 4516 of 20000 packets (22.6%), asked 20.1%"},
		{"corrupted probes do not arrive", func(d *Direction) {
			d.Asked.Corrupt, d.Seen.Corrupted, d.After = 0.9, 17_982, Probe{Sent: 24}
		}, ""},
	})
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
		{impair.Impairment{Duplicate: 0.1}, 1},
		{impair.Impairment{Duplicate: 1}, 0},
		{impair.Impairment{Duplicate: 0.1, Rate: 1e9}, 5},
		{impair.Impairment{Corrupt: 0.1}, 3},
		{impair.Impairment{Corrupt: 0.1, Loss: 0.1, Rate: 1e9}, 8},
		{impair.Impairment{Delay: ms, Reorder: 0.1}, 3},
		{impair.Impairment{Burst: impair.Burst{Enter: 0.1, Leave: 0.1}}, 3},
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
func repeat(asked, actual impair.Stages, packets int, random *rand.Rand) Proof {
	return Proof{Directions: []Direction{{
		Name: "c1>c2", Asked: asked[0], Then: asked[1:],
		Before: Measure(asked, plainNs, travel(asked, asked, random)),
		After:  Measure(asked, plainNs, travel(asked, actual, random)),
		Seen:   count(actual, packets, random),
	}}}
}

// count is what a link counts of packets, its copies among them.
func count(does impair.Stages, packets int, random *rand.Rand) impair.Counters {
	seen := impair.Counters{Packets: uint64(packets)}
	bad := make([]bool, len(does))
	for i, s := range does {
		bad[i] = random.Float64() < s.Burst.Share()
	}
	chosen := func(p quantity.Fraction, count *uint64) bool {
		yes := random.Float64() < float64(p)
		if yes {
			*count++
		}
		return yes
	}
	var meet func(stage int)
	meet = func(stage int) {
		if stage == len(does) {
			return
		}
		if stage > 0 {
			seen.Came[stage-1]++
		}
		s := does[stage]
		loss, turns := s.Loss, s.Burst.Enter
		if bad[stage] {
			loss, turns = s.Burst.Drops(), s.Burst.Leave
		}
		bad[stage] = bad[stage] != (random.Float64() < float64(turns))
		if chosen(loss, &seen.Lost) {
			return
		}
		chosen(s.Corrupt, &seen.Corrupted)
		chosen(s.Reorder, &seen.Reordered)
		if chosen(s.Duplicate, &seen.Duplicated) {
			meet(stage + 1)
		}
		meet(stage + 1)
	}
	for range packets {
		meet(0)
	}
	return seen
}

// edg10 is the link of the quickstart.
func edg10() impair.Impairment {
	return impair.Impairment{Delay: 5 * ms, Jitter: ms, Loss: 0.0008, Rate: 1e9}
}

// The level holds: at 10 % a test, of links that do what was asked no larger share
// of tests fails than chance makes likely; at the level of a large run, none.
func TestFalseRejection(t *testing.T) {
	slow := impair.Impairment{Delay: 5 * ms, Jitter: ms, Loss: 0.0008, Rate: 1e8}
	normal, pareto, unordered := slow, slow, slow
	normal.Distribution, pareto.Distribution = impair.Normal, impair.Pareto
	unordered.Unordered = true
	measured := impair.Impairment{Delay: 20 * ms, Jitter: 4 * ms, Loss: 0.0008, Rate: 1e8, Distribution: "wan.csv"}
	measured.Table = twoRoutes(t)
	const repetitions, level, large = 40, 0.1, 10_000
	for name, asked := range map[string]impair.Stages{
		"uniform": {slow}, "normal": {normal}, "pareto": {pareto}, "unordered": {unordered}, "measured": {measured},
		"bursts":     {{Delay: 5 * ms, Burst: impair.Burst{Enter: 0.01, Leave: 0.25}}},
		"duplicates": {{Delay: ms, Duplicate: 0.2, Rate: 1e8}},
		"corrupts":   {{Delay: ms, Corrupt: 0.2, Loss: 0.1, Rate: 1e8}},
		"reorders":   {{Delay: 5 * ms, Reorder: 0.25, Rate: 1e8}},
		"stages":     {{Delay: 5 * ms, Loss: 0.05, Duplicate: 0.1}, {Delay: 3 * ms, Jitter: ms, Rate: 1e8, Reorder: 0.05}, {Loss: 0.1, Corrupt: 0.1}},
	} {
		random := rand.New(rand.NewPCG(1, 1))
		var failed int
		for range repetitions {
			p := repeat(asked, asked, 5000, random)
			failed += len(Judge(p, level))
			if reasons := Judge(p, Alpha(large)); len(reasons) > 0 {
				t.Errorf("%s: rejected: %v", name, reasons)
			}
		}
		tests := repetitions * Tests(asked...)
		if twoSided(uint64(tests), uint64(failed), level) < 0.001 && failed > tests/10 {
			t.Errorf("%s: %d of %d tests fail at the level %g", name, failed, tests, level)
		}
	}
}

// twoRoutes is a recorded distribution of two delays, of which one in five packets
// takes the longer.
func twoRoutes(t *testing.T) *impair.Table {
	t.Helper()
	table, _, _, err := impair.NewTable([]float64{12, 12.5, 13, 13.5, 30})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A probe knows how far a jitter that was measured scatters: as much as probes of
// such a link do.
func TestMeasureKnowsTheSpreadOfARecording(t *testing.T) {
	asked := impair.Stages{{Delay: 20 * ms, Jitter: 4 * ms, Unordered: true, Distribution: "wan.csv", Table: twoRoutes(t)}}
	random := rand.New(rand.NewPCG(8, 8))
	var seen, told moments
	for range 150 {
		p := Measure(asked, plainNs, travel(asked, asked, random))
		seen.add(float64(p.DelayNs))
		told.add(float64(p.DelaySpreadNs))
	}
	if math.Abs(seen.mean()-20e6) > 3*seen.deviation()/math.Sqrt(150) {
		t.Errorf("delay %.0f ns ± %.0f at the mean of 150 probes, want 20 ms", seen.mean(), seen.deviation())
	}
	if ratio := told.mean() / seen.deviation(); ratio < 0.8 || ratio > 1.25 {
		t.Errorf("probes scatter by %.0f ns, and are said to by %.0f", seen.deviation(), told.mean())
	}
}

// The alterations that the lab must find are found every time, at the level of a
// run of 100 repetitions over two directions.
func TestAlterationsAreFound(t *testing.T) {
	rich := impair.Impairment{Delay: 5 * ms, Loss: 0.001, Rate: 4e8, Duplicate: 0.02, Corrupt: 0.02, Reorder: 0.02}
	for _, asked := range []impair.Stages{{edg10()}, {{Delay: ms, Loss: 0.001, Rate: 4e8}}, {rich}, {{Delay: 2 * ms}, rich}} {
		for word, alter := range map[string]func(*impair.Impairment){
			"delay": func(i *impair.Impairment) { i.Delay += ms },
			"lost":  func(i *impair.Impairment) { i.Loss = 0.005 },
			"rate":  func(i *impair.Impairment) { i.Rate /= 2 },

			"duplicated": func(i *impair.Impairment) { i.Duplicate += 0.02 },
			"corrupted":  func(i *impair.Impairment) { i.Corrupt += 0.02 },
			"reordered":  func(i *impair.Impairment) { i.Reorder += 0.02 },
		} {
			random := rand.New(rand.NewPCG(2, 2))
			for range 6 {
				actual := slices.Clone(asked)
				alter(&actual[len(actual)-1])
				reasons := strings.Join(Judge(repeat(asked, actual, 10_000, random), Alpha(100*2*Tests(asked...))), "\n")
				if !strings.Contains(reasons, "c1>c2: "+word+" ") || strings.Contains(reasons, "before") {
					t.Fatalf("%s in place of %s: %q", actual, asked, reasons)
				}
			}
		}
	}
}

// A repetition is tried again where more than 5 % of the cores' time was taken, and
// more than two ticks of it.
func TestRobbed(t *testing.T) {
	const cores = 2
	for _, c := range []struct {
		stolen, took time.Duration
		want         string
	}{
		{0, time.Second, ""},
		{30 * time.Millisecond, 100 * time.Millisecond, ""},
		{100 * time.Millisecond, time.Second, ""},
		{110 * time.Millisecond, time.Second, "the hypervisor gave 6% of the cores to others (at most 5%); steal 110ms, longest gap 0s"},
	} {
		if got := (Host{StealNs: int64(c.stolen)}).Robbed(c.took, cores); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.stolen, c.took, got, c.want)
		}
	}
}
