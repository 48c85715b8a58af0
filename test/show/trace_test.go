package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/lab/impair/trace"
	"skerry.dev/skerry/lab/measure"
)

func TestReadIntervals(t *testing.T) {
	const says = `{"end": {}, "server_output_json": {"intervals": [
		{"sum": {"seconds": 1.0001, "bits_per_second": 12e6}}, {"sum": {"seconds": 0.9999, "bits_per_second": 3e6}},
		{"sum": {"seconds": 0.02, "bits_per_second": 1e9}}]}}`
	if got, err := readIntervals(says); err != nil || !slices.Equal(got, []float64{12e6, 3e6}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", `{"error": "unable to connect"}`} {
		if got, err := readIntervals(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func TestBySecond(t *testing.T) {
	const says = "PING c1-head (10.1.0.1) 56(84) bytes of data.\n" +
		"[1700000000.150000] 64 bytes from c1-head (10.1.0.1): icmp_seq=1 ttl=63 time=50.0 ms\n" +
		"[1700000001.010000] 64 bytes from c1-head (10.1.0.1): icmp_seq=2 ttl=63 time=30.0 ms\n" +
		"[1700000002.500000] 64 bytes from c1-head (10.1.0.1): icmp_seq=3 ttl=63 time=8.00 ms\n"
	got, err := bySecond(says, time.Unix(1_700_000_000, 0), 3)
	if err != nil || got[0] != 40e6 || !math.IsNaN(got[1]) || got[2] != 8e6 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestSecondly(t *testing.T) {
	read, err := trace.Read([]byte("ms,mbit,delay_ms\n0,2,5\n1500,4,9\n2000,1,1\n3000,1,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	rates := secondly(read, 500*time.Millisecond, 3, rateOf, measure.Sorted.Mean)
	if !slices.Equal(rates, []float64{2e6, 2.5e6, 1e6}) {
		t.Errorf("rates %v", rates)
	}
	delays := secondly(read, 0, 2, delayOf, measure.Sorted.Max)
	if !slices.Equal(delays, []float64{5e6, 9e6}) {
		t.Errorf("delays %v", delays)
	}
	if r := correlation([]float64{1, math.NaN(), 2, 3}, []float64{2, 7, 4, 6, 8}); math.Abs(r-1) > 1e-9 {
		t.Errorf("correlation %g", r)
	}
}
