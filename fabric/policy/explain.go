package policy

import (
	"fmt"
	"strings"
)

// Unmet is a requirement that a side does not meet.
type Unmet struct {
	// Side is from or to.
	Side string
	Requirement
	// Has is the side's attribute, nil where it has none of the key.
	Has *string
}

// String says what the side has and what is wanted of it.
func (u Unmet) String() string {
	has := u.Side + " has no " + u.Key
	if u.Has != nil {
		has = fmt.Sprintf("%s has %s %q", u.Side, u.Key, *u.Has)
	}
	switch u.Operator {
	case In:
		return has + ", it wants " + strings.Join(u.Values, " or ")
	case NotIn:
		return has + ", it wants none of " + strings.Join(u.Values, ", ")
	case Exists:
		return has + ", it wants one"
	default:
		return has + ", it wants none"
	}
}

// Near is a policy that would go before the one that has decided, but for one
// requirement.
type Near struct {
	Policy *Policy
	Unmet  Unmet
}

// nearMax bounds how many are told.
const nearMax = 10

// Explain says how a decision comes about, and which policies almost made another: those
// that go before it, and miss one requirement.
func (s *Set) Explain(from, to Attributes) (Decision, []Near) {
	d := s.Decide(from, to)
	var near []Near
	for i := range s.policies {
		p := &s.policies[i]
		if p == d.Policy || len(near) == nearMax {
			break
		}
		if unmet := nearest(p, from, to); len(unmet) == 1 {
			near = append(near, Near{p, unmet[0]})
		}
	}
	return d, near
}

// nearest is what the pair of a policy's selectors misses that misses least.
func nearest(p *Policy, from, to Attributes) (least []Unmet) {
	for i, a := range p.From {
		for k, b := range p.To {
			unmet := append(a.unmet("from", from), b.unmet("to", to)...)
			if i+k == 0 || len(unmet) < len(least) {
				least = unmet
			}
		}
	}
	return least
}

func (s Selector) unmet(side string, a Attributes) (all []Unmet) {
	for _, r := range s {
		if r.Holds(a) {
			continue
		}
		u := Unmet{Side: side, Requirement: r}
		if value, has := a[r.Key]; has {
			u.Has = &value
		}
		all = append(all, u)
	}
	return all
}
