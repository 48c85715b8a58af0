package trace_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"skerry.dev/skerry/lab/impair/trace"
	"skerry.dev/skerry/lab/measure"
)

// seconds are the means of a trace over each second: rate in Mbit/s, delay in ms.
func seconds(t *trace.Trace) (rates, delays []float64) {
	const steps = 10
	for i := 0; i+steps <= len(t.Steps); i += steps {
		var rate, delay float64
		for _, s := range t.Steps[i : i+steps] {
			rate += s.Rate / 1e6 / steps
			delay += s.Delay.Seconds() * 1e3 / steps
		}
		rates, delays = append(rates, rate), append(delays, delay)
	}
	return rates, delays
}

// autocorrelation of values that are so many apart.
func autocorrelation(values []float64, lag int) float64 {
	mean := measure.Sort(values).Mean()
	var all, lagged float64
	for i, v := range values {
		all += (v - mean) * (v - mean)
		if i >= lag {
			lagged += (v - mean) * (values[i-lag] - mean)
		}
	}
	return lagged / all
}

// The built-in traces look as their documentation says.
func TestModel(t *testing.T) {
	for _, c := range []struct {
		name                string
		least, median, most float64
		floor, delay        time.Duration
	}{
		{trace.LTE, 0, 12, 60, 22 * ms, 80 * ms},
		{trace.NR, 0, 110, 400, 8 * ms, 30 * ms},
	} {
		made, known := trace.Model(c.name, 1)
		if !known || made.Span != 10*time.Minute || len(made.Steps) != 6000 {
			t.Fatalf("%s: %t, %s in %d steps", c.name, known, made.Span, len(made.Steps))
		}
		rates, delays := seconds(made)
		r, d := measure.Sort(rates), measure.Sort(delays)
		if r.Median() < c.median/2 || r.Median() > c.median*2 || r.Max() > c.most || r.Quantile(0.95) < 3*r.Quantile(0.05) {
			t.Errorf("%s: rates of %g, %g, %g Mbit/s at 5, 50, 95 %%", c.name, r.Quantile(0.05), r.Median(), r.Quantile(0.95))
		}
		if d.Min() < c.floor.Seconds()*1e3 || d.Quantile(0.95) > c.delay.Seconds()*1e3 || d.Max() < 2*d.Min() {
			t.Errorf("%s: delays of %g, %g, %g ms at 0, 50, 95 %%", c.name, d.Min(), d.Median(), d.Quantile(0.95))
		}
		if near, far := autocorrelation(rates, 2), autocorrelation(rates, 100); near < 0.5 || math.Abs(far) > 0.4 {
			t.Errorf("%s: rates correlate by %g after 2 s and %g after 100 s", c.name, near, far)
		}
		outages := 0
		for _, s := range made.Steps {
			if s.Rate == 0 {
				outages++
			}
		}
		if outages < 3 || outages > 200 {
			t.Errorf("%s: %d steps without a rate", c.name, outages)
		}
	}
}

// A name and a seed are one trace for ever, and it survives a file.
func TestModelIsFixed(t *testing.T) {
	want := map[string]string{trace.LTE: "e9890c83088481e4", trace.NR: "583222c66a2725de"}
	for name, digest := range want {
		made, _ := trace.Model(name, 1)
		text := made.Encode()
		if got := fmt.Sprintf("%x", sha256.Sum256(text))[:16]; got != digest {
			t.Errorf("%s is %s, want %s", name, got, digest)
		}
		read, err := trace.Read(text)
		if err != nil || !reflect.DeepEqual(read, made) {
			t.Errorf("%s reads otherwise: %v", name, err)
		}
		if other, _ := trace.Model(name, 2); reflect.DeepEqual(other, made) {
			t.Errorf("%s is the same by another seed", name)
		}
	}
	if _, known := trace.Model("6g", 1); known || trace.Known("6g") || !trace.Known(trace.LTE) {
		t.Error("names that are known")
	}
}
