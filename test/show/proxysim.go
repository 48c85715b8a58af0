package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"skerry.dev/skerry/proxy/balance"
	"skerry.dev/skerry/proxy/balance/sim"
)

// simSeeds is how often each case is played, each time by other chances.
const simSeeds = 20

const simCommand = "make show AREA=proxy-sim"

// showProxySim holds the simulator to an independent prototype, and the policy cost to all
// others in it.
func showProxySim(ctx context.Context, b *bench) error {
	if err := b.likePrototype(ctx); err != nil {
		return err
	}
	for _, delay := range []time.Duration{3 * time.Millisecond, 10 * time.Millisecond} {
		if err := b.costAgainstAll(ctx, delay); err != nil {
			return err
		}
	}
	return nil
}

// noted is what a prototype's simulation gave, of one seed, in requests a second: of
// random, RAP with metrics of 15 s and of 0.1 s, and peak EWMA. NaN was not told.
type noted struct {
	of   sim.Case
	want [4]float64
}

// notes are the prototype's, at a short and a long delay.
func notes() []noted {
	const ms = time.Millisecond
	nan := math.NaN()
	var all []noted
	add := func(at func(time.Duration) sim.Case, long time.Duration, short4, long4 [4]float64) {
		all = append(all, noted{at(3 * ms), short4}, noted{at(long), long4})
	}
	closed := func(users ...int) func(time.Duration) sim.Case {
		return func(d time.Duration) sim.Case { return sim.Closed([4]int(users), d) }
	}
	named := func(name string) func(time.Duration) sim.Case {
		return func(d time.Duration) sim.Case {
			for _, c := range sim.Cases(d) {
				if c.Name == name {
					return c
				}
			}
			panic(name)
		}
	}
	add(closed(8, 8, 8, 8), 18*ms, [4]float64{4555, 6008, 6008, 5339}, [4]float64{1117, 6008, 6008, 1636})
	add(closed(4, 0, 0, 0), 10*ms, [4]float64{666, 828, 1022, 880}, [4]float64{245, 586, 823, 348})
	add(closed(8, 0, 0, 0), 10*ms, [4]float64{1327, 1173, 1299, 1711}, [4]float64{485, 716, 956, 692})
	add(closed(16, 0, 0, 0), 10*ms, [4]float64{2592, 1498, 1589, 2977}, [4]float64{975, 971, 1192, 1374})
	add(closed(32, 0, 0, 0), 10*ms, [4]float64{4590, 1502, 1752, 4455}, [4]float64{1927, 1417, 1594, 2587})
	add(closed(32, 2, 1, 1), 10*ms, [4]float64{4873, 3518, 3117, 5009}, [4]float64{2159, 3515, 3405, 2904})
	add(closed(32, 32, 1, 1), 10*ms, [4]float64{5678, 2621, 3472, 5991}, [4]float64{3860, 2635, 3488, 4679})
	add(named("a burst that moves"), 10*ms, [4]float64{4854, 4198, 3189, 5001}, [4]float64{2165, 4198, 3361, 2912})
	add(named("a remote that fails fast"), 10*ms, [4]float64{nan, 1801, 2260, 3662}, [4]float64{nan, 1803, 2273, 2286})
	return all
}

// likePrototype holds the columns that the prototype has to its figures.
func (b *bench) likePrototype(ctx context.Context) error {
	columns := columnsOf(sim.Columns(), "random", "rap", "rap-100ms", "ewma")
	all := notes()
	var cases []sim.Case
	for _, n := range all {
		cases = append(cases, n.of)
	}
	rows, err := sim.Table(cases, columns, simSeeds)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, column := range columns {
		farthest, where, cases := 0.0, "", 0
		for j, row := range rows {
			if math.IsNaN(all[j].want[i]) { // the prototype has none
				continue
			}
			cases++
			off := row.Results[i].Goodput/all[j].want[i] - 1
			if math.Abs(off) > math.Abs(farthest) {
				farthest, where = off, fmt.Sprintf("%s at %v", row.Case.Name, row.Case.Delay)
			}
		}
		b.print(line{
			what: fmt.Sprintf("simulated goodput of %s in %d cases, medians of %d seeds", column.Name, cases, simSeeds),
			seen: fmt.Sprintf("farthest from the prototype's by %+.1f %%, in %s", 100*farthest, where), bound: "within 10 %",
			command: simCommand, pass: math.Abs(farthest) <= 0.1,
		})
	}
	return nil
}

// columnsOf these names are the columns of these names, in their order.
func columnsOf(columns []sim.Column, names ...string) []sim.Column {
	var some []sim.Column
	for _, name := range names {
		for _, c := range columns {
			if c.Name == name {
				some = append(some, c)
			}
		}
	}
	return some
}

// capacity of the simulated cluster, in requests a second: eight cores for 1.33 ms.
const capacity = 8 / 1.33e-3

// costAgainstAll plays the twenty cases at a delay.
func (b *bench) costAgainstAll(ctx context.Context, delay time.Duration) error {
	columns := sim.Columns()
	rows, err := sim.Table(sim.Cases(delay), columns, simSeeds)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	best, goodput, tail, oracle, free := 0, lowest{}, lowest{}, lowest{}, 0
	for _, row := range rows {
		cost, others, all := sides(row, columns)
		if cost.Goodput >= others.Goodput {
			best++
		}
		goodput.take(cost.Goodput/others.Goodput, row.Case.Name)
		tail.take(others.P99.Seconds()/cost.P99.Seconds(), row.Case.Name)
		if all.Goodput < 0.95*capacity {
			free++
			oracle.take(cost.Goodput/all.Goodput, row.Case.Name)
		}
	}
	at := fmt.Sprintf("simulated at %v, %d cases, medians of %d seeds: cost", delay, len(rows), simSeeds)
	for _, l := range []line{
		{what: at + "'s goodput beside the best other policy's", seen: goodput.String(), bound: ">= 0.95 in all", pass: goodput.value >= 0.95},
		{what: at + " is best", seen: fmt.Sprintf("in %d", best), bound: ">= 14", pass: best >= 14},
		{what: at + "'s p99 beside the best other's", seen: strings.Replace(tail.inverse().String(), "least", "most", 1), bound: "<= 1.25 in all", pass: tail.value >= 1/1.25},
		{what: at + "'s goodput beside the clairvoyant's", seen: fmt.Sprintf("%s of %d under capacity", oracle, free), bound: ">= 0.9", pass: oracle.value >= 0.9},
	} {
		l.command = simCommand
		b.print(l)
	}
	return nil
}

// sides are what cost, the best of the other policies in each figure, and the oracle did.
func sides(row sim.Row, columns []sim.Column) (cost, others, oracle sim.Result) {
	others.P99 = math.MaxInt64
	for i, c := range columns {
		r := row.Results[i]
		switch {
		case c.Oracle:
			oracle = r
		case c.Options.Policy == balance.Cost:
			cost = r
		default:
			others.Goodput = max(others.Goodput, r.Goodput)
			others.P99 = min(others.P99, r.P99)
		}
	}
	return cost, others, oracle
}

// lowest is the least of some values, and whose it is.
type lowest struct {
	value float64
	of    string
	has   bool
}

func (l *lowest) take(value float64, of string) {
	if !l.has || value < l.value {
		*l = lowest{value, of, true}
	}
}

func (l lowest) inverse() lowest { return lowest{1 / l.value, l.of, l.has} }

func (l lowest) String() string { return fmt.Sprintf("%.3f at the least, in %s", l.value, l.of) }
