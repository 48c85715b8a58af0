package netem

import (
	"encoding/binary"
	"testing"

	"github.com/vishvananda/netlink/nl"

	"skerry.dev/skerry/lab/impair"
)

// Statistics by step, in the order of steps; netem and tbf count the drops
// below them, too.
func TestCounters(t *testing.T) {
	const frame = 1000 + impair.EthernetHeader
	passed := func(packets, drops, held uint64) statistics {
		return statistics{packets: packets, bytes: packets * frame, drops: drops, held: held}
	}
	reordered := passed(90, 0, 10)
	reordered.requeues = 7
	lossy := impair.Impairment{Loss: 0.1}
	for _, c := range []struct {
		name  string
		i     impair.Impairment
		then  []impair.Impairment
		steps []statistics
		want  impair.Counters
	}{
		{"delay, some under way", impair.Impairment{Delay: 1}, nil,
			[]statistics{passed(90, 0, 10)},
			impair.Counters{Packets: 100, Bytes: 90_000}},
		{"loss", impair.Impairment{Loss: 0.1}, nil,
			[]statistics{passed(90, 10, 0), passed(90, 10, 0)},
			impair.Counters{Packets: 100, Bytes: 90_000, Lost: 10}},
		{"overflow", impair.Impairment{Rate: 1e6}, nil,
			[]statistics{passed(80, 20, 0), passed(80, 20, 0)},
			impair.Counters{Packets: 100, Bytes: 80_000, Overflowed: 20}},
		{"loss and overflow", impair.Impairment{Loss: 0.1, Rate: 1e6}, nil,
			[]statistics{passed(65, 30, 5), passed(65, 30, 0), passed(65, 20, 5)},
			impair.Counters{Packets: 100, Bytes: 65_000, Lost: 10, Overflowed: 20}},
		{"dropped by the splitter itself", impair.Impairment{Loss: 0.1}, nil,
			[]statistics{passed(90, 13, 0), passed(90, 10, 0)},
			impair.Counters{Packets: 100, Bytes: 90_000, Lost: 10, Missed: 3}},
		{"a reading in the middle of a drop", impair.Impairment{Loss: 0.1, Rate: 1e6}, nil,
			[]statistics{passed(90, 4, 0), passed(90, 5, 0), passed(90, 6, 0)},
			impair.Counters{Packets: 96, Bytes: 90_000, Overflowed: 6}},
		{"bursts", impair.Impairment{Burst: impair.Burst{Enter: 0.1, Leave: 0.1}}, nil,
			[]statistics{passed(90, 10, 0), passed(90, 10, 0)},
			impair.Counters{Packets: 100, Bytes: 90_000, Lost: 10}},
		{"reordering", impair.Impairment{Delay: 1, Reorder: 0.1}, nil,
			[]statistics{passed(90, 0, 10), reordered},
			impair.Counters{Packets: 100, Bytes: 90_000, Reordered: 7}},
		{"stages that lose, overflow and lose", lossy, []impair.Impairment{{Rate: 1e6}, lossy},
			[]statistics{passed(50, 47, 3), passed(97, 47, 3), passed(60, 40, 3), passed(50, 8, 0)},
			impair.Counters{Packets: 100, Bytes: 50_000, Lost: 15, Overflowed: 32}},
	} {
		d := impair.Direction{Name: c.name, Impairment: c.i, Then: c.then}
		all := steps(d, 1)
		found := map[uint32]statistics{}
		for i, s := range all {
			found[s.handle] = c.steps[i]
		}
		one := class{Direction: d, steps: all}
		got, err := one.counters(found)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
		delete(found, all[0].handle)
		if _, err := one.counters(found); err == nil {
			t.Errorf("%s: a qdisc that has gone makes no error", c.name)
		}
	}
}

// A link that is down loses what one with a rate drops by its queue, in the same qdiscs:
// what was counted stays what it was called.
func TestRebase(t *testing.T) {
	slow, down := impair.Impairment{Delay: 1, Rate: 1e6}, impair.Impairment{Loss: 1}
	place := func(i impair.Impairment) []placed {
		d := impair.Direction{Name: "a>b", Impairment: i}
		return []placed{{tree: tree{classes: []class{{Direction: d, steps: steps(d, 1)}}}}}
	}
	if a, b := place(slow)[0].shape(), place(down)[0].shape(); a != b {
		t.Fatalf("the shapes are %q and %q: nothing is changed in place", a, b)
	}
	drops := func(n uint64) []map[uint32]statistics {
		found := map[uint32]statistics{}
		for _, s := range place(slow)[0].classes[0].steps {
			found[s.handle] = statistics{packets: 90, bytes: 90 * impair.EthernetHeader, drops: n}
		}
		return []map[uint32]statistics{found}
	}
	var past map[string]impair.Counters
	for _, phase := range []struct {
		does             impair.Impairment
		until            uint64
		lost, overflowed uint64
	}{{slow, 5, 0, 5}, {down, 12, 7, 5}, {slow, 15, 7, 8}} {
		got, err := countAll(place(phase.does), drops(phase.until), past)
		want := impair.Counters{Packets: 90 + phase.until, Lost: phase.lost, Overflowed: phase.overflowed}
		if err != nil || got["a>b"] != want {
			t.Errorf("%v: %+v, %v, want %+v", phase.does, got, err, want)
		}
		next := down
		if phase.does == down {
			next = slow
		}
		if past, err = rebase(got, place(next), drops(phase.until)); err != nil {
			t.Fatal(err)
		}
	}
}

// What a kernel of Linux 6.1 says of a netem: statistics of the second kind with
// 3 requeues, then those of the first, and a kind of qdisc before both.
func TestToldPrefersTheStatisticsWithRequeues(t *testing.T) {
	basic := appendAttr(nil, nl.TCA_STATS_BASIC, append(binary.NativeEndian.AppendUint64(nil, 1<<40), appendUint32s(nil, 90, 0)...))
	queue := appendAttr(nil, nl.TCA_STATS_QUEUE, appendUint32s(nil, 10, 1000, 7, 3, 0)) // held, backlog, drops, requeues, overlimits
	message := appendAttr(nil, nl.TCA_KIND, nl.ZeroTerminated("netem"))
	message = appendAttr(message, nl.TCA_STATS2, append(basic, queue...))
	message = appendAttr(message, nl.TCA_STATS, make([]byte, 36))
	attrs, err := nl.ParseRouteAttr(message)
	if err != nil {
		t.Fatal(err)
	}
	want := statistics{packets: 90, bytes: 1 << 40, drops: 7, held: 10, requeues: 3}
	if got, err := told(attrs); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
