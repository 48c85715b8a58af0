package main

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// What failed is printed, what passed is one line; a package that failed while others
// had the cores is tried again, up to a bound.
func TestRead(t *testing.T) {
	const events = `{"Action":"start","Package":"a"}
{"Action":"output","Package":"a","Test":"TestX","Output":"--- PASS: TestX\n"}
{"Action":"pass","Package":"a","Test":"TestX"}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok a 1s\n"}
{"Action":"pass","Package":"a"}
{"Action":"start","Package":"b"}
{"Action":"output","Package":"b","Test":"TestY","Output":"--- FAIL: TestY\n"}
{"Action":"fail","Package":"b","Test":"TestY"}
{"Action":"output","Package":"b","Output":"FAIL b 1s\n"}
{"Action":"fail","Package":"b"}
{"Action":"start","Package":"c"}
{"Action":"output","Package":"c","Output":"FAIL c 1s\n"}
{"Action":"fail","Package":"c"}
not JSON
`
	// Of a's and b's run the hypervisor has a tenth, of c's a hundredth.
	second := time.Duration(runtime.NumCPU()) * time.Second
	var times []moment
	for i, stolen := range []time.Duration{0, second / 10, second / 10, second / 5, second / 5, second * 21 / 100} {
		times = append(times, moment{time.Unix(int64(i+1)/2, 0), stolen})
	}
	var out strings.Builder
	r := &reader{out: &out, said: map[string]*strings.Builder{}, began: map[string]moment{}}
	err := r.read(strings.NewReader(events), func() (moment, error) {
		now := times[0]
		times = times[1:]
		return now, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "ok a 1s\n--- FAIL: TestY\nFAIL b 1s\nFAIL c 1s\nnot JSON\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	again, failed := judge(r.results, 1)
	if len(again) != 1 || again[0].name != "b" || len(failed) != 1 || failed[0] != "c" {
		t.Errorf("again %v, failed %v", again, failed)
	}
	if again, failed := judge(r.results, triesMax); len(again) != 0 || len(failed) != 2 {
		t.Errorf("at last: again %v, failed %v", again, failed)
	}
}
