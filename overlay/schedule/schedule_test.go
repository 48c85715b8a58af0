package schedule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/overlay/schedule"
)

const (
	us = quantity.Duration(time.Microsecond)
	ms = quantity.Duration(time.Millisecond)
)

// plan has class 7 alone for 300 us of a cycle, class 3 for 200 us, and then 0 with 1.
func plan(flows ...schedule.Flow) schedule.Plan {
	return schedule.Plan{
		Link: 1e9, Guard: 5 * us, Cycle: ms,
		Entries: []schedule.Entry{{Open: []int{7}, For: 300 * us}, {Open: []int{3}, For: 200 * us}, {Open: []int{0, 1}, For: 500 * us}},
		Flows:   flows,
	}
}

func TestWindowsJoinOverTheCycle(t *testing.T) {
	p := schedule.Plan{Cycle: ms, Entries: []schedule.Entry{
		{Open: []int{1, 2}, For: 100 * us}, {Open: []int{1}, For: 100 * us}, {For: 300 * us}, {Open: []int{1, 2}, For: 500 * us},
	}}
	w := func(start, end quantity.Duration) schedule.Window {
		return schedule.Window{Start: start.Std(), End: end.Std()}
	}
	for class, want := range map[int][]schedule.Window{
		0: nil, 1: {w(500*us, 1200*us)}, 2: {w(500*us, 1100*us)},
	} {
		if got := p.Windows(class); !slices.Equal(got, want) {
			t.Errorf("class %d has the windows %v, want %v", class, got, want)
		}
	}
	p.Entries = []schedule.Entry{{Open: []int{4}, For: 400 * us}, {Open: []int{4}, For: 600 * us}}
	if got := p.Windows(4); !slices.Equal(got, []schedule.Window{w(0, ms)}) {
		t.Errorf("a gate that is always open has the windows %v", got)
	}
}

// At 1 Gbit/s a packet of 64 B takes 134 bytes, 1072 ns, of the wire.
func TestCheckSaysWhatFits(t *testing.T) {
	flow := schedule.Flow{Name: "a", Class: 7, Size: 64, Period: 250 * us}
	classes, refusals := plan(flow).Check()
	if len(refusals) != 0 || len(classes) != 4 {
		t.Fatalf("classes %+v, refusals %v", classes, refusals)
	}
	want := schedule.Class{
		Class: 7, Windows: 1, Open: 300 * time.Microsecond, Longest: 295 * time.Microsecond, Usable: 295 * time.Microsecond,
		Flows: 1, Demand: 4 * 1072, Frame: 1072,
	}
	if classes[0] != want {
		t.Errorf("class 7 is %+v, want %+v", classes[0], want)
	}
	if u := classes[0].Utilisation(); u < 0.0145 || u > 0.0146 {
		t.Errorf("class 7 is used by %.4f", u)
	}
}

func TestFlowsAreAdmittedAsLongAsTheyFit(t *testing.T) {
	p := plan()
	for n := 0; ; n++ {
		f := schedule.Flow{Name: fmt.Sprint(n), Class: 3, Size: 1472, Period: ms} // 12,336 ns
		if err := p.Admit(f); err != nil {
			var r *schedule.Refusal
			if n != 15 || !errors.As(err, &r) || r.Lacks != 16*12336-195000 || !strings.Contains(err.Error(), "2.376µs are lacking") {
				t.Errorf("flow %d is refused: %v", n, err)
			}
			break
		}
		p.Flows = append(p.Flows, f)
	}
	if _, refusals := p.Check(); len(refusals) != 0 {
		t.Errorf("what was admitted is refused: %v", refusals)
	}
}

// A flow is refused that would take from a class below what that needs, and one of a class
// whose gate never opens.
func TestFlowsHarmNoOther(t *testing.T) {
	p := plan(schedule.Flow{Name: "best", Class: 0, Size: 1472, Period: 30 * us}) // 34 frames, 419 of 495 us
	var r *schedule.Refusal
	if err := p.Admit(schedule.Flow{Name: "a", Class: 1, Size: 1472, Period: 100 * us}); !errors.As(err, &r) || r.Class.Class != 0 {
		t.Errorf("it is refused by %v, want class 0", err)
	}
	if err := p.Admit(schedule.Flow{Name: "a", Class: 5, Size: 64, Period: ms}); !errors.As(err, &r) || r.Class.Class != 5 || r.Lacks != 1072 {
		t.Errorf("class 5, which never opens: %v", err)
	}
}

func TestExplain(t *testing.T) {
	p := plan()
	p.BaseTime = 1_000_000_000
	for _, c := range []struct {
		class        int
		into, leaves quantity.Duration
		why          string
	}{
		{7, 100 * us, 100 * us, "open at its transmission time"},
		{7, 294 * us, ms, "too soon for a frame"},
		{7, 300 * us, ms, "shut at its transmission time"},
		{3, 0, 300 * us, "opens 300µs later"},
		{0, 999 * us, 1500 * us, "too soon for a frame"},
	} {
		for _, cycles := range []int64{0, 7} {
			start := p.BaseTime + cycles*int64(ms)
			d, err := p.Explain(c.class, 64, start+int64(c.into))
			if err != nil || d.AtNs-start != int64(c.leaves) || d.Waits != (c.leaves-c.into).Std() || !strings.Contains(d.Why, c.why) {
				t.Errorf("class %d at %s: %+v, %v", c.class, c.into, d, err)
			}
		}
	}
	var r *schedule.Refusal
	if _, err := p.Explain(5, 64, 0); !errors.As(err, &r) {
		t.Errorf("class 5, which never opens: %v", err)
	}
}

// Where all flows of random plans fit, what they send in a cycle is at most what the link
// carries in it.
func TestNothingIsAdmittedThatTheLinkCannotCarry(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	admitted := 0
	for range 2000 {
		p := schedule.Plan{Link: 1e8, Guard: us, Cycle: ms}
		for left := ms; left > 0; {
			e := schedule.Entry{For: min(left, quantity.Duration(1000+random.IntN(400_000)))}
			for c := range schedule.Classes {
				if random.IntN(3) == 0 {
					e.Open = append(e.Open, c)
				}
			}
			p.Entries, left = append(p.Entries, e), left-e.For
		}
		var sent time.Duration
		for n := range 60 {
			f := schedule.Flow{Name: fmt.Sprint(n), Class: random.IntN(8), Size: quantity.Size(1 + random.IntN(1472)), Period: ms}
			if p.Admit(f) == nil {
				admitted++
				p.Flows = append(p.Flows, f)
				sent += time.Duration(80 * (max(int64(f.Size)+46, 60) + 24))
			}
		}
		if sent > ms.Std() {
			t.Fatalf("%+v sends for %s in a cycle of %s", p, sent, ms)
		}
		for _, f := range p.Flows {
			for into := quantity.Duration(0); into < ms; into += 100 * us {
				if d, err := p.Explain(f.Class, f.Size, int64(into)); err != nil || d.Waits > 2*ms.Std() {
					t.Fatalf("flow %+v at %s: %+v, %v", f, into, d, err)
				}
			}
		}
	}
	if admitted < 1000 {
		t.Errorf("only %d flows of all plans were admitted", admitted)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	const good = "link: 1gbit\nguard: 5us\ncycle: 1ms\nentries:\n  - {open: [7], for: 300us}\n  - {open: [0, 1], for: 700us}\nflows:\n  - {name: a, class: 7, size: 64B, period: 1ms}\n"
	if p, err := schedule.Read("f", []byte(good)); err != nil || len(p.Entries) != 2 || p.Flows[0].Size != 64 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"link: 1gbit", "link: 0bit", "it needs the rate of the link"},
		{"for: 700us", "for: 600us", "the entries last 900µs, the cycle 1ms"},
		{"[0, 1]", "[0, 0]", "class 0 is not possible here"},
		{"[0, 1]", "[8]", "class 8 is not possible here"},
		{"class: 7", "class: 9", "class 9 is not possible"},
		{"size: 64B", "size: 2KB", "a packet of 2KB is not possible"},
		{"period: 1ms", "period: 0s", "a packet every 0s is not possible"},
		{"guard: 5us", "guard: 1s", "1s is not possible here"},
		{"for: 300us", "for: 1ns", "1ns is not possible here"},
	} {
		_, err := schedule.Read("f", []byte(strings.Replace(good, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in place of %s: %v, want %q", c.to, c.from, err, c.want)
		}
	}
}

// FuzzRead holds that a plan which reads can be checked and explained.
func FuzzRead(f *testing.F) {
	f.Add([]byte("link: 1gbit\ncycle: 1ms\nentries: [{open: [7], for: 1ms}]\nflows: [{name: a, class: 7, size: 64B, period: 1ms}]\n"))
	f.Add([]byte("link: 1kbit\nguard: 1ms\ncycle: 10s\nentries: [{open: [], for: 5s}, {open: [0], for: 5s}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := schedule.Read("f", data)
		if err != nil {
			var one *strict.Error
			if !errors.As(err, &one) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		classes, _ := p.Check()
		for _, c := range classes {
			if c.Open < 0 || c.Open > p.Cycle.Std() || c.Usable > c.Open {
				t.Fatalf("%+v of %+v", c, p)
			}
		}
		for class := range schedule.Classes {
			if d, err := p.Explain(class, 64, 123_456_789); err == nil && d.Waits > 2*p.Cycle.Std() {
				t.Fatalf("class %d: %+v", class, d)
			}
		}
	})
}
