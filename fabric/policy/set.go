package policy

import (
	"slices"
	"sync"
)

// Set is policies made ready to decide. It does not change and is safe for concurrent
// use.
//
// A decision first numbers the facts that hold of the two sides, of those that any rule
// asks for, and then reads rules as conditions on numbers. Each rule is filed below the
// rarest of the facts that it wants, so that few are read, however many there are.
type Set struct {
	policies []Policy // in their order
	// numbers of the facts of the two sides, the one that calls first, by key.
	numbers [2]map[string]*numbers
	count   int32
	// filed are the rules below each fact by its number, unfiled those that want none.
	filed   []list
	unfiled list
	// holding are sets of facts that are not in use.
	holding sync.Pool
}

// numbers of the facts that a side has an attribute of a key, and of which value.
type numbers struct {
	has   int32
	value map[string]int32
}

// rule is one pair of selectors of a policy.
type rule struct {
	policy     int
	conditions []condition
}

// condition wants one of the facts to hold, or with none set, none of them.
type condition struct {
	facts []int32
	none  bool
}

// list is rules in the order of their policies, one after the other in memory, which is
// read from its begin: of each the policy, how far the next one is, and its conditions;
// of each condition twice the number of its facts, plus 1 where none may hold, and the
// facts.
type list []int32

// rulePrefix is how much of a list a rule has before its conditions.
const rulePrefix = 2

// add appends a rule without one of its conditions, which holds wherever it is read.
func (l list) add(r rule, without int) list {
	begin := len(l)
	l = append(l, int32(r.policy), 0)
	for i, c := range r.conditions {
		if i == without {
			continue
		}
		head := int32(2 * len(c.facts))
		if c.none {
			head++
		}
		l = append(append(l, head), c.facts...)
	}
	l[begin+1] = int32(len(l) - begin)
	return l
}

// first is the policy of the first rule that holds, or one that goes before them all.
func (l list) first(is []bool, best int) int {
	for len(l) > 0 {
		policy, next := int(l[0]), l[1]
		if policy >= best {
			return best
		}
		if hold(l[rulePrefix:next], is) {
			return policy
		}
		l = l[next:]
	}
	return best
}

// hold says whether all conditions do.
func hold(conditions []int32, is []bool) bool {
	for len(conditions) > 0 {
		next, none := 1+conditions[0]/2, conditions[0]%2 == 1
		some := false
		for _, n := range conditions[1:next] {
			some = some || is[n]
		}
		if some == none {
			return false
		}
		conditions = conditions[next:]
	}
	return true
}

// facts that hold, by their numbers.
type facts struct {
	is   []bool
	list []int32
}

// Compile makes policies ready.
func Compile(policies []Policy) *Set {
	s := &Set{policies: slices.SortedFunc(slices.Values(policies), compare), numbers: [2]map[string]*numbers{{}, {}}}
	var rules []rule
	for i, p := range s.policies {
		for _, from := range p.From {
			for _, to := range p.To {
				conditions := slices.Concat(s.conditions(0, from), s.conditions(1, to))
				rules = append(rules, rule{i, conditions})
			}
		}
	}
	often := make([]int, s.count)
	for _, r := range rules {
		for _, c := range r.conditions {
			for _, n := range c.facts {
				often[n]++
			}
		}
	}
	s.filed = make([]list, s.count)
	for _, r := range rules {
		s.file(r, often)
	}
	s.holding.New = func() any { return &facts{is: make([]bool, s.count)} }
	return s
}

// conditions of a selector of a side.
func (s *Set) conditions(side int, selector Selector) (all []condition) {
	for _, r := range selector {
		of := s.numbers[side][r.Key]
		if of == nil {
			of = &numbers{s.next(), map[string]int32{}}
			s.numbers[side][r.Key] = of
		}
		c := condition{none: r.Operator == NotIn || r.Operator == DoesNotExist}
		if r.Operator == Exists || r.Operator == DoesNotExist {
			c.facts = []int32{of.has}
		} else {
			for _, value := range r.Values {
				if _, known := of.value[value]; !known {
					of.value[value] = s.next()
				}
				c.facts = append(c.facts, of.value[value])
			}
		}
		all = append(all, c)
	}
	return all
}

// next is a number that no fact has.
func (s *Set) next() int32 {
	s.count++
	return s.count - 1
}

// file puts a rule below the facts of the condition whose most frequent one is rarest.
func (s *Set) file(r rule, often []int) {
	var below []int32
	least, chosen := 0, -1
	for i, c := range r.conditions {
		if c.none {
			continue
		}
		most := 0
		for _, n := range c.facts {
			most = max(most, often[n])
		}
		if chosen < 0 || most < least {
			below, least, chosen = c.facts, most, i
		}
	}
	if chosen < 0 {
		s.unfiled = s.unfiled.add(r, chosen)
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(below))) {
		s.filed[n] = s.filed[n].add(r, chosen)
	}
}

// Decide says whether one may call the other.
func (s *Set) Decide(from, to Attributes) Decision {
	held := s.holding.Get().(*facts)
	s.note(held, 0, from)
	s.note(held, 1, to)
	best := s.unfiled.first(held.is, len(s.policies))
	for _, n := range held.list {
		best = s.filed[n].first(held.is, best)
	}
	for _, n := range held.list {
		held.is[n] = false
	}
	held.list = held.list[:0]
	s.holding.Put(held)
	if best == len(s.policies) {
		return Decision{}
	}
	p := &s.policies[best]
	return Decision{Allowed: !p.Deny, Policy: p}
}

// note adds the facts of a side that rules ask for.
func (s *Set) note(held *facts, side int, attributes Attributes) {
	add := func(n int32) {
		held.is[n] = true
		held.list = append(held.list, n)
	}
	for key, value := range attributes {
		of := s.numbers[side][key]
		if of == nil {
			continue
		}
		add(of.has)
		if n, asked := of.value[value]; asked {
			add(n)
		}
	}
}

// Policies lists all of them, in the order in which they decide.
func (s *Set) Policies() []Policy { return s.policies }
