package experiment_test

import (
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

func TestPhases(t *testing.T) {
	between := func(delay time.Duration) experiment.Link {
		return experiment.Link{Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Delay: quantity.Duration(delay)}}
	}
	event := func(at time.Duration, l experiment.Link) experiment.Event {
		return experiment.Event{At: quantity.Duration(at), Link: l}
	}
	oneWay := experiment.Link{From: "c2", To: "c1", Impairment: impair.Impairment{Delay: quantity.Duration(3 * time.Second)}}
	down := event(2*time.Second, experiment.Link{Between: []topology.Ref{"c1", "c2"}})
	down.Down = true
	s := experiment.Scenario{
		Links: []experiment.Link{between(time.Millisecond)},
		// The file need not have them in order.
		Timeline: []experiment.Event{event(4*time.Second, oneWay), event(0, between(5*time.Millisecond)), down},
	}
	want := []struct {
		at          time.Duration
		there, back impair.Impairment
	}{
		{0, between(5 * time.Millisecond).Impairment, between(5 * time.Millisecond).Impairment},
		{2 * time.Second, impair.Impairment{Loss: 1}, impair.Impairment{Loss: 1}},
		{4 * time.Second, impair.Impairment{Loss: 1}, oneWay.Impairment},
	}
	phases := s.Phases()
	if len(phases) != len(want) {
		t.Fatalf("got %d phases: %+v", len(phases), phases)
	}
	for i, w := range want {
		p := phases[i]
		if p.At != w.at || len(p.Directions) != 2 || p.Directions[0].Name() != "c1>c2" ||
			p.Directions[0].Impairment != w.there || p.Directions[1].Impairment != w.back || p.Directions[1].Unit != impair.UnitPacket {
			t.Errorf("phase %d is %+v, want %+v", i, p, w)
		}
	}
	if alone := (experiment.Scenario{Links: s.Links}).Phases(); len(alone) != 1 || alone[0].Directions[1].Impairment != s.Links[0].Impairment {
		t.Errorf("without events there are %+v", alone)
	}
}
