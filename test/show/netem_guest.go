package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"skerry.dev/skerry/internal/flow"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/netem"
	"skerry.dev/skerry/lab/impair/userspace"
	"skerry.dev/skerry/lab/measure"
)

// reference measures the back ends of links against one another and against what
// is asked of them, in a guest.
type reference struct {
	*bench
	flow.Network
	backend backend
	name    string
	// exact is the error of constant delays by back end: of each delay, in ns.
	exact map[string][]measure.Sorted
	// seed of the next link, which netem takes from Linux 6.6 on.
	seed uint64
}

// backend of links.
type backend interface {
	Set([]impair.Direction) error
	Counters() (map[string]impair.Counters, error)
	Close() error
}

// measureNetem holds both back ends against the same bounds.
func measureNetem(ctx context.Context, b *bench) error {
	n, err := flow.Make()
	if err != nil {
		return err
	}
	r := &reference{bench: b, Network: n, exact: map[string][]measure.Sorted{}}
	for _, one := range []struct {
		name  string
		start func() (backend, error)
	}{
		{"netem", func() (backend, error) { return netem.Start() }},
		{"userspace", func() (backend, error) { return userspace.Start() }},
	} {
		r.name = one.name
		if r.backend, err = one.start(); err != nil {
			return err
		}
		for _, part := range []func() error{
			r.constant, r.chances, func() error { return r.twice(r.bursts) }, r.jitters,
		} {
			if err := errors.Join(part(), ctx.Err()); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", r.name, err), r.backend.Close())
			}
		}
		if err := r.backend.Close(); err != nil {
			return err
		}
	}
	return nil
}

// over runs a flow from c1 to c2 over a link.
func (r *reference) over(i impair.Impairment, f flow.Flow) (flow.Arrivals, error) {
	const name = "c1>c2"
	r.seed++
	f.From, f.To = r.C1N1, r.C2N1
	direction := impair.Direction{
		Name: name, Match: impair.Match{In: flow.Bridge1, Out: flow.Bridge2}, Unit: impair.UnitPacket, Seed: r.seed, Impairment: i,
	}
	if err := r.backend.Set([]impair.Direction{direction}); err != nil {
		return nil, err
	}
	arrivals, err := f.Run()
	if err != nil {
		return nil, err
	}
	all, err := r.backend.Counters()
	if err != nil {
		return nil, err
	}
	if c := all[name]; c.Overflowed+c.Missed > 0 {
		return nil, fmt.Errorf("%d packets found no room, %d were not read", c.Overflowed, c.Missed)
	}
	return arrivals, nil
}

// twice prints the lines of a measurement that chance decides. Where one fails it
// measures once more, and that counts: of lines at a level of 1 % chance fails one
// in 10,000.
func (r *reference) twice(measure func() ([]line, error)) error {
	lines, err := measure()
	if err != nil {
		return err
	}
	if failed := slices.IndexFunc(lines, func(l line) bool { return !l.pass }); failed >= 0 {
		first := lines[failed]
		if lines, err = measure(); err != nil {
			return err
		}
		for i := range lines {
			lines[i].what += fmt.Sprintf(", once more after %s: %s", first.what, first.seen)
		}
	}
	for _, l := range lines {
		l.command = netemCommand
		r.print(l)
	}
	return nil
}

// constant times packets over constant delays; the second back end is held against
// the first.
func (r *reference) constant() error {
	const (
		count = 1000
		// No delay is a multiple of the gap, or the guest's one core would send and
		// deliver at the same time.
		gap   = 1370 * time.Microsecond
		bound = float64(10 * time.Microsecond)
	)
	for i, d := range []time.Duration{1250 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond} {
		arrivals, err := r.over(delay(d), flow.Flow{Count: count, Gap: gap, Urgent: true})
		if err != nil {
			return err
		}
		if len(arrivals) != count {
			return fmt.Errorf("%d of %d packets arrived over %s", len(arrivals), count, d)
		}
		off := measure.Sort(beyond(arrivals, d))
		r.exact[r.name] = append(r.exact[r.name], off)
		if r.name == "netem" {
			continue
		}
		netem := r.exact["netem"][i]
		for _, q := range []float64{0.5, 0.99} {
			own, its := orderStatistic(off, count, q), orderStatistic(netem, count, q)
			e := estimate{own.value - its.value, own.low - its.high, own.high - its.low}
			r.print(line{
				what: fmt.Sprintf("one-way delay of %s, p%g: userspace over netem, n=%d each", d, 100*q, count),
				seen: e.micro(), bound: "within 10 us", floor: "netem " + its.micro() + " over the delay",
				pass: math.Abs(e.value) <= bound, command: netemCommand,
			})
		}
	}
	return nil
}

// beyond is what packets took beyond a delay, in ns.
func beyond(arrivals flow.Arrivals, d time.Duration) []float64 {
	var off []float64
	for _, delay := range arrivals.Delays() {
		off = append(off, float64(delay-d))
	}
	return off
}

// trial is packets of which each is chosen with the same chance.
type trial struct {
	what string
	does impair.Impairment
	send flow.Flow
	// n packets are chosen with the chance p; chosen counts them by what arrived.
	n      int
	p      float64
	chosen func(flow.Arrivals) int
}

// chances counts what arrives over links that act on packets at random.
func (r *reference) chances() error {
	const count, p, size = 5000, 0.02, 1400
	small := flow.Flow{Count: count, Gap: 200 * time.Microsecond}
	bare := small
	bare.Size, bare.Bare = size, true
	harmful := p
	if r.name == "netem" {
		// It flips bits of the Ethernet header, too. In the sender's address, which
		// is six bytes of it, that harms nothing.
		harmful -= p * 6 / float64(size+flow.Headers)
	}
	for _, t := range []trial{
		{"loss", impair.Impairment{Loss: p}, small, count, p,
			func(a flow.Arrivals) int { return count - len(a) }},
		{"duplication", impair.Impairment{Duplicate: p}, small, count, p, flow.Arrivals.Copies},
		{"corruption", impair.Impairment{Corrupt: p}, bare, count, harmful,
			func(a flow.Arrivals) int { return count - len(a.Delays()) }},
		// The first packet has none to overtake.
		{"reordering", impair.Impairment{Delay: 10e6, Reorder: p}, small, count - 1, p, flow.Arrivals.Overtaking},
	} {
		if err := r.twice(func() ([]line, error) { return r.try(t) }); err != nil {
			return fmt.Errorf("%s: %w", t.what, err)
		}
	}
	return nil
}

func (r *reference) try(t trial) ([]line, error) {
	arrivals, err := r.over(t.does, t.send)
	if err != nil {
		return nil, err
	}
	k := t.chosen(arrivals)
	low, high := binomialBounds(t.n, t.p)
	share := func(k int) float64 { return float64(k) / float64(t.n) }
	seen := share(k)
	return []line{{
		what:  fmt.Sprintf("%s at %.4g %%, %s, n=%d", t.what, 100*t.p, r.name, t.n),
		seen:  about(seen, math.Sqrt(seen*(1-seen)/float64(t.n))).show(0.01, "%"),
		bound: fmt.Sprintf("%.4g to %.4g %% (99 %% of the binomial)", 100*share(low), 100*share(high)),
		pass:  low <= k && k <= high,
	}}, nil
}

// bursts looks at how losses of a Gilbert-Elliott channel lie together.
func (r *reference) bursts() ([]line, error) {
	const count = 10_000
	b := impair.Burst{Enter: 0.01, Leave: 0.2}
	arrivals, err := r.over(impair.Impairment{Burst: b}, flow.Flow{Count: count, Gap: 100 * time.Microsecond})
	if err != nil {
		return nil, fmt.Errorf("bursts: %w", err)
	}
	gaps := arrivals.Gaps(count)
	lost := float64(count - len(arrivals))
	var lines []line
	for _, c := range []struct {
		what, unit  string
		scale, seen float64
		want        spread
	}{
		{"loss", "%", 0.01, lost / count, burstLoss(b, count)},
		{"mean length", "packets", 1, lost / float64(max(len(gaps), 1)), burstLength(b, count)},
	} {
		low, high := c.want.bounds()
		lines = append(lines, line{
			what:  fmt.Sprintf("losses in bursts of %s, %s, %s, n=%d", b, c.what, r.name, count),
			seen:  about(c.seen, c.want.error).show(c.scale, c.unit),
			bound: fmt.Sprintf("%.4g to %.4g %s (99 %% of the model)", low/c.scale, high/c.scale, c.unit),
			pass:  low <= c.seen && c.seen <= high,
		})
	}
	return lines, nil
}

// jitters holds the delays of packets against each distribution.
func (r *reference) jitters() error {
	table, err := measured()
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name  string
		shape impair.Impairment
	}{
		{"uniform", impair.Impairment{Distribution: impair.Uniform}},
		{"normal", impair.Impairment{Distribution: impair.Normal}},
		{"pareto", impair.Impairment{Distribution: impair.Pareto}},
		{"recorded", impair.Impairment{Distribution: "measured.csv", Table: table}},
	} {
		if err := r.twice(func() ([]line, error) { return r.jitter(c.name, c.shape) }); err != nil {
			return fmt.Errorf("%s jitter: %w", c.name, err)
		}
	}
	return nil
}

// jitter is what packets took, less what a constant delay takes beyond itself. No
// packet waits for another: order is not kept, and they are sent further apart than
// the jitter.
func (r *reference) jitter(name string, does impair.Impairment) ([]line, error) {
	const count, gap, level = 10_000, 11 * time.Millisecond, 0.01
	does.Delay, does.Jitter, does.Unordered = 45e6, 10e6, true
	arrivals, err := r.over(does, flow.Flow{Count: count, Gap: gap, Urgent: true})
	if err != nil {
		return nil, err
	}
	if len(arrivals) != count {
		return nil, fmt.Errorf("%d of %d packets arrived", len(arrivals), count)
	}
	constant := r.exact[r.name]
	plain := constant[len(constant)-1].Median()
	jitters := beyond(arrivals, does.Delay.Std())
	for i := range jitters {
		jitters[i] = (jitters[i] - plain) / float64(does.Jitter)
	}
	distance := kolmogorov(jitters, does)
	p := kolmogorovChance(distance, count)
	return []line{{
		what:  fmt.Sprintf("%s jitter of %s about %s, %s, n=%d", name, does.Jitter, does.Delay, r.name, count),
		seen:  fmt.Sprintf("Kolmogorov-Smirnov distance %.4f, p %.2g", distance, p),
		bound: fmt.Sprintf("p >= %g", level),
		floor: fmt.Sprintf("a constant delay takes %.1f us beyond itself", plain/1e3),
		pass:  p >= level,
	}}, nil
}
