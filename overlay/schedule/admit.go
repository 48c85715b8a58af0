package schedule

import (
	"fmt"
	"time"

	"skerry.dev/skerry/internal/quantity"
)

// Class is what a list gives to a traffic class, and what its flows take of that, in each
// cycle.
type Class struct {
	Class   int `json:"class"`
	Windows int `json:"windows"`
	// Open is how long its gate is; Longest the window with most room for frames, beside
	// the guard band; Usable what they may fill of all windows at the worst, where each but
	// one is left unfilled by less than a frame.
	Open    time.Duration `json:"open_ns"`
	Longest time.Duration `json:"longest_ns"`
	Usable  time.Duration `json:"usable_ns"`
	// Demand is what the flows take at most, Others what other classes may take of the same
	// windows: all of the higher ones', and in each window a frame of a lower one.
	Flows  int           `json:"flows"`
	Demand time.Duration `json:"demand_ns"`
	Others time.Duration `json:"others_ns"`
	// Frame is the largest of its flows, or that there is.
	Frame time.Duration `json:"frame_ns"`
	// Lacks is by how much a cycle is too short for them, 0 where they fit.
	Lacks time.Duration `json:"lacks_ns"`
}

// Utilisation is the share of the usable time that flows take; 0 where none is usable.
func (c Class) Utilisation() float64 {
	if c.Usable <= 0 {
		return 0
	}
	return float64(c.Demand) / float64(c.Usable)
}

// Refusal says why the flows of a class do not fit.
type Refusal struct{ Class }

// Error names the class, and what it lacks.
func (r *Refusal) Error() string {
	if r.Longest < r.Frame {
		return fmt.Sprintf("class %d has no room for a frame: that takes %s, the longest window without the guard band is %s, %s are lacking",
			r.Class.Class, r.Frame, r.Longest, r.Lacks)
	}
	return fmt.Sprintf("class %d has flows of %s in each cycle and other classes %s in its windows, of which %s are usable: %s are lacking",
		r.Class.Class, r.Demand, r.Others, r.Usable, r.Lacks)
}

// Check is every class that a gate opens for or that has flows, from the highest, and a
// *Refusal for each that lacks something.
func (p Plan) Check() (classes []Class, refusals []*Refusal) {
	for class := Classes - 1; class >= 0; class-- {
		c := p.class(class)
		if c.Windows == 0 && c.Flows == 0 {
			continue
		}
		classes = append(classes, c)
		if c.Lacks > 0 {
			refusals = append(refusals, &Refusal{c})
		}
	}
	return classes, refusals
}

// Admit is nil where a flow fits beside those of the plan and each class that had what it
// needs still has, or the *Refusal of the class that lacks something.
func (p Plan) Admit(f Flow) error {
	with := p
	with.Flows = append(p.Flows[:len(p.Flows):len(p.Flows)], f)
	for class := Classes - 1; class >= 0; class-- {
		after := with.class(class)
		if after.Lacks > 0 && (class == f.Class || p.class(class).Lacks == 0) {
			return &Refusal{after}
		}
	}
	return nil
}

// class adds up what a class has and what it needs.
func (p Plan) class(class int) Class {
	windows := p.Windows(class)
	c := Class{Class: class, Windows: len(windows), Frame: p.largest(class)}
	room := 0 // windows that have it
	for _, w := range windows {
		usable := p.usable(w)
		c.Open += w.End - w.Start
		c.Longest = max(c.Longest, usable)
		if usable >= c.Frame {
			room++
			c.Usable += usable
		}
	}
	c.Usable -= time.Duration(max(room-1, 0)) * (c.Frame - 1)
	p.load(&c)
	switch missing := c.Demand + c.Others - c.Usable; {
	case c.Longest < c.Frame:
		c.Lacks = c.Frame - c.Longest
	case c.Flows > 0 && missing > 0:
		c.Lacks = missing
	}
	return c
}

// load adds what flows take of a class's windows.
func (p Plan) load(c *Class) {
	for _, f := range p.Flows {
		switch {
		case f.Class == c.Class:
			c.Flows++
			c.Demand += p.demand(f)
		case f.Class > c.Class && p.share(f.Class, c.Class):
			c.Others += p.demand(f)
		}
	}
	var below time.Duration
	for lower := range c.Class {
		if p.share(lower, c.Class) {
			below = max(below, p.largest(lower))
		}
	}
	c.Others += below * time.Duration(c.Windows)
}

// demand is what a flow takes of a cycle at most.
func (p Plan) demand(f Flow) time.Duration {
	packets := int64((p.Cycle.Std() + f.Period.Std() - 1) / f.Period.Std())
	return p.onWire(f.Size) * time.Duration(packets)
}

// share reports that two classes have a gate open at the same time.
func (p Plan) share(a, b int) bool {
	for _, e := range p.Entries {
		if e.opens(a) && e.opens(b) {
			return true
		}
	}
	return false
}

// largest is how long the largest frame of a class's flows takes, or without flows the
// largest that there is.
func (p Plan) largest(class int) (longest time.Duration) {
	for _, f := range p.Flows {
		if f.Class == class {
			longest = max(longest, p.onWire(f.Size))
		}
	}
	if longest == 0 {
		return p.onWire(quantity.Size(payloadMax))
	}
	return longest
}
