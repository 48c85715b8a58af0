package oracle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"skerry.dev/skerry/lab/oracle"
	"skerry.dev/skerry/lab/sample"
)

func answered(fromMs, toMs int64) sample.Request {
	return sample.Request{ScheduledNs: fromMs * 1e6, LastByteNs: toMs * 1e6, Status: 200}
}

func TestObserve(t *testing.T) {
	failed := answered(5, 0)
	failed.Error = "timeout"
	late := answered(0, 1000)
	late.Error = "status 503"
	for _, c := range []struct {
		name     string
		requests []sample.Request
		want     oracle.Observed
	}{
		{"nothing", nil, oracle.Observed{}},
		{"failed alone", []sample.Request{failed, late}, oracle.Observed{}},
		{"one", []sample.Request{answered(100, 110)}, oracle.Observed{Rate: 100, InFlight: 1, Little: 1}},
		{"one after the other", []sample.Request{answered(10, 20), answered(0, 10)}, oracle.Observed{Rate: 100, InFlight: 1, Little: 1}},
		// Half of the time nothing is under way.
		{"think", []sample.Request{answered(0, 5), answered(15, 20)}, oracle.Observed{Rate: 100, InFlight: 0.5, Little: 0.5}},
		// 2·10 + 2·10 + 1·10 ms in 30 ms.
		{"together", []sample.Request{answered(0, 10), answered(0, 20), answered(10, 30), failed, late}, oracle.Observed{Rate: 100, InFlight: 5. / 3, Little: 5. / 3}},
	} {
		got := oracle.Observe(c.requests)
		if near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }; !near(got.Rate, c.want.Rate) ||
			!near(got.InFlight, c.want.InFlight) || !near(got.Little, c.want.Little) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// closedLoop is what threads see whose requests follow one another, with pauses.
func closedLoop(rng *rand.Rand, threads, each int) []sample.Request {
	var all []sample.Request
	for thread := range threads {
		at := int64(1e15) + rng.Int64N(1e9)
		for range each {
			end := at + 1 + rng.Int64N(50e6)
			all = append(all, sample.Request{Thread: int32(thread), ScheduledNs: at, LastByteNs: end})
			at = end + rng.Int64N(3)*rng.Int64N(1e6)
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// Little's law holds for whatever threads do, and shows where data are not of
// so few threads.
func TestLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	for range 50 {
		threads := 1 + rng.IntN(20)
		o := oracle.Observe(closedLoop(rng, threads, 200))
		if why := o.Contradiction(threads); why != "" || o.InFlight <= 0 {
			t.Fatalf("%d threads: %+v: %s", threads, o, why)
		}
		if threads > 1 && o.InFlight > 1.01 && o.Contradiction(1) == "" {
			t.Fatalf("%+v is taken for one thread", o)
		}
	}
}

// RAP-F7: at concurrency 1 iptables is said to answer 120 requests/s in 17 ms
// each (EXPERIMENTS.md, "What the papers do not say" 9).
func TestPaperLittle(t *testing.T) {
	rap := oracle.Observed{Rate: 120, InFlight: 120 * 0.017, Little: 120 * 0.017}
	want := "Little's law does not hold: rate times mean response time is 2.04 requests under way, of 1 threads"
	if got := rap.Contradiction(1); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := rap.Contradiction(0); got != "" {
		t.Errorf("an open loop may have any number under way: %q", got)
	}
	if got := (oracle.Observed{Rate: 100, InFlight: 1, Little: 1.1}).Contradiction(2); got == "" {
		t.Error("1 and 1.1 requests under way are taken for equal")
	}
}

func TestMean(t *testing.T) {
	got := oracle.Mean([]oracle.Observed{{Rate: 100, InFlight: 2, Little: 2}, {}, {Rate: 50, InFlight: 1, Little: 1}})
	if want := (oracle.Observed{Rate: 75, InFlight: 1.5, Little: 1.5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := oracle.Mean(nil); got != (oracle.Observed{}) {
		t.Errorf("mean of nothing is %+v", got)
	}
}

func BenchmarkObserve(b *testing.B) {
	requests := closedLoop(rand.New(rand.NewPCG(3, 0)), 50, 20_000)
	for b.Loop() {
		oracle.Observe(requests)
	}
}
