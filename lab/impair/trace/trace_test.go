package trace_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/impair/textfile"
	"skerry.dev/skerry/lab/impair/trace"
)

const ms = time.Millisecond

func TestRead(t *testing.T) {
	for _, c := range []struct {
		text string
		want trace.Trace
		mbit float64
	}{
		{"0\n4\n4\n10\n", trace.Trace{Span: 10 * ms, Deliveries: []time.Duration{0, 4 * ms, 4 * ms, 10 * ms}}, 4.8448},
		{"# uplink\n\n 7 \r\n", trace.Trace{Span: 7 * ms, Deliveries: []time.Duration{7 * ms}}, 12.112 / 7},
		{
			"ms,mbit,delay_ms\n0,10,5\n100,0,7.5\n300,2.5,5\n",
			trace.Trace{Span: 500 * ms, Steps: []trace.Step{{0, 10e6, 5 * ms}, {100 * ms, 0, 7500 * time.Microsecond}, {300 * ms, 2.5e6, 5 * ms}}}, 3,
		},
		{"ms,mbit,delay_ms\n0,1,0", trace.Trace{Span: time.Second, Steps: []trace.Step{{0, 1e6, 0}}}, 1},
	} {
		got, err := trace.Read([]byte(c.text))
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%q: got %+v, %v", c.text, got, err)
			continue
		}
		if mean := got.Mean() / 1e6; mean < c.mbit*0.999 || mean > c.mbit*1.001 {
			t.Errorf("%q: mean of %g Mbit/s, want %g", c.text, mean, c.mbit)
		}
	}
}

func TestReadBroken(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "the trace is empty; write milliseconds, or ms,mbit,delay_ms",
		"# nothing\n":                           "the trace is empty",
		"0\n":                                   "the trace lets nothing go",
		"1\nsoon\n":                             `line 2: "soon" is no time`,
		"-1\n":                                  `line 1: "-1" is no time`,
		"5\n4\n":                                "line 2: 4ms comes after 5ms; sort the lines",
		"86400001\n":                            "later than 24h0m0s",
		"ms,mbit,delay_ms\n":                    "the trace lets nothing go",
		"ms,mbit,delay_ms\n0,0,5\n":             "the trace lets nothing go",
		"ms,mbit,delay_ms\n0,2e-7,5\n":          "the trace lets nothing go",
		"86400000\n":                            "the trace lets only 0.14 bit/s go; let 1 bit/s go or more",
		"ms,mbit,delay_ms\n0,1\n":               "line 2: \"0,1\" has 2 fields, not 3",
		"ms,mbit,delay_ms\n0,NaN,1\n":           `line 2: "NaN" is no mbit; write 0 to 1e+06`,
		"ms,mbit,delay_ms\n0,1,1e99\n":          `is no delay_ms; write 0 to 60000`,
		"ms,mbit,delay_ms\n5,1,1\n":             "the first line holds from 5ms on; begin with 0",
		"ms,mbit,delay_ms\n0,1,1\n0,1,1\n":      "line 3: 0s comes after 0s",
		"ms,mbit,delay_ms\n0,1,1\n0.4999,1,1\n": "the trace is only 999.8µs long; write 1ms or more",
		"1\nms,mbit,delay_ms\n":                 `line 2: "ms,mbit,delay_ms" is no time`,
		strings.Repeat("1", 70_000):             "a trace has short lines of text",
	} {
		_, err := trace.Read([]byte(text))
		var wrong *textfile.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

// What is written reads as it was.
func TestEncode(t *testing.T) {
	for _, text := range []string{"0\n4\n4\n10\n", "ms,mbit,delay_ms\n0,10,5\n100,0,7.5\n300,2.5,5\n"} {
		read, err := trace.Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(read.Encode()); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("0\n4\n4\n10\n"))
	f.Add([]byte("ms,mbit,delay_ms\n0,10,5\n100,0,7.5\n"))
	f.Add([]byte("ms,mbit,delay_ms\n0,0,0\n0.999999,1e-6,0\n1,0,0\n")) // a bit in a million seconds
	f.Add([]byte("ms,mbit,delay_ms\n0,1e-6,0\n1,1e-6,0\n"))
	f.Add([]byte("ms,mbit,delay_ms\n0,-0,0\n1,1,0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := trace.Read(data)
		if err != nil {
			return
		}
		// A packet leaves at some time, whatever the trace.
		p := trace.NewPlayer(read, 0)
		if left, _, ok := p.Send(5, 100, 1000); !ok || left < 5 {
			t.Errorf("a packet leaves at %d, %t", left, ok)
		}
	})
}
