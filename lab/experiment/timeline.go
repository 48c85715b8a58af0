package experiment

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
)

// Event changes a link while the load runs, or has something fail. What it does not
// say of the link, the link does not do from then on.
type Event struct {
	// At is when, from the beginning of the load.
	At quantity.Duration `yaml:"at" json:"at"`
	// Down loses all packets, in place of an impairment.
	Down bool `yaml:"down,omitempty" json:"down,omitempty"`

	Link  `yaml:",inline"`
	Fault `yaml:",inline"`
}

// changed is the link as the event leaves it.
func (e Event) changed() Link {
	l := e.Link
	if e.Down {
		l.Impairment, l.Then = impair.Impairment{Loss: 1}, nil
	}
	return l
}

// Phase is a part of the load in which links stay as they are.
type Phase struct {
	// At is when it begins, from the beginning of the load.
	At time.Duration
	// Directions are those of the scenario, in the same order.
	Directions []Direction
}

// Phases are the times of the scenario between events of links: at least one, from 0.
func (s Scenario) Phases() []Phase {
	phases := []Phase{{Directions: s.Directions()}}
	events := slices.Clone(s.Timeline)
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.At - b.At) })
	for _, e := range events {
		changes := s.changes(e)
		if len(changes) == 0 {
			continue
		}
		last := &phases[len(phases)-1]
		if at := e.At.Std(); at > last.At {
			phases = append(phases, Phase{At: at, Directions: slices.Clone(last.Directions)})
			last = &phases[len(phases)-1]
		}
		for _, changed := range changes {
			last.Directions[slices.IndexFunc(last.Directions, changed.isAlso)] = changed
		}
	}
	return phases
}

// changes are directions as an event leaves them; a fault leaves all as they are.
func (s Scenario) changes(e Event) []Direction {
	if verb, _ := e.Deed(); verb != "" {
		return nil
	}
	return Scenario{Unit: s.Unit, Links: []Link{e.changed()}}.Directions()
}

// Stray is a direction that an event changes and the scenario does not have, or "". An
// experiment that was checked has none.
func (s Scenario) Stray() string {
	known := s.Directions()
	for _, e := range s.Timeline {
		for _, d := range s.changes(e) {
			if !slices.ContainsFunc(known, d.isAlso) {
				return d.Name()
			}
		}
	}
	return ""
}

// timeline checks the events of a scenario whose links have been checked.
func (c *checker) timeline(path string, s Scenario) {
	refs := c.e.Topology.Refs()
	known := s.Directions()
	first := map[string]string{} // the path of the event that changes a direction at a time
	var spells []spell
	for i, e := range s.Timeline {
		at := fmt.Sprintf("%s.timeline[%d]", path, i)
		within(c, at+".at", []quantity.Duration{e.At}, 0, timeMax)
		if e.Fault != (Fault{}) {
			if c.fault(at, e) {
				spells = append(spells, c.spellOf(at, e))
			}
			continue
		}
		var wrong *impair.Error
		switch err := e.Check(); {
		case errors.As(err, &wrong):
			c.add(at+"."+wrong.Field, wrong.Hint, "%s", wrong.Message)
		case e.Down && (!e.IsZero() || len(e.Then) > 0):
			c.add(at, "write down: true, or an impairment", "a link that is down does nothing else")
		}
		if !c.shape(at, e.Link) || !c.ends(at, e.changed(), refs) {
			continue
		}
		for _, d := range s.changes(e) {
			key := fmt.Sprint(d.Name(), " ", e.At)
			other, twice := first[key]
			first[key] = at
			switch {
			case !slices.ContainsFunc(known, d.isAlso):
				c.add(at, "name it under links as well; there it may do nothing", "the scenario has no link %.80q to change", d.Name())
			case twice:
				line, _ := c.e.document.At(other)
				c.add(at, fmt.Sprintf("the other stands on line %d; keep one of the two", line),
					"the direction %.80q changes twice at %s", d.Name(), e.At)
			}
		}
	}
	c.alone(spells)
}
