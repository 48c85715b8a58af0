package report

import (
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

func TestStagesText(t *testing.T) {
	const ms = quantity.Duration(time.Millisecond)
	for _, c := range []struct {
		stages impair.Stages
		want   string
	}{
		{nil, "nothing"},
		{impair.Stages{{}}, "nothing"},
		{impair.Stages{{Delay: 5 * ms, Jitter: ms, Loss: 0.0008, Rate: 1e9}}, "delay 5ms ± 1ms uniform, loss 0.08%, rate 1gbit, queue 1250KB"},
		{
			impair.Stages{{Delay: 5 * ms, Jitter: ms, Distribution: impair.Pareto, Unordered: true}, {}, {Loss: 0.01}},
			"delay 5ms ± 1ms pareto in any order; then loss 1%",
		},
		{
			impair.Stages{{Delay: ms, Reorder: 0.02, Duplicate: 0.03, Corrupt: 0.04, Burst: impair.Burst{Enter: 0.01, Leave: 0.25, Loss: 0.9}}},
			"delay 1ms, bursts of loss 90% entered with 1%, left with 25%, duplicated 3%, corrupted 4%, reordered 2%",
		},
	} {
		if got := stagesText(c.stages); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
