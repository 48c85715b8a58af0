package netem

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/classify"
	"skerry.dev/skerry/lab/impair/recording"
)

func direction(name, out string, i impair.Impairment) impair.Direction {
	return impair.Direction{Name: name, Match: impair.Match{In: "in", Out: out}, Impairment: i}
}

// draw writes trees as lines: handle, parent and kind of every qdisc, and
// netem's part of the impairment.
func draw(trees []tree) string {
	var b strings.Builder
	for _, t := range trees {
		all := t.qdiscs(impair.DefaultMTU)
		fmt.Fprintf(&b, "%s: %s %x:\n", t.out, all[0].kind, all[0].handle>>16)
		all = all[1:]
		for _, c := range t.classes {
			fmt.Fprintf(&b, "  %s\n", c.Name)
			for i, s := range c.steps {
				q := all[i]
				fmt.Fprintf(&b, "    %x:%x %s %x:", q.parent>>16, q.parent&0xffff, q.kind, q.handle>>16)
				if !s.splitter {
					fmt.Fprintf(&b, " %s, held %d", s.Impairment, held(s.Impairment, 1514))
				}
				b.WriteByte('\n')
			}
			all = all[len(c.steps):]
		}
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	whole := direction("whole", "c2", impair.Impairment{Delay: 5e6, Loss: 0.01, Rate: 100e6})
	whole.Unit = impair.UnitSuperpacket
	stages := direction("stages", "c2", impair.Impairment{Delay: 5e6, Loss: 0.01})
	stages.Then = []impair.Impairment{{}, {Delay: 2e6, Loss: 0.02, Rate: 10e6}}
	trees, err := plan([]impair.Direction{
		direction("delay", "c2", impair.Impairment{Delay: 5e6}),
		direction("nothing", "c2", impair.Impairment{Queue: 1000}),
		direction("loss", "c2", impair.Impairment{Loss: 0.01}),
		direction("elsewhere", "c1", impair.Impairment{Delay: 5e6}),
		direction("rate", "c2", impair.Impairment{Delay: 5e6, Rate: 100e6}),
		direction("loss and rate", "c2", impair.Impairment{Delay: 5e6, Loss: 0.01, Rate: 100e6}),
		direction("all", "c2", impair.Impairment{Delay: 5e6, Jitter: 1e6, Unordered: true, Loss: 0.01, Rate: 100e6, Queue: 15140}),
		whole,
		direction("bursts and corruption", "c2", impair.Impairment{Delay: 5e6, Burst: impair.Burst{Enter: 0.01, Leave: 0.25}, Corrupt: 0.02, Rate: 100e6}),
		direction("reordering behind a rate", "c2", impair.Impairment{Delay: 5e6, Corrupt: 0.02, Reorder: 0.03, Rate: 100e6, Queue: 142 * 1514}),
		stages,
		direction("duplicates", "c3", impair.Impairment{Delay: 5e6, Duplicate: 0.01, Corrupt: 0.02, Reorder: 0.03}),
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `c2: prio 1000:
  delay
    1000:2 netem 2020: 5ms, held 262144
  loss
    1000:3 tbf 2040:
    2040:1 netem 2041: 1%, held 262144
  rate
    1000:4 tbf 2060:
    2060:1 netem 2061: 5ms 100mbit, held 142
  loss and rate
    1000:5 tbf 2080:
    2080:1 netem 2081: 1%, held 262144
    2081:1 netem 2082: 5ms 100mbit, held 142
  all
    1000:6 tbf 20a0:
    20a0:1 netem 20a1: 1%, held 262144
    20a1:1 netem 20a2: 100mbit, held 10
    20a2:1 netem 20a3: 5ms ±1ms, held 262144
  whole
    1000:7 netem 20c0: 1%, held 262144
    20c0:1 netem 20c1: 5ms 100mbit, held 142
  bursts and corruption
    1000:8 tbf 20e0:
    20e0:1 netem 20e1: burst 1%/25%, held 262144
    20e1:1 netem 20e2: 5ms corrupt 2% 100mbit, held 142
  reordering behind a rate
    1000:9 tbf 2100:
    2100:1 netem 2101: corrupt 2% 100mbit, held 142
    2101:1 netem 2102: 5ms reorder 3%, held 262144
  stages
    1000:a tbf 2120:
    2120:1 netem 2121: 5ms 1%, held 262144
    2121:1 netem 2122: 2%, held 262144
    2122:1 netem 2123: 2ms 10mbit, held 102
c1: prio 1001:
  elsewhere
    1001:2 netem 2020: 5ms, held 262144
c3: prio 1002:
  duplicates
    1002:2 tbf 2020:
    2020:1 netem 2021: 5ms duplicate 1% corrupt 2% reorder 3%, held 262144
`
	if got := draw(trees); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPlanNamesItsBounds(t *testing.T) {
	var crowd, spread []impair.Direction
	for i := range directionsMax + 1 {
		crowd = append(crowd, direction(fmt.Sprint(i), "c2", impair.Impairment{Delay: 1}))
	}
	for i := range interfacesMax + 1 {
		spread = append(spread, direction(fmt.Sprint(i), fmt.Sprint("c", i), impair.Impairment{Delay: 1}))
	}
	for _, c := range []struct {
		directions []impair.Direction
		want       string
	}{
		{crowd, "link 15: more than 15 impaired directions end at interface c2, which is what netem's prio can hold; choose the link back end userspace"},
		{spread, "link 4096: impaired links end at more than 4096 interfaces; choose the link back end userspace"},
	} {
		if _, err := plan(c.directions); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if _, err := plan(c.directions[:len(c.directions)-1]); err != nil {
			t.Errorf("one fewer: %v", err)
		}
	}
}

// What the kernel would do in another way than was asked is refused, and the
// same beside it is not.
func TestPlanRefusesWhatNetemCannotDo(t *testing.T) {
	twice := impair.Impairment{Delay: 1e6, Duplicate: 0.01}
	chain := func(first impair.Impairment, then ...impair.Impairment) []impair.Direction {
		d := direction("a", "c2", first)
		d.Then = then
		return []impair.Direction{d}
	}
	far, err := impair.ScaledTable([]float64{0, 12 * math.MaxInt16 / 32768.})
	if err != nil {
		t.Fatal(err)
	}
	var long []impair.Impairment
	for range stepsMax {
		long = append(long, impair.Impairment{Delay: 1})
	}
	const elsewhere = "; choose the link back end userspace"
	for _, c := range []struct {
		name       string
		directions []impair.Direction
		want       string // nothing where it is not refused
	}{
		{"wide jitter", chain(impair.Impairment{Delay: 3e9, Jitter: 3e9}),
			"link a: netem cannot spread a jitter of 3s: 2.147s at most"},
		{"wide jitter from a table", chain(impair.Impairment{}, impair.Impairment{Delay: 3e9, Jitter: 3e9, Distribution: impair.Normal}),
			"link a: netem cannot spread a jitter of 3s: 2.147s at most"},
		{"a wide jitter that was measured", chain(impair.Impairment{Delay: 1e9, Jitter: 1e9, Distribution: "a.csv", Table: far}),
			"link a: netem cannot spread a jitter of 3s: 2.147s at most"},
		{"jitter at the bound", chain(impair.Impairment{Delay: 3e9, Jitter: jitterMax}), ""},
		{"many stages", chain(impair.Impairment{Delay: 1}, long...),
			"link a: its stages take 33 qdiscs, more than 32"},
		{"as many as there can be", chain(impair.Impairment{Delay: 1}, long[1:]...), ""},
		{"reordering before a stage", chain(impair.Impairment{Delay: 1, Reorder: 0.1}, impair.Impairment{Delay: 1}),
			"link a: a packet that netem reorders skips the stages after that one"},
		{"reordering in the last stage", chain(impair.Impairment{Delay: 1}, impair.Impairment{Delay: 1, Reorder: 0.1}), ""},
		{"copies that meet a loss", chain(impair.Impairment{Loss: 0.1, Duplicate: 0.1}),
			"link a: netem would decide on the loss of a duplicated packet's copy again"},
		{"copies that meet a burst", chain(impair.Impairment{Burst: impair.Burst{Enter: 0.1, Leave: 0.1}, Duplicate: 0.1}),
			"link a: netem would decide on the loss of a duplicated packet's copy again"},
		{"copies and two stages", chain(twice, impair.Impairment{Delay: 1}),
			"link a: netem duplicates packets only where it stands alone, and interface c2 needs 2 of them"},
		{"copies and two netems of a stage", chain(impair.Impairment{Delay: 1, Jitter: 1, Unordered: true, Rate: 1e6, Duplicate: 0.1}),
			"link a: netem duplicates packets only where it stands alone, and interface c2 needs 2 of them"},
		{"copies beside another direction", append(chain(impair.Impairment{Delay: 1}), direction("b", "c2", twice)),
			"link b: netem duplicates packets only where it stands alone, and interface c2 needs 2 of them"},
		{"copies beside one at another interface", append(chain(impair.Impairment{Delay: 1}), direction("b", "c1", twice)), ""},
		{"copies behind a stage that does nothing", chain(impair.Impairment{}, twice), ""},
		{"copies with all else", chain(impair.Impairment{
			Delay: 1, Jitter: 1, Distribution: impair.Pareto, Duplicate: 0.1, Corrupt: 0.1, Rate: 1e6,
		}), ""},
	} {
		want := c.want
		if want != "" {
			want += elsewhere
		}
		got := ""
		if _, err := plan(c.directions); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
}

// A distribution is read where it was not yet, in any stage; one that cannot be
// read leaves no link without its jitter.
func TestFillReadsRecordings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wan.csv")
	if err := os.WriteFile(file, []byte("2\n4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := direction("a", "c2", impair.Impairment{Distribution: impair.Distribution(file)})
	d.Then = []impair.Impairment{{Delay: 5e6, Jitter: 2e6, Distribution: impair.Distribution(file)}}
	kept := recording.Kept{}.Next()
	read, err := fill([]impair.Direction{d}, kept)
	if err != nil {
		t.Fatal(err)
	}
	trees, err := plan(read)
	if err != nil {
		t.Fatal(err)
	}
	const want = `c2: prio 1000:
  a
    1000:2 tbf 2020:
    2020:1 netem 2021: 3ms ±1ms, held 262144
    2021:1 netem 2022: 5ms ±2ms, held 262144
`
	if got := draw(trees); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if d.Table != nil || d.Then[0].Table != nil {
		t.Error("the order itself was altered")
	}
	// What goes on is what it was, though the file has gone.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if again, err := fill([]impair.Direction{d}, kept.Next()); err != nil || again[0].String() != read[0].String() || again[0].Table != read[0].Table {
		t.Errorf("read again it is %s, %v, want %s", again, err, read)
	}
	d.Then[0].Distribution += ".gone"
	if _, err := fill([]impair.Direction{d}, kept.Next()); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "link a: read distribution: ") {
		t.Errorf("got %v", err)
	}
}

// Packets between two nodes that have no link take no class, though their clusters
// have one.
func TestRulesExempt(t *testing.T) {
	nodes := impair.Direction{Name: "n", Match: impair.Match{
		In: "in", Out: "c2", Source: netip.MustParseAddr("10.1.0.1"), Destination: netip.MustParseAddr("10.2.0.1"),
	}}
	all := []impair.Direction{direction("c", "c2", impair.Impairment{Delay: 5e6}), nodes, direction("nothing", "c3", impair.Impairment{})}
	trees, err := plan(all)
	if err != nil {
		t.Fatal(err)
	}
	want := []classify.Rule{{Match: all[0].Match, Class: 0x10000002}, {Match: nodes.Match, Exempt: true}}
	if got := rules(trees, all); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
