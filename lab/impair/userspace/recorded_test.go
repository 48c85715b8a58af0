package userspace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/recording"
)

// twoRoutes is a recording of n delays in ms, to the microsecond: most packets take
// one route, some another with a long tail.
func twoRoutes(n int) []float64 {
	random := rand.New(rand.NewPCG(5, 5))
	values := make([]float64, n)
	for i := range values {
		v := 12 + random.ExpFloat64()
		if random.Float64() < 0.2 {
			v = 25 + 4*random.ExpFloat64()
		}
		values[i] = math.Round(v*1e3) / 1e3
	}
	slices.Sort(values)
	return values
}

// recorded writes values to a file, a number to a line, and reads it as a link
// that follows it does.
func recorded(t *testing.T, values []float64, asked impair.Impairment) impair.Impairment {
	t.Helper()
	var text strings.Builder
	for _, v := range values {
		fmt.Fprintln(&text, v)
	}
	file := filepath.Join(t.TempDir(), "delays.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	asked.Distribution = impair.Distribution(file)
	stages := impair.Stages{asked}
	if err := recording.Fill(stages); err != nil {
		t.Fatal(err)
	}
	return stages[0]
}

// apart is the Kolmogorov–Smirnov distance of two sorted samples, which are equal
// where they are within near.
func apart(a, b []float64, near float64) (worst float64) {
	for _, x := range b {
		below, _ := slices.BinarySearch(b, x+near)
		of, _ := slices.BinarySearch(a, x+near)
		worst = max(worst, math.Abs(float64(of)/float64(len(a))-float64(below)/float64(len(b))))
	}
	return worst
}

// What comes out has the distribution that was measured: as it was without a
// jitter, moved to the delay and scaled to the jitter with one.
func TestRecordedJitter(t *testing.T) {
	const n = 10_000
	critical := 1.63 / math.Sqrt(n) // 99 %
	values := twoRoutes(n)
	_, mean, deviation, err := impair.NewTable(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		asked impair.Impairment
		// want of a value that was measured, in ms
		want func(ms float64) float64
	}{
		{"as it was", impair.Impairment{}, func(v float64) float64 { return v }},
		{"on top of a delay", impair.Impairment{Delay: 7 * ms}, func(v float64) float64 { return 7 + v }},
		{"scaled", impair.Impairment{Delay: 40 * ms, Jitter: 3 * ms}, func(v float64) float64 { return 40 + 3*(v-mean)/deviation }},
		{"cut where a packet would arrive too early", impair.Impairment{Delay: 2 * ms, Jitter: 3 * ms}, func(v float64) float64 { return max(0, 2+3*(v-mean)/deviation) }},
	} {
		does := recorded(t, values, c.asked)
		// Packets a second apart are never held back to keep their order.
		got, _ := delays(does, n, 100, time.Second)
		slices.Sort(got)
		want := make([]float64, n)
		for i, v := range values {
			want[i] = c.want(v) * 1e6
		}
		const near = 20 // ns, of rounding
		if d := apart(got, want, near); d > critical {
			t.Errorf("%s: distance %.4f from the recording, critical %.4f", c.name, d, critical)
		}
		normal := does
		normal.Distribution = impair.Normal
		other, _ := delays(normal, n, 100, time.Second)
		slices.Sort(other)
		if d := apart(other, want, near); d < 3*critical {
			t.Errorf("%s: a normal distribution is only %.4f from the recording", c.name, d)
		}
	}
}
