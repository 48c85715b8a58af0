package main

import (
	"strings"
	"testing"

	"skerry.dev/skerry/test/quiet"
)

// A program that breaks is no other load's doing, and what it said is printed, also within a
// test that passes.
func TestCrashed(t *testing.T) {
	const events = `{"Action":"start","Package":"a"}
{"Action":"output","Package":"a","Test":"TestX","Output":"WARNING: DATA RACE\n"}
{"Action":"pass","Package":"a","Test":"TestX"}
{"Action":"output","Package":"a","Output":"FAIL a 1s\n"}
{"Action":"fail","Package":"a"}
`
	var out strings.Builder
	r := newReader(&out)
	if err := r.read(strings.NewReader(events), quiet.Now); err != nil {
		t.Fatal(err)
	}
	if want := "FAIL a 1s\nWARNING: DATA RACE\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	r.results[0].stolen = 0.5
	if again, failed, _ := judge(r.results, 1); len(again) != 0 || len(failed) != 1 {
		t.Errorf("again %v, failed %v", again, failed)
	}
	for line, want := range map[string]bool{"panic: x": true, "fatal error: all goroutines are asleep": true, "panic: test timed out after 1s": false, "ok": false} {
		if breaks(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}

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
{"Action":"output","Package":"b","Test":"TestY/z","Output":"robbed: the hypervisor took 30% of the cores\n"}
{"Action":"fail","Package":"b","Test":"TestY/z"}
{"Action":"output","Package":"b","Test":"TestY","Output":"--- FAIL: TestY\n"}
{"Action":"fail","Package":"b","Test":"TestY"}
{"Action":"output","Package":"b","Output":"FAIL\n"}
{"Action":"output","Package":"b","Output":"FAIL b 1s\n"}
{"Action":"fail","Package":"b"}
{"Action":"start","Package":"c"}
{"Action":"fail","Package":"c","Test":"TestPanics"}
{"Action":"output","Package":"c","Output":"FAIL c 1s\n"}
{"Action":"fail","Package":"c"}
not JSON
`
	var out strings.Builder
	r := newReader(&out)
	if err := r.read(strings.NewReader(events), quiet.Now); err != nil {
		t.Fatal(err)
	}
	if want := "ok a 1s\nrobbed: the hypervisor took 30% of the cores\n--- FAIL: TestY\nFAIL\nFAIL b 1s\nFAIL c 1s\nnot JSON\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if got := r.results; len(got) != 3 || !got[0].passed || got[1].passed || got[2].passed {
		t.Fatalf("got %+v", got)
	}
	r.results[1].stolen, r.results[2].stolen = 0.1, 0.01
	again, failed, _ := judge(r.results, 1)
	if len(again) != 1 || again[0].name != "b" || len(failed) != 1 || failed[0] != "c" {
		t.Errorf("again %v, failed %v", again, failed)
	}
	if whole, one := r.results[2].pattern(), again[0].pattern(); whole != "." || one != "^(TestY)$" {
		t.Errorf("tried again would be %q and %q", whole, one)
	}
	again, failed, unknown := judge(r.results, triesMax)
	if len(again) != 0 || len(failed) != 1 || failed[0] != "c" || len(unknown) != 1 || unknown[0].name != "b" {
		t.Errorf("at last: again %v, failed %v, unknown %v", again, failed, unknown)
	}
	r.failed["b"] = append(r.failed["b"], "TestY/other") // which holds no times
	if of := r.result("b", false, quiet.Moment{}); of.robbed {
		t.Error("what was not robbed is passed over beside what was")
	}
	r.results[1].robbed = false
	if _, failed, unknown := judge(r.results, triesMax); len(failed) != 2 || len(unknown) != 0 {
		t.Errorf("without the mark: failed %v, unknown %v", failed, unknown)
	}
}
