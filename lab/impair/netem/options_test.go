package netem

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/recording"
)

// Options are written in the machine's byte order; the golden ones here are
// those of little-endian machines.
func littleEndianOnly(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("a big-endian machine; the golden bytes are little-endian")
	}
}

func TestNetemOptions(t *testing.T) {
	littleEndianOnly(t)
	const (
		none = "00000000"
		// What is told of no corruption and of no rate, too.
		uncorrupted = " 0c000400 " + none + none
		unlimited   = " 14000600 " + none + none + none + none + " 0c000800 " + none + none
		seed        = " 0c000e00 efbe000000000000"
		clean       = uncorrupted + unlimited + seed
	)
	even := " 04200200 " + hex.EncodeToString(table(impair.Uniform))
	for _, c := range []struct {
		name string
		i    impair.Impairment
		want string
	}{
		{"delay beyond 32 bits of ns", impair.Impairment{Delay: 5e9},
			none + " 00000400 " + none + none + none + none + " 0c000a00 00f2052a01000000" + clean},
		{"loss", impair.Impairment{Loss: 0.5},
			none + " 00000400 ffffff7f " + none + none + none + " 0c000a00 0000000000000000" + clean},
		{"jitter in order has a rate of 2^62", impair.Impairment{Delay: 2e6, Jitter: 1e6},
			none + " 00000400 " + none + none + none + none + " 0c000a00 80841e0000000000 0c000b00 40420f0000000000" + even +
				uncorrupted + " 14000600 ffffffff 000000000000000000000000 0c000800 0000000000000040" + seed},
		{"jitter that reorders has none", impair.Impairment{Delay: 2e6, Jitter: 1e6, Unordered: true},
			none + " 00000400 " + none + none + none + none + " 0c000a00 80841e0000000000 0c000b00 40420f0000000000" + even + clean},
		{"rate in bytes, queue in frames", impair.Impairment{Rate: 80e9, Queue: 15141},
			none + " 0b000000 " + none + none + none + none + " 0c000a00 0000000000000000" + uncorrupted +
				" 14000600 ffffffff 000000000000000000000000 0c000800 00e40b5402000000" + seed},
		{"duplication", impair.Impairment{Duplicate: 0.25},
			none + " 00000400 " + none + none + " ffffff3f " + none + " 0c000a00 0000000000000000" + clean},
		{"reordering: a gap of 1 and the chance", impair.Impairment{Delay: 2e6, Reorder: 0.25},
			none + " 00000400 " + none + " 01000000 " + none + none + " 0c000a00 80841e0000000000 0c000300 ffffff3f 00000000" + clean},
		{"corruption", impair.Impairment{Corrupt: 0.5},
			none + " 00000400 " + none + none + none + none + " 0c000a00 0000000000000000 0c000400 ffffff7f 00000000" + unlimited + seed},
		{"bursts: p, r, h, 1-k", impair.Impairment{Loss: 0.0625, Burst: impair.Burst{Enter: 0.125, Leave: 0.25, Loss: 0.5}},
			none + " 00000400 ffffff0f " + none + none + none + " 0c000a00 0000000000000000" + uncorrupted +
				" 18000500 14000200 00000020 00000040 ffffff7f 00000010" + unlimited + seed},
		{"bursts that lose all and end at once", impair.Impairment{Burst: impair.Burst{Enter: 1, Leave: 1}},
			none + " 00000400 " + none + none + none + none + " 0c000a00 0000000000000000" + uncorrupted +
				" 18000500 14000200 ffffffff ffffffff 00000000 00000000" + unlimited + seed},
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
func TestChance(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want uint32
	}{
		{0, 0}, {1e-12, 1}, {0.0002, 858992}, {0.25, 1<<30 - 1}, {1, 1<<32 - 1},
	} {
		if got := chance(c.p); got != c.want {
			t.Errorf("chance(%g) = %d, want %d", c.p, got, c.want)
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
		{"pareto jitter does, too", impair.Impairment{Delay: 10e6, Jitter: 10e6, Distribution: impair.Pareto, Rate: 1e9}, 1652 + 4129},
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
	for pair := range slices.Chunk(table(impair.Normal), 2) {
		fmt.Fprintln(&lines, int16(binary.NativeEndian.Uint16(pair)))
	}
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(lines.String()))); got != want {
		t.Errorf("checksum %s, want %s", got, want)
	}
}

// By its table uniform jitter reaches from one end to the other, evenly.
func TestUniformTable(t *testing.T) {
	const entries = 4096
	made := slices.Collect(slices.Chunk(table(impair.Uniform), 2))
	for i, pair := range made {
		got, want := float64(int16(binary.NativeEndian.Uint16(pair)))/8192, 2*float64(i)/entries-1
		if math.Abs(got-want) > 2./8192 {
			t.Fatalf("value %d of %d is %g, want %g", i, len(made), got, want)
		}
	}
	if len(made) != entries {
		t.Errorf("%d values", len(made))
	}
}

// A table of iproute2 reaches the kernel as it was read, with the jitter asked for.
func TestTableOfIproute2(t *testing.T) {
	var text strings.Builder
	for pair := range slices.Chunk(table(impair.Normal), 2) {
		fmt.Fprintln(&text, int16(binary.NativeEndian.Uint16(pair)))
	}
	read, err := recording.Read("normal.dist", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(recorded(read.Table), table(impair.Normal)) {
		t.Error("the table of the normal distribution is not what was read")
	}
	i := impair.Impairment{Jitter: 1e6, Distribution: "normal.dist", Table: read.Table}
	if got := deviation(i); got != i.Jitter {
		t.Errorf("jitter %s, want %s", got, i.Jitter)
	}
}

// A recording with a longer tail than netem's tables keeps it: values shrink as much
// as the jitter grows. What the kernel makes of both is what was measured.
func TestRecordedTableKeepsItsTail(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	values := make([]float64, 5000)
	for i := range values {
		values[i] = 20 + random.ExpFloat64()
		if i%50 == 0 {
			values[i] += 80 * random.Float64()
		}
	}
	made, mean, spread, err := impair.NewTable(values)
	if err != nil {
		t.Fatal(err)
	}
	const ms = 1e6
	i := impair.Impairment{
		Delay: quantity.Duration(mean * ms), Jitter: quantity.Duration(spread * ms), Distribution: "wan.csv", Table: made,
	}
	sigma := float64(deviation(i))
	if reach := made.Quantile(1); reach < 5 || sigma < float64(i.Jitter)*reach/4.01 {
		t.Errorf("a reach of %.1f jitters of %s makes netem's %s", reach, i.Jitter, time.Duration(sigma))
	}
	steps := made.Steps()
	for k, pair := range slices.Collect(slices.Chunk(recorded(made), 2)) {
		got := float64(i.Delay) + sigma*float64(int16(binary.NativeEndian.Uint16(pair)))/8192 // tabledist of sch_netem.c
		want := float64(i.Delay) + float64(steps[k])*float64(i.Jitter)
		if math.Abs(got-want) > sigma/8192 {
			t.Fatalf("value %d of the kernel is %.0f ns, want %.0f", k, got, want)
		}
	}
	options := netemOptions(i, 1, 1514)
	if at := bytes.Index(options, recorded(made)); at < 4 || binary.NativeEndian.Uint16(options[at-2:]) != netemDelayDist {
		t.Error("the options lack the table")
	}
	if !bytes.Contains(options, binary.NativeEndian.AppendUint64(nil, uint64(sigma))) {
		t.Error("the options lack the jitter")
	}
}

// The table of the Pareto distribution is its quantiles, cut at the table's reach.
func TestParetoTable(t *testing.T) {
	const entries = 4096
	var values []float64
	for pair := range slices.Chunk(table(impair.Pareto), 2) {
		values = append(values, float64(int16(binary.NativeEndian.Uint16(pair)))/8192)
	}
	if len(values) != entries || !slices.IsSorted(values) {
		t.Errorf("%d quantiles that do not all rise", len(values))
	}
	var sum, squares float64
	cut := 0
	for i, v := range values {
		sum += v
		squares += v * v
		if v == math.MaxInt16/8192.0 {
			cut++
		}
		if off := v - impair.Pareto.Quantile((float64(i)+0.125)/entries); math.Abs(off) > 2.0/8192 {
			t.Errorf("value %d is %g off its quantile", i, off)
		}
	}
	n := float64(entries)
	// One value in 122 lies beyond the reach. Cut there, as integrals of the
	// distribution say, the mean is 0.0234 lower and the square of the deviation 0.544.
	if mean, square := sum/n, squares/n; math.Abs(mean+0.0234) > 0.001 || math.Abs(square-0.544) > 0.002 || cut != entries/122 {
		t.Errorf("mean %.4f, square %.4f, %d values at the end", mean, square, cut)
	}
	if least := values[0]; math.Abs(least+1/math.Sqrt(3)) > 0.001 {
		t.Errorf("the least is %.4f", least)
	}
}
