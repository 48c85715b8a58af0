package netem

import (
	"testing"

	"skerry.dev/skerry/lab/impair"
)

// Statistics by step, in the order of steps; netem and tbf count the drops
// below them, too.
func TestCounters(t *testing.T) {
	const frame = 1000 + impair.EthernetHeader
	passed := func(packets, drops, held uint64) statistics {
		return statistics{packets: packets, bytes: packets * frame, drops: drops, held: held}
	}
	for _, c := range []struct {
		name  string
		i     impair.Impairment
		steps []statistics
		want  impair.Counters
	}{
		{"delay, some under way", impair.Impairment{Delay: 1},
			[]statistics{passed(90, 0, 10)},
			impair.Counters{Packets: 100, Bytes: 90_000}},
		{"loss", impair.Impairment{Loss: 0.1},
			[]statistics{passed(90, 10, 0), passed(90, 10, 0)},
			impair.Counters{Packets: 100, Bytes: 90_000, Lost: 10}},
		{"overflow", impair.Impairment{Rate: 1e6},
			[]statistics{passed(80, 20, 0), passed(80, 20, 0)},
			impair.Counters{Packets: 100, Bytes: 80_000, Overflowed: 20}},
		{"loss and overflow", impair.Impairment{Loss: 0.1, Rate: 1e6},
			[]statistics{passed(65, 30, 5), passed(65, 30, 0), passed(65, 20, 5)},
			impair.Counters{Packets: 100, Bytes: 65_000, Lost: 10, Overflowed: 20}},
		{"dropped by the splitter itself", impair.Impairment{Loss: 0.1},
			[]statistics{passed(90, 13, 0), passed(90, 10, 0)},
			impair.Counters{Packets: 100, Bytes: 90_000, Lost: 10, Missed: 3}},
		{"a reading in the middle of a drop", impair.Impairment{Loss: 0.1, Rate: 1e6},
			[]statistics{passed(90, 4, 0), passed(90, 5, 0), passed(90, 6, 0)},
			impair.Counters{Packets: 95, Bytes: 90_000, Overflowed: 6}},
	} {
		all := steps(impair.Direction{Impairment: c.i}, 1)
		found := map[uint32]statistics{}
		for i, s := range all {
			found[s.handle] = c.steps[i]
		}
		one := class{Direction: impair.Direction{Name: c.name, Impairment: c.i}, steps: all}
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
