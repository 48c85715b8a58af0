package recording_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/recording"
	"skerry.dev/skerry/lab/impair/textfile"
)

const ms = quantity.Duration(1e6)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		mean, deviation  quantity.Duration
		// the least and the largest, in jitters from the mean
		least, most float64
	}{
		{"a number to a line", "a.csv", "# ping\n\n4\r\n 8 \n6.0\n6e0\n", 6 * ms, quantity.Duration(math.Round(math.Sqrt2 * 1e6)), -math.Sqrt2, math.Sqrt2},
		{"a column", "a.csv", "sent,delay_ms,note\n1,2,\"a, b\"\n2,4\n", 3 * ms, ms, -1, 1},
		{"a trace's own column", "lte.csv", "ms,mbit,delay_ms\n0,10,1\n100,9,1\n200,8,1\n300,7,5\n", 2 * ms, quantity.Duration(math.Round(math.Sqrt(3) * 1e6)), -1 / math.Sqrt(3), math.Sqrt(3)},
		{"only a header's column", "a.csv", "delay_ms\n0\n60000\n", 30_000 * ms, 30_000 * ms, -1, 1},
		{"a table", "a.dist", "# mean 0\n-8192 0\n8192\n16384\n", 0, 0, -1, 2},
	} {
		r, err := recording.Read(c.file, []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.Mean != c.mean || r.Deviation != c.deviation {
			t.Errorf("%s: %s ± %s, want %s ± %s", c.name, r.Mean, r.Deviation, c.mean, c.deviation)
		}
		if least, most := r.Table.Quantile(0), r.Table.Quantile(1); math.Abs(least-c.least) > 1e-6 || math.Abs(most-c.most) > 1e-6 {
			t.Errorf("%s: from %g to %g, want %g to %g", c.name, least, most, c.least, c.most)
		}
	}
}

func TestReadBroken(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"a.csv", "", "0 delays make no distribution; record delays that vary"},
		{"a.csv", "5\n5\n5\n", "3 delays make no distribution"},
		{"a.csv", "5\n5.0000000001\n", "2 delays make no distribution"},
		{"a.csv", "5\n\n# late\nsoon\n", `line 4: "soon" is no delay; write milliseconds, 0 to 60000`},
		{"a.csv", "rtt\n5\n6\n", `line 1: "rtt" is no delay`},
		{"a.csv", "-1\n5\n", `line 1: "-1" is no delay`},
		{"a.csv", "5\nNaN\n", `line 2: "NaN" is no delay`},
		{"a.csv", "5\n60001\n", `line 2: "60001" is no delay`},
		{"a.csv", "1,2\n3,4\n", "line 1: none of 2 columns is known to be the delay; begin with a header that names it delay_ms"},
		{"a.csv", "at,delay_ms\n3,4\n5\n", "line 3: the column delay_ms is missing"},
		{"a.csv", "5\n\"6\n", `line 2: extraneous or missing " in quoted-field`},
		{"a.dist", "1 2\n3 x\n", `line 2: "x" is no value; a table of iproute2 holds numbers of 16 bits`},
		{"a.dist", "40000\n", `line 1: "40000" is no value`},
		{"a.dist", "7\n", "1 values make no distribution; take one that varies"},
	} {
		_, err := recording.Read(c.file, []byte(c.text))
		if wrong, ok := errors.AsType[*textfile.Error](err); !ok || !strings.Contains(wrong.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

// What was read can be drawn from, whatever stood there; errors are of one line.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"4\n8\n", "at,delay_ms\n1,2\n2,4\n", "# x\n1 2 -3\n", "\"\n", "delay_ms,delay_ms\n1,2\n3,4\n"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, table bool) {
		name := "a.csv"
		if table {
			name = "a.dist"
		}
		r, err := recording.Read(name, []byte(text))
		if err != nil {
			if wrong, ok := errors.AsType[*textfile.Error](err); !ok || strings.Contains(wrong.Error(), "\n") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if steps := r.Table.Steps(); !slices.IsSorted(steps) || steps[0] == steps[len(steps)-1] {
			t.Errorf("%q: from %g to %g", text, steps[0], steps[len(steps)-1])
		}
		if !table && (r.Deviation <= 0 || r.Mean < 0 || r.Mean > 60_000*ms) {
			t.Errorf("%q: %s ± %s", text, r.Mean, r.Deviation)
		}
	})
}

// With a jitter the recording is its shape alone; without one it is what was
// measured, on top of the delay.
func TestApply(t *testing.T) {
	r, err := recording.Read("a.csv", []byte("2\n4\n"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := recording.Read("a.dist", []byte("0 1 2"))
	if err != nil {
		t.Fatal(err)
	}
	const file = "a.csv"
	for _, c := range []struct {
		name      string
		recording recording.Recording
		asked     impair.Impairment
		want      string
	}{
		{"as it is", r, impair.Impairment{Distribution: file}, "3ms ±1ms"},
		{"on top of a delay", r, impair.Impairment{Distribution: file, Delay: 5 * ms}, "8ms ±1ms"},
		{"scaled", r, impair.Impairment{Distribution: file, Delay: 5 * ms, Jitter: 7 * ms}, "5ms ±7ms"},
		{"a table, scaled", table, impair.Impairment{Distribution: file, Delay: 5 * ms, Jitter: 2 * ms}, "5ms ±2ms"},
		{"a table without a jitter", table, impair.Impairment{Distribution: file, Delay: 5 * ms}, "a table of iproute2 has no delays of its own; set delay and jitter as well"},
		{"too long together", r, impair.Impairment{Distribution: file, Delay: 60_000 * ms}, "delay 1m0.003s is too long; write at most 1m0s"},
	} {
		got := c.asked
		if err := c.recording.Apply(&got); err != nil {
			if err.Error() != c.want {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
			continue
		}
		again := got
		if err := c.recording.Apply(&again); err != nil || again != got {
			t.Errorf("%s: applied twice it is %s, %v, once %s", c.name, again, err, got)
		}
		if got.String() != c.want || got.Table != c.recording.Table {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Fill reads each file that is named and not read yet.
func TestFill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wan")
	if err := os.WriteFile(file, []byte("2\n4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stages := impair.Stages{{Delay: ms}, {Distribution: impair.Distribution(file)}, {Delay: ms, Jitter: ms, Distribution: impair.Normal}}
	if err := recording.Fill(stages); err != nil {
		t.Fatal(err)
	}
	if got := stages.String(); got != "1ms, then 3ms ±1ms, then 1ms ±1ms" || stages[1].Table == nil || stages[0].Table != nil || stages[2].Table != nil {
		t.Errorf("got %s", got)
	}
	read := stages[1]
	if err := errors.Join(os.Remove(file), recording.Fill(stages)); err != nil || stages[1] != read {
		t.Errorf("what was read is read again: %v", err)
	}
	stages[1].Table = nil
	if err := recording.Fill(stages); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that has gone: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "broken.csv")
	if err := os.WriteFile(broken, []byte("5\nsoon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Open(broken); err == nil || err.Error() != fmt.Sprintf(`distribution %s: line 2: "soon" is no delay; write milliseconds, 0 to 60000`, broken) {
		t.Errorf("got %v", err)
	}
}

// Of a recording of 10,000 delays no more is lost than a share of 1/4096: the
// largest distance between it and its table.
func TestTableFollowsTheRecording(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	values := make([]float64, 10_000)
	for i := range values { // two routes, one with a tail
		values[i] = 12 + random.ExpFloat64()
		if random.Float64() < 0.3 {
			values[i] = 30 + 5*random.ExpFloat64()*random.ExpFloat64()
		}
		fmt.Fprintln(&text, values[i])
	}
	r, err := recording.Read("wan", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(values)
	worst := 0.0
	for i, step := range r.Table.Steps() {
		ms := (float64(r.Mean) + float64(step)*float64(r.Deviation)) / 1e6
		rank, _ := slices.BinarySearch(values, ms-1e-5) // a float of 32 bits has 7 digits
		share := float64(rank) / float64(len(values))
		worst = max(worst, math.Abs(share-(float64(i)+0.5)/4096))
	}
	if worst > 1./4096 {
		t.Errorf("the table is %.5f off the recording, want at most 1/4096", worst)
	}
}
