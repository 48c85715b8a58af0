package guest_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/internal/flow"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/impair/netem"
)

// lab is a network whose links one emulator holds.
type lab struct {
	flow.Network
	links *emulator.Client
}

// cases say what a link does, whatever holds it.
var cases = []struct {
	name string
	run  func(*testing.T, lab)
}{
	{"delay both ways of a routed link", routedDelay},
	{"delay between two ports of a bridge", bridgedDelay},
	{"nodes before clusters", nodesBeforeClusters},
	{"loss", loss},
	{"jitter keeps order", jitterKeepsOrder},
	{"jitter reorders where asked", jitterReorders},
	{"normal jitter", normalJitter},
	{"rate", rate},
	{"queue", queue},
	{"loss and overflow told apart", lossAndOverflow},
	{"reordering behind a rate", reorderBehindRate},
	{"super-packets are split", splitSuperpackets},
	{"super-packets stay whole where asked", wholeSuperpackets},
	{"losses in bursts", bursts},
	{"duplication", duplication},
	{"corruption", corruption},
	{"reordering", reordering},
	{"pareto jitter", paretoJitter},
	{"recorded jitter", recordedJitter},
	{"nodes without what their clusters have", nodesExempt},
	{"stages", stages},
	{"a change leaves nothing of before", changed},
	{"an outage counts as lost, then and later", outage},
}

func testLinks(t *testing.T) {
	n, err := flow.Make()
	must(t, err)
	if err := netem.Probe(); err != nil {
		t.Error("probe:", err)
	}
	t.Run("successor of a dead emulator", func(t *testing.T) { successor(t, n) })
	exact := map[string]exactness{}
	for _, backend := range []string{emulator.Netem, emulator.Userspace} {
		t.Run(backend, func(t *testing.T) {
			l, stop := startEmulator(t, n, backend)
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) { c.run(t, l) })
			}
			exact[backend] = measureExactness(t, l)
			if backend == emulator.Netem {
				t.Run("a refused order changes nothing", func(t *testing.T) { refused(t, l) })
			}
			l.set(t, routed(n, impair.Impairment{Delay: ms(5)})...)
			stop()
			if left := qdiscs(t); len(left) > 0 {
				t.Errorf("after its end the emulator left qdiscs: %s", strings.Join(left, ", "))
			}
		})
	}
	if !t.Failed() {
		wantAsExact(t, exact[emulator.Userspace], exact[emulator.Netem])
	}
}

// startEmulator also checks that an emulator that may choose takes netem here.
func startEmulator(t *testing.T, n flow.Network, backend string) (l lab, stop func()) {
	t.Helper()
	asked := backend
	if backend == emulator.Netem {
		asked = emulator.Auto
	}
	socket := filepath.Join(t.TempDir(), "links")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- emulator.Serve(ctx, socket, asked) }()
	l = lab{Network: n, links: emulator.Dial(socket)}
	status, err := l.links.Status(t.Context())
	for ; err != nil; status, err = l.links.Status(t.Context()) { // it does not listen yet
		select {
		case err := <-ended:
			t.Fatal("start emulator:", err)
		case <-time.After(time.Millisecond):
		}
	}
	if status.Backend != backend {
		t.Fatalf("back end is %s, want %s", status.Backend, backend)
	}
	return l, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error("end emulator:", err)
		}
	}
}

func (l lab) set(t *testing.T, directions ...impair.Direction) {
	t.Helper()
	must(t, l.links.Set(t.Context(), directions))
}

// send runs a flow, from c1 to c2 where it names no nodes.
func (l lab) send(t *testing.T, f flow.Flow) flow.Arrivals {
	t.Helper()
	if f.From.Port == "" {
		f.From, f.To = l.C1N1, l.C2N1
	}
	arrivals, err := f.Run()
	must(t, err)
	return arrivals
}

func (l lab) counters(t *testing.T, name string) impair.Counters {
	t.Helper()
	status, err := l.links.Status(t.Context())
	must(t, err)
	c, ok := status.Counters[name]
	if !ok {
		t.Fatalf("no counters of %s", name)
	}
	return c
}

const there, back = "c1>c2", "c2>c1"

// routed are both directions between the clusters.
func routed(n flow.Network, i impair.Impairment) []impair.Direction {
	return []impair.Direction{
		{Name: there, Match: impair.Match{In: flow.Bridge1, Out: flow.Bridge2}, Seed: 1, Impairment: i},
		{Name: back, Match: impair.Match{In: flow.Bridge2, Out: flow.Bridge1}, Seed: 2, Impairment: i},
	}
}

func ms(n float64) quantity.Duration { return quantity.Duration(n * 1e6) }

// slack is what a packet may take beyond its delay, in the guest's own time.
const slack = 150 * time.Microsecond

func (l lab) wantDelay(t *testing.T, from, to flow.Node, want time.Duration) {
	t.Helper()
	got := l.send(t, flow.Flow{From: from, To: to, Count: 20, Gap: time.Millisecond}).Quantile(0.5)
	if got < want || got > want+slack {
		t.Errorf("delay %s to %s is %s, want %s to %s", from.Port, to.Port, got, want, want+slack)
	}
}

func routedDelay(t *testing.T, l lab) {
	l.set(t, routed(l.Network, impair.Impairment{Delay: ms(5)})...)
	l.wantDelay(t, l.C1N1, l.C2N1, 5*time.Millisecond)
	l.wantDelay(t, l.C2N1, l.C1N1, 5*time.Millisecond)
	l.wantDelay(t, l.C1N1, l.C1N2, 0)
	if c := l.counters(t, there); c.Packets != 20 || c.Bytes != 20*(16+flow.Headers-14) {
		t.Errorf("counters %+v, want 20 packets of 44 bytes", c)
	}
	// A direction that does nothing costs nothing, and Set replaces everything.
	l.set(t, routed(l.Network, impair.Impairment{})...)
	l.wantDelay(t, l.C1N1, l.C2N1, 0)
}

func bridgedDelay(t *testing.T, l lab) {
	one := impair.Match{In: l.C1N1.Port, Out: l.C1N2.Port, Bridged: true}
	l.set(t, impair.Direction{Name: "one", Match: one, Impairment: impair.Impairment{Delay: ms(3)}})
	l.wantDelay(t, l.C1N1, l.C1N2, 3*time.Millisecond)
	l.wantDelay(t, l.C1N2, l.C1N1, 0)
	l.wantDelay(t, l.C2N1, l.C1N2, 0)
}

func nodesBeforeClusters(t *testing.T, l lab) {
	directions := routed(l.Network, impair.Impairment{Delay: ms(2)})
	single := directions[0]
	single.Name, single.Delay = "c1/n2>c2/n1", ms(7)
	single.Match.Source, single.Match.Destination = l.C1N2.Address, l.C2N1.Address
	l.set(t, append(directions, single)...)
	l.wantDelay(t, l.C1N1, l.C2N1, 2*time.Millisecond)
	l.wantDelay(t, l.C1N2, l.C2N1, 7*time.Millisecond)
	l.wantDelay(t, l.C2N1, l.C1N2, 2*time.Millisecond)
}

func loss(t *testing.T, l lab) {
	const count, p = 1000, 0.1
	l.set(t, routed(l.Network, impair.Impairment{Loss: p})...)
	arrived := len(l.send(t, flow.Flow{Count: count, Gap: 50 * time.Microsecond}))
	c := l.counters(t, there)
	if c.Packets != count || c.Lost != uint64(count-arrived) || c.Overflowed+c.Missed != 0 {
		t.Errorf("counters %+v, but %d of %d arrived", c, arrived, count)
	}
	wantBinomial(t, count-arrived, count, p)
}

// wantBinomial wants a count that is not among the millionth of a binomial at either end.
func wantBinomial(t *testing.T, got, n int, p float64) {
	t.Helper()
	tail := [2]float64{} // P(X <= got), P(X >= got)
	for k := range n + 1 {
		choose, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		mass := math.Exp(choose - a - b + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
		if k <= got {
			tail[0] += mass
		}
		if k >= got {
			tail[1] += mass
		}
	}
	if min(tail[0], tail[1]) < 1e-6 {
		t.Errorf("%d of %d, which has a chance of %.2g at %g", got, n, min(tail[0], tail[1]), p)
	}
}

// jittered sends packets much closer together than the jitter is wide.
func jittered(t *testing.T, l lab, i impair.Impairment) flow.Arrivals {
	t.Helper()
	const count = 400
	l.set(t, routed(l.Network, i)...)
	arrivals := l.send(t, flow.Flow{Count: count, Gap: 200 * time.Microsecond})
	if len(arrivals) != count {
		t.Errorf("%d of %d arrived", len(arrivals), count)
	}
	return arrivals
}

func jitterKeepsOrder(t *testing.T, l lab) {
	arrivals := jittered(t, l, impair.Impairment{Delay: ms(5), Jitter: ms(2)})
	if n := arrivals.Overtaken(); n > 0 {
		t.Errorf("%d packets were overtaken", n)
	}
	// The sender may be held up between a stamp and its packet, rarely.
	least, most := arrivals.Quantile(0), arrivals.Quantile(0.99)
	if least < 3*time.Millisecond || most > 7*time.Millisecond+slack || most-least < time.Millisecond {
		t.Errorf("delays of %s to %s, want some spread within 5ms ± 2ms", least, most)
	}
}

func jitterReorders(t *testing.T, l lab) {
	arrivals := jittered(t, l, impair.Impairment{Delay: ms(5), Jitter: ms(2), Unordered: true})
	if n := arrivals.Overtaken(); n < len(arrivals)/4 {
		t.Errorf("only %d of %d packets were overtaken", n, len(arrivals))
	}
	// Quantiles of a uniform distribution, ± 5 standard errors.
	for _, q := range []float64{0.1, 0.5, 0.9} {
		want := 3*time.Millisecond + time.Duration(q*4e6)
		tolerance := time.Duration(5*math.Sqrt(q*(1-q)/float64(len(arrivals)))*4e6) + slack
		if got := arrivals.Quantile(q); got < want-tolerance || got > want+tolerance {
			t.Errorf("quantile %g is %s, want %s ± %s", q, got, want, tolerance)
		}
	}
}

func normalJitter(t *testing.T, l lab) {
	i := impair.Impairment{Delay: ms(10), Jitter: ms(2), Distribution: impair.Normal, Unordered: true}
	arrivals := jittered(t, l, i)
	var sum, squares float64
	for _, a := range arrivals {
		x := a.Delay.Seconds() * 1e3
		sum += x
		squares += x * x
	}
	n := float64(len(arrivals))
	mean, deviation := sum/n, math.Sqrt(squares/n-sum/n*sum/n)
	if math.Abs(mean-10) > 0.35+slack.Seconds()*1e3 || math.Abs(deviation-2) > 0.25 {
		t.Errorf("delay %.2f ms ± %.2f ms, want 10 ± 2", mean, deviation)
	}
}

func rate(t *testing.T, l lab) {
	const count, size, bits = 80, 1400, 10e6
	l.set(t, routed(l.Network, impair.Impairment{Delay: ms(5), Rate: bits})...)
	arrivals := l.send(t, flow.Flow{Count: count, Size: size})
	if len(arrivals) != count {
		t.Fatalf("%d of %d arrived", len(arrivals), count)
	}
	span := arrivals[count-1].At.Sub(arrivals[0].At)
	if got := (count - 1) * (size + flow.Headers) * 8 / span.Seconds(); math.Abs(got/bits-1) > 0.1 {
		t.Errorf("rate is %.2f Mbit/s, want 10 ± 10 %%", got/1e6)
	}
	first, want := arrivals[0].Delay, 5*time.Millisecond+time.Duration((size+flow.Headers)*8e9/bits)
	if first < want || first > want+slack {
		t.Errorf("first packet took %s, want %s to %s: propagation and serialisation", first, want, want+slack)
	}
}

func queue(t *testing.T, l lab) {
	const count, frames, frame = 200, 50, 1514
	l.set(t, routed(l.Network, impair.Impairment{Rate: 10e6, Queue: frames * frame})...)
	arrived := len(l.send(t, flow.Flow{Count: count, Size: frame - flow.Headers}))
	// The link serves a few packets while the others are being sent.
	if arrived < frames || arrived > frames+20 {
		t.Errorf("%d packets of a burst arrived, want about %d", arrived, frames)
	}
	if c := l.counters(t, there); c.Overflowed != uint64(count-arrived) || c.Lost+c.Missed != 0 || c.Packets != count {
		t.Errorf("counters %+v, but %d of %d arrived", c, arrived, count)
	}
}

func lossAndOverflow(t *testing.T, l lab) {
	const count, p = 1000, 0.2
	l.set(t, routed(l.Network, impair.Impairment{Loss: p, Rate: 20e6})...)
	arrived := len(l.send(t, flow.Flow{Count: count, Size: 1400}))
	c := l.counters(t, there)
	if c.Packets != count || c.Lost+c.Overflowed != uint64(count-arrived) || c.Missed != 0 {
		t.Errorf("counters %+v, but %d of %d arrived", c, arrived, count)
	}
	if c.Overflowed == 0 {
		t.Error("nothing overflowed")
	}
	wantBinomial(t, int(c.Lost), count, p)
}

func reorderBehindRate(t *testing.T, l lab) {
	const count, size, bits = 80, 1400, 10e6
	l.set(t, routed(l.Network, impair.Impairment{Delay: ms(10), Jitter: ms(8), Unordered: true, Rate: bits, Loss: 0.001})...)
	arrivals := l.send(t, flow.Flow{Count: count, Size: size})
	if n := arrivals.Overtaken(); n < count/4 {
		t.Errorf("only %d of %d packets were overtaken", n, count)
	}
	span := arrivals[len(arrivals)-1].At.Sub(arrivals[0].At)
	want := time.Duration(count * (size + flow.Headers) * 8e9 / bits)
	if span < want-20*time.Millisecond || span > want+20*time.Millisecond {
		t.Errorf("the burst took %s, want %s ± 20ms", span, want)
	}
}

// superpackets sends super-packets of ten segments over a link with loss, and
// tells how many arrived whole, in part or not at all.
func superpackets(t *testing.T, l lab, unit impair.Unit) (whole, part, none int) {
	t.Helper()
	const count, segments, p = 2000, 10, 0.1
	directions := routed(l.Network, impair.Impairment{Loss: p})
	directions[0].Unit = unit
	l.set(t, directions...)
	arrivals := l.send(t, flow.Flow{Count: count, Size: 1000, Segments: segments, Gap: time.Millisecond})
	arrived := map[int]int{}
	for _, a := range arrivals {
		arrived[a.Sequence/segments]++
	}
	for _, n := range arrived {
		if n == segments {
			whole++
		} else {
			part++
		}
	}
	c := l.counters(t, there)
	if unit == impair.UnitPacket && (c.Packets != count || c.Lost != uint64(count-len(arrivals)) || c.Missed != 0) {
		t.Errorf("counters %+v, but %d of %d arrived", c, len(arrivals), count)
	}
	if unit == impair.UnitPacket {
		wantBinomial(t, count-len(arrivals), count, p)
	} else {
		wantBinomial(t, count/segments-whole, count/segments, p)
	}
	return whole, part, count/segments - len(arrived)
}

func splitSuperpackets(t *testing.T, l lab) {
	// A super-packet arrives whole with a chance of 0.9^10, or 35 %.
	whole, part, none := superpackets(t, l, impair.UnitPacket)
	if part < 90 || part > 170 {
		t.Errorf("of 200 super-packets %d arrived whole, %d in part, %d not at all; want 130 in part", whole, part, none)
	}
}

func wholeSuperpackets(t *testing.T, l lab) {
	whole, part, none := superpackets(t, l, impair.UnitSuperpacket)
	if part > 0 || none == 0 {
		t.Errorf("of 200 super-packets %d arrived whole, %d in part, %d not at all; want none in part", whole, part, none)
	}
}

// qdiscs lists the WAN's qdiscs that somebody has set.
func qdiscs(t *testing.T) []string {
	t.Helper()
	all, err := netlink.QdiscList(nil)
	must(t, err)
	var set []string
	for _, q := range all {
		if q.Type() != "noqueue" {
			set = append(set, fmt.Sprintf("%s %x at %d", q.Type(), q.Attrs().Handle, q.Attrs().LinkIndex))
		}
	}
	return set
}

// successor starts a back end where another one died and left its qdiscs.
func successor(t *testing.T, n flow.Network) {
	dead, err := netem.Start()
	must(t, err)
	must(t, dead.Set(routed(n, impair.Impairment{Delay: ms(5), Loss: 1})))
	next, err := netem.Start()
	must(t, err)
	must(t, next.Set(routed(n, impair.Impairment{Delay: ms(2)})))
	lab{Network: n}.wantDelay(t, n.C1N1, n.C2N1, 2*time.Millisecond)
	must(t, next.Close())
	if left := qdiscs(t); len(left) > 0 {
		t.Errorf("left qdiscs: %s", strings.Join(left, ", "))
	}
}

// exactness is how far a one-way delay is off, at p50 and p99, for each of delays.
type exactness [][2]time.Duration

var delays = []quantity.Duration{ms(1.25), ms(5), ms(10)}

func measureExactness(t *testing.T, l lab) exactness {
	t.Helper()
	// No delay is a multiple of the gap, or the guest's one core would send and
	// deliver at the same time.
	const count, gap = 200, 1370 * time.Microsecond
	var off exactness
	for _, delay := range delays {
		l.set(t, routed(l.Network, impair.Impairment{Delay: delay})...)
		arrivals := l.send(t, flow.Flow{Count: count, Gap: gap, Urgent: true})
		if len(arrivals) < count {
			t.Fatalf("at %s %d of %d packets arrived, counters %+v", delay, len(arrivals), count, l.counters(t, there))
		}
		off = append(off, [2]time.Duration{arrivals.Quantile(0.5) - delay.Std(), arrivals.Quantile(0.99) - delay.Std()})
	}
	return off
}

// wantAsExact wants a back end no further than 10 us more than netem from the delay.
func wantAsExact(t *testing.T, got, netem exactness) {
	t.Helper()
	for i, delay := range delays {
		for j, name := range []string{"p50", "p99"} {
			const bound = 10 * time.Microsecond
			if got[i][j].Abs() > netem[i][j].Abs()+bound {
				t.Errorf("%s at %s: %s beyond the delay, netem %s, want no more than %s further", delay, name, got[i][j], netem[i][j], bound)
			}
		}
	}
}
