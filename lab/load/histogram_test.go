package load

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry.dev/skerry/lab/sample"
)

// What other tools read has the quantiles of the samples.
func TestHistogramAgreesWithSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	var rows []sample.Request
	var times []int64
	at := int64(5e9)
	for range 20_000 {
		// From 1 µs to some seconds: a log-normal with a long tail.
		d := int64(1e3 + 300e3*math.Exp(2*random.NormFloat64()))
		rows = append(rows, sample.Request{ScheduledNs: at, SentNs: at, FirstByteNs: at + d, LastByteNs: at + d})
		times = append(times, d)
		at += 1e5
	}
	rows = append(rows,
		sample.Request{ScheduledNs: at, LastByteNs: at + 1, Warmup: true},
		sample.Request{ScheduledNs: at, Error: classTimeout})
	began := time.UnixMilli(1_700_000_000_000)
	var text bytes.Buffer
	if err := WriteHistogram(&text, rows, began); err != nil {
		t.Fatal(err)
	}
	if head := "#[Histogram log format version 1.3]\n"; !strings.HasPrefix(text.String(), head) {
		t.Errorf("the log begins %.60q, want %q", text.String(), head)
	}
	log := hdrhistogram.NewHistogramLogReader(&text)
	h, err := log.NextIntervalHistogram()
	if err != nil || h == nil {
		t.Fatalf("read back: %v, %v", h, err)
	}
	if h.TotalCount() != int64(len(times)) {
		t.Errorf("%d values, want %d: warm-up and errors do not count", h.TotalCount(), len(times))
	}
	slices.Sort(times)
	for _, q := range []float64{0.1, 1, 25, 50, 90, 99, 99.9, 99.99, 100} {
		want := float64(times[int(math.Round(q/100*float64(len(times))))-1])
		if got := float64(h.ValueAtQuantile(q)); math.Abs(got-want) > max(0.001*want, 1) {
			t.Errorf("quantile %g %%: %.0f ns, want %.0f of the samples within 0.1 %%", q, got, want)
		}
	}
	if next, err := log.NextIntervalHistogram(); next != nil || err != nil {
		t.Errorf("a second interval: %v, %v", next, err)
	}
}

// A load without one answer has a log as well, and a time over the range counts.
func TestHistogramOfExtremes(t *testing.T) {
	for name, c := range map[string]struct {
		rows []sample.Request
		n    int64
	}{
		"nothing":      {nil, 0},
		"errors alone": {[]sample.Request{{ScheduledNs: 1, Error: classReset}}, 0},
		"two hours":    {[]sample.Request{{ScheduledNs: 1, LastByteNs: 1 + 2*int64(time.Hour)}}, 1},
	} {
		var text bytes.Buffer
		if err := WriteHistogram(&text, c.rows, time.UnixMilli(0)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h, err := hdrhistogram.NewHistogramLogReader(&text).NextIntervalHistogram()
		if err != nil || h == nil || h.TotalCount() != c.n {
			t.Errorf("%s: read back %v, %v; want %d values", name, h, err, c.n)
		}
	}
}
