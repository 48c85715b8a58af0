package experiment_test

import (
	"encoding/json"
	"slices"
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

// Faults change no link, and have an order of their own.
func TestFaults(t *testing.T) {
	const second = quantity.Duration(time.Second)
	s := experiment.Scenario{
		Links: []experiment.Link{{Between: []topology.Ref{"c1", "c2"}}},
		Timeline: []experiment.Event{
			{At: 9 * second, Fault: experiment.Fault{Evict: "c1/default/service"}},
			{At: 2 * second, Down: true, Link: experiment.Link{From: "c1", To: "c2"}},
			{At: second, Fault: experiment.Fault{Kill: "c1/head:web"}},
			{At: 3 * second, Fault: experiment.Fault{StopPlane: "c1", For: second}},
		},
	}
	if phases := s.Phases(); len(phases) != 2 || phases[1].At != 2*time.Second {
		t.Errorf("phases are %+v", phases)
	}
	var got []string
	for _, e := range s.Faults() {
		node, process := e.Victim()
		got = append(got, e.At.String()+" "+e.Words()+" of "+string(node)+" "+process)
	}
	want := []string{"1s kill c1/head:web of c1/head web", "3s stop-plane c1 of c1 ", "9s evict c1/default/service of c1/default/service "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if verb, of := s.Timeline[1].Deed(); verb != "" || of != "" {
		t.Errorf("a link's event is %s %s", verb, of)
	}
}

// A scenario with a fault is another cell, and one without keeps the name it had.
func TestFaultsTellCellsApart(t *testing.T) {
	plain := experiment.Cell{Scenario: experiment.Scenario{Name: "near"}}
	ids := map[string]bool{plain.ID(): true}
	for _, f := range []experiment.Fault{{Freeze: "c1/head"}, {Kill: "c1/head"}, {Reboot: "c1/head"}, {Freeze: "c1/head", For: 1}} {
		faulty := plain
		faulty.Scenario.Timeline = []experiment.Event{{Fault: f}}
		ids[faulty.ID()] = true
	}
	if len(ids) != 5 {
		t.Errorf("5 cells have the names %v", ids)
	}
	link := plain
	link.Scenario.Timeline = []experiment.Event{{At: 1e9, Down: true, Link: experiment.Link{From: "c1", To: "c2"}}}
	text, err := json.Marshal(link.Scenario.Timeline)
	if want := `[{"at":"1s","down":true,"from":"c1","to":"c2"}]`; err != nil || string(text) != want {
		t.Errorf("an event of a link is %s, %v", text, err)
	}
}
