package impair_test

import (
	"errors"
	"math"
	"net/netip"
	"testing"

	"skerry.dev/skerry/lab/impair"
)

func TestTogether(t *testing.T) {
	burst := impair.Impairment{Loss: 0.01, Burst: impair.Burst{Enter: 0.1, Leave: 0.3}}
	if got := (impair.Stages{burst}).Together(); got != burst {
		t.Errorf("one stage together is %+v", got)
	}
	if got := (impair.Stages{}).Together(); got != (impair.Impairment{}) {
		t.Errorf("no stages together are %+v", got)
	}
	got := impair.Stages{
		{Delay: 5 * ms, Jitter: ms, Distribution: impair.Normal, Loss: 0.1, Duplicate: 0.5, Rate: 1e9},
		{Delay: 2 * ms, Jitter: ms, Unordered: true, Rate: 1e6, Queue: 5000, Corrupt: 0.2},
		{Burst: impair.Burst{Enter: 0.1, Leave: 0.1, Loss: 0.4}, Duplicate: 0.5, Delay: ms, Reorder: 0.1},
	}.Together()
	want := impair.Impairment{
		Delay: 8 * ms, Jitter: 2 * ms, Distribution: impair.Normal, Unordered: true,
		Duplicate: 0.75, Corrupt: 0.2, Reorder: 0.1, Rate: 1e6, Queue: 5000,
	}
	if loss := float64(got.Loss); math.Abs(loss-0.28) > 1e-12 { // 1 - 0.9 * 0.8
		t.Errorf("loss %g, want 0.28", loss)
	}
	if got.Loss = 0; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestStagesDoWhatAnyDoes(t *testing.T) {
	delay, loss, nothing := impair.Impairment{Delay: ms}, impair.Impairment{Loss: 0.1}, impair.Impairment{}
	for _, c := range []struct {
		name                 string
		stages               impair.Stages
		zero, splits, copies bool
		text                 string
	}{
		{"none", nil, true, false, false, "nothing"},
		{"nothing", impair.Stages{nothing, nothing}, true, false, false, "nothing"},
		{"delays", impair.Stages{delay, delay}, false, false, false, "1ms, then 1ms"},
		{"loss behind", impair.Stages{delay, loss}, false, true, false, "1ms, then 10%"},
		{"nothing first", impair.Stages{nothing, {Corrupt: 0.01}}, false, true, true, "corrupt 1%"},
	} {
		d := impair.Direction{}
		if len(c.stages) > 0 {
			d.Impairment, d.Then = c.stages[0], c.stages[1:]
		}
		if d.IsZero() != c.zero || c.stages.SplitsPackets(impair.UnitPacket) != c.splits || c.stages.Copies() != c.copies {
			t.Errorf("%s: does nothing %v, splits %v, copies %v", c.name, d.IsZero(), c.stages.SplitsPackets(impair.UnitPacket), c.stages.Copies())
		}
		if d.String() != c.text {
			t.Errorf("%s: %q, want %q", c.name, d, c.text)
		}
	}
	reach := impair.Stages{{Delay: 5 * ms, Jitter: ms}, {Delay: 9 * ms, Jitter: 2 * ms, Distribution: impair.Normal}}.Reach()
	if reach != 9*ms {
		t.Errorf("jitter of ±1ms and of a deviation of 2ms reaches %s, want 9ms", reach)
	}
}

// A direction between two nodes that does nothing stands before that of their
// clusters, any other that does nothing before none.
func TestExempts(t *testing.T) {
	nodes := impair.Match{In: "c1", Out: "c2", Source: netip.MustParseAddr("10.1.0.1"), Destination: netip.MustParseAddr("10.2.0.1")}
	for _, c := range []struct {
		name string
		d    impair.Direction
		want bool
	}{
		{"nodes of two clusters", impair.Direction{Match: nodes, Then: []impair.Impairment{{}}}, true},
		{"nodes that have a link", impair.Direction{Match: nodes, Then: []impair.Impairment{{Delay: ms}}}, false},
		{"clusters", impair.Direction{Match: impair.Match{In: "c1", Out: "c2"}}, false},
		{"nodes of one cluster", impair.Direction{Match: impair.Match{In: "c1n1", Out: "c1n2", Bridged: true}}, false},
	} {
		if got := c.d.Exempts(); got != c.want {
			t.Errorf("%s: exempts is %t", c.name, got)
		}
	}
}

func TestCheckStages(t *testing.T) {
	half := impair.Impairment{Delay: 30_000 * ms, Reorder: 0.14}
	many := make(impair.Stages, 9)
	for _, c := range []struct {
		name        string
		stages      impair.Stages
		field, want string
	}{
		{"good", impair.Stages{{Delay: ms}, {Delay: ms, Reorder: 0.1}, {Rate: 1e6}}, "", ""},
		{"first", impair.Stages{{Delay: -ms}, {}}, "delay", "delay -1ms is negative; write 0 or more"},
		{"third", impair.Stages{{}, {}, {Burst: impair.Burst{Enter: 1}}}, "then[1].burst.leave", ""},
		{"too many", many, "then", "9 stages are too many; write at most 7 stages behind the first"},
		{"too long", impair.Stages{{Delay: 30_000 * ms}, {Delay: 30_001 * ms}}, "then", "the delays add up to 1m0.001s, which is too long; write at most 1m0s in all stages"},
		{"too much reordering", impair.Stages{half, half}, "then", ""},
	} {
		err := c.stages.Check()
		var wrong *impair.Error
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" && (!errors.As(err, &wrong) || wrong.Field != c.field || c.want != "" && err.Error() != c.want):
			t.Errorf("%s: got %v, want %s: %s", c.name, err, c.field, c.want)
		}
	}
}
