package netem

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/impair"
)

// Options are written in the machine's byte order; the golden ones here are
// those of little-endian machines.
func littleEndianOnly(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("a big-endian machine; the golden bytes are little-endian")
	}
}

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
					fmt.Fprintf(&b, " delay %s jitter %s loss %s rate %s held %d", s.Delay, s.Jitter, s.Loss, s.Rate, held(s.Impairment, 1514))
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
	trees, err := plan([]impair.Direction{
		direction("delay", "c2", impair.Impairment{Delay: 5e6}),
		direction("nothing", "c2", impair.Impairment{Queue: 1000}),
		direction("loss", "c2", impair.Impairment{Loss: 0.01}),
		direction("elsewhere", "c1", impair.Impairment{Delay: 5e6}),
		direction("rate", "c2", impair.Impairment{Delay: 5e6, Rate: 100e6}),
		direction("loss and rate", "c2", impair.Impairment{Delay: 5e6, Loss: 0.01, Rate: 100e6}),
		direction("all", "c2", impair.Impairment{Delay: 5e6, Jitter: 1e6, Reorder: true, Loss: 0.01, Rate: 100e6, Queue: 15140}),
		whole,
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `c2: prio 1000:
  delay
    1000:2 netem 2004: delay 5ms jitter 0s loss 0% rate 0bit held 262144
  loss
    1000:3 tbf 2008:
    2008:1 netem 2009: delay 0s jitter 0s loss 1% rate 0bit held 262144
  rate
    1000:4 tbf 200c:
    200c:1 netem 200d: delay 5ms jitter 0s loss 0% rate 100mbit held 142
  loss and rate
    1000:5 tbf 2010:
    2010:1 netem 2011: delay 0s jitter 0s loss 1% rate 0bit held 262144
    2011:1 netem 2012: delay 5ms jitter 0s loss 0% rate 100mbit held 142
  all
    1000:6 tbf 2014:
    2014:1 netem 2015: delay 0s jitter 0s loss 1% rate 0bit held 262144
    2015:1 netem 2016: delay 0s jitter 0s loss 0% rate 100mbit held 10
    2016:1 netem 2017: delay 5ms jitter 1ms loss 0% rate 0bit held 262144
  whole
    1000:7 netem 2018: delay 0s jitter 0s loss 1% rate 0bit held 262144
    2018:1 netem 2019: delay 5ms jitter 0s loss 0% rate 100mbit held 142
c1: prio 1001:
  elsewhere
    1001:2 netem 2004: delay 5ms jitter 0s loss 0% rate 0bit held 262144
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
	wide := direction("wide", "c2", impair.Impairment{Delay: 3e9, Jitter: 3e9})
	for _, c := range []struct {
		directions []impair.Direction
		want       string
	}{
		{crowd, "link 15: more than 15 impaired directions end at interface c2, which is what netem's prio can hold; choose the link back end userspace"},
		{spread, "link 4096: impaired links end at more than 4096 interfaces; choose the link back end userspace"},
		{[]impair.Direction{wide}, "link wide: netem cannot spread a uniform jitter of 3s: 2.147s at most; choose the link back end userspace"},
	} {
		if _, err := plan(c.directions); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if _, err := plan(c.directions[:len(c.directions)-1]); err != nil {
			t.Errorf("one fewer: %v", err)
		}
	}
	normal := wide
	normal.Distribution = impair.Normal
	if _, err := plan([]impair.Direction{normal}); err != nil {
		t.Error("normal jitter has no such bound:", err)
	}
}

func TestNetemOptions(t *testing.T) {
	littleEndianOnly(t)
	const (
		seed = " 0c000e00 efbe000000000000"
		none = "00000000"
	)
	for _, c := range []struct {
		name string
		i    impair.Impairment
		want string
	}{
		{"delay beyond 32 bits of ns", impair.Impairment{Delay: 5e9},
			none + " 00000400 " + none + none + none + none + " 0c000a00 00f2052a01000000" + seed},
		{"loss", impair.Impairment{Loss: 0.5},
			none + " 00000400 ffffff7f " + none + none + none + " 0c000a00 0000000000000000" + seed},
		{"jitter in order has a rate of 2^62", impair.Impairment{Delay: 2e6, Jitter: 1e6},
			none + " 00000400 " + none + none + none + none + " 0c000a00 80841e0000000000 0c000b00 40420f0000000000" +
				" 14000600 ffffffff 000000000000000000000000 0c000800 0000000000000040" + seed},
		{"jitter that reorders has none", impair.Impairment{Delay: 2e6, Jitter: 1e6, Reorder: true},
			none + " 00000400 " + none + none + none + none + " 0c000a00 80841e0000000000 0c000b00 40420f0000000000" + seed},
		{"rate in bytes, queue in frames", impair.Impairment{Rate: 80e9, Queue: 15141},
			none + " 0b000000 " + none + none + none + none + " 0c000a00 0000000000000000" +
				" 14000600 ffffffff 000000000000000000000000 0c000800 00e40b5402000000" + seed},
	} {
		got := hex.EncodeToString(netemOptions(c.i, 0xbeef, 1514))
		if want := strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
	}
}

func TestSplitterOptions(t *testing.T) {
	littleEndianOnly(t)
	want := strings.ReplaceAll("28000100 00010000 00000000 ffffffff"+ // rate: Ethernet
		" 00000000 00000000 00000000 ffffff7f 00000000 00000000"+ // peak rate, limit, buffer, mtu
		" 0c000400 0000000000010000 08000600 ea050000", " ", "") // 2^40 bytes a second, burst 1514
	if got := hex.EncodeToString(splitterOptions(1514)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// netem drops where a random number of 32 bits is at most the threshold.
func TestProbability(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want uint32
	}{
		{0, 0}, {1e-12, 1}, {0.0002, 858992}, {0.25, 1<<30 - 1}, {1, 1<<32 - 1},
	} {
		if got := probability(c.p); got != c.want {
			t.Errorf("probability(%g) = %d, want %d", c.p, got, c.want)
		}
	}
}

func TestHeldCountsTheQueueAndWhatIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		name string
		i    impair.Impairment
		want uint32
	}{
		{"no rate", impair.Impairment{Delay: 1e9}, heldMax},
		{"1 Gbit/s at 10 ms: a round trip's product and one way", impair.Impairment{Delay: 10e6, Rate: 1e9}, 1652 + 826},
		{"jitter", impair.Impairment{Delay: 10e6, Jitter: 10e6, Rate: 1e9}, 1652 + 1652},
		{"normal jitter reaches 4 deviations", impair.Impairment{Delay: 10e6, Jitter: 10e6, Distribution: impair.Normal, Rate: 1e9}, 1652 + 4129},
		{"bounded", impair.Impairment{Delay: 10e9, Rate: 1e12}, heldMax},
	} {
		if got := held(c.i, 1514); got != c.want {
			t.Errorf("%s: held %d, want %d", c.name, got, c.want)
		}
	}
}

// The checksum is that of iproute2's normal.dist, its comment left out, with a
// value to a line.
func TestNormalTableIsThatOfIproute2(t *testing.T) {
	const want = "4f71ba4302d5279893e80337f30e6035e905a335e9be0d2883cb6c39447b2681"
	var lines strings.Builder
	for pair := range slices.Chunk(normalTable(), 2) {
		fmt.Fprintln(&lines, int16(binary.NativeEndian.Uint16(pair)))
	}
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(lines.String()))); got != want {
		t.Errorf("checksum %s, want %s", got, want)
	}
}
