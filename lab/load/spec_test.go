package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/workload"
)

func TestReadSpec(t *testing.T) {
	got, err := ReadSpec(strings.NewReader(`{"target": "10.1.0.1:8080", "workload": "payload-echo", "size": "100KB",
		"threads": 4, "iterations": 100, "warmup": 5, "think": "10ms", "timeout": "1s", "connection": "new", "seed": 7}`))
	want := Spec{
		Target: "10.1.0.1:8080", Workload: workload.PayloadEcho, Size: 100e3, Threads: 4, Iterations: 100, Warmup: 5,
		Think: quantity.Duration(10 * time.Millisecond), Timeout: quantity.Duration(time.Second), Connection: New, Seed: 7,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestBadSpecs(t *testing.T) {
	for text, says := range map[string]string{
		`{`: "unexpected EOF",
		`{"workload": "hello-world", "iterations": 1, "thraeds": 2}`:                                                                       `unknown field "thraeds"`,
		`{"workload": "hello-world", "iterations": 1} {}`:                                                                                  "more than one JSON object",
		`{"targets": [{"target": "a:1", "threads": 1}], "workload": "hello-world", "duration": "1s", "rotate": "1s"}`:                      "new connections",
		`{"targets": [{"target": "a:1", "threads": 0}], "workload": "hello-world", "duration": "1s"}`:                                      "lie outside 1 to",
		`{"targets": [{"target": "a:1", "threads": 0}], "workload": "hello-world", "duration": "1s", "rotate": "1s", "connection": "new"}`: "the targets have no threads",
		`{"workload": "hello-world", "rate": "1/s", "duration": "1s", "rotate": "1s"}`:                                                     "neither rotates nor settles",
		`{"target": "a:1", "workload": "hello-world", "iterations": 1, "settle": "1s"}`:                                                    "a load that settles has targets",
		`{"targets": [{"target": "a:1", "threads": 1}], "workload": "hello-world", "duration": "1s", "settle": "1s", "warmup": 1}`:         "no warmup",
		`{"target": "a:1", "workload": "hello-world", "iterations": 1, "settle": "-1s"}`:                                                   "negative",
		`{"workload": "hello-world", "iterations": 1, "rotate": "-1s"}`:                                                                    "negative",
		`{"workload": "hello-world"}`:                                                                                   "0 iterations lie outside 1 to 20000000",
		`{"workload": "hello", "iterations": 1}`:                                                                        `workload "hello" is none of payload-echo,`,
		`{"workload": "hello-world", "iterations": 1, "size": "1KB"}`:                                                   "size 1KB: hello-world takes no body",
		`{"workload": "payload-echo", "iterations": 1, "size": "1GB"}`:                                                  "size 1GB lies outside 0B to 64MiB",
		`{"workload": "payload-echo", "iterations": 1, "size": "1MB", "threads": 5000}`:                                 "5000 threads of 1MB need more than 2GiB of buffers",
		`{"workload": "hello-world", "iterations": 1, "time": "1ms"}`:                                                   "time 1ms: only sleep and burn take one",
		`{"workload": "sleep", "iterations": 1, "time": "2h"}`:                                                          "time 2h0m0s is over the bound of 1h0m0s",
		`{"workload": "burn", "iterations": 1, "time": "2m"}`:                                                           "time 2m0s is over the bound of 1m0s",
		`{"workload": "sleep", "iterations": 1, "memory": "1MB"}`:                                                       "memory 1MB: only burn takes one",
		`{"workload": "hello-world", "iterations": 1, "connection": "keep"}`:                                            `connection "keep" is neither kept nor new`,
		`{"workload": "hello-world", "iterations": 1, "threads": -1}`:                                                   "-1 threads lie outside 1 to 10000",
		`{"workload": "hello-world", "iterations": 20000000, "warmup": 1}`:                                              "20000001 requests are over the bound of 20000000",
		`{"workload": "hello-world", "iterations": 1, "warmup": -1}`:                                                    "warmup -1 lies outside 0 to 20000000",
		`{"workload": "hello-world", "iterations": 1, "timeout": "-1s"}`:                                                "is negative",
		`{"workload": "hello-world", "iterations": 9223372036854775807, "warmup": 9223372036854775807, "threads": 100}`: "iterations lie outside",
	} {
		if _, err := ReadSpec(strings.NewReader(text)); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\ngot error %v\nwant one that says %s", text, err, says)
		}
	}
}

func TestBadTargets(t *testing.T) {
	for target, says := range map[string]string{
		"":                      "missing port",
		"10.1.0.1":              "missing port",
		":80":                   `"" is no host`,
		"10.1.0.1:0":            `"0" is no port`,
		"10.1.0.1:http":         `"http" is no port`,
		"a\r\nX-Injected: 1:80": "too many colons",
		"a\r\nb:80":             "is no host",
	} {
		_, err := Run(t.Context(), Spec{Target: target, Workload: workload.HelloWorld, Iterations: 1})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got error %v, want one that says %s", target, err, says)
		}
	}
}

func TestPayloadDoesNotRepeat(t *testing.T) {
	a, again, b := payload(1000, 1), payload(1000, 1), payload(1000, 2)
	if !bytes.Equal(a, again) {
		t.Error("the same seed gives two payloads")
	}
	if bytes.Equal(a, b) {
		t.Error("two seeds give the same payload")
	}
}

// FuzzReadSpec holds that a spec that reads is within its bounds and survives
// a round trip.
func FuzzReadSpec(f *testing.F) {
	f.Add([]byte(`{"target": "h:1", "workload": "burn", "time": "1ms", "memory": "1MB", "iterations": 1}`))
	f.Add([]byte(`{"targets": [{"target": "h:1", "threads": 2}, {"target": "i:1", "threads": 1}], "workload": "hello-world", "duration": "2s"}`))
	f.Add([]byte(`{"workload": "payload-echo", "size": "100KB", "threads": 4, "iterations": 100, "seed": 18446744073709551615}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadSpec(bytes.NewReader(text))
		if err != nil {
			return
		}
		if n := s.total(); n < 1 || n > samplesMax {
			t.Errorf("%+v is a load of %d requests", s, n)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ReadSpec(bytes.NewReader(b)); err != nil || again.total() != s.total() {
			t.Errorf("%s reads again as %+v, %v", b, again, err)
		}
	})
}
