// Package policy decides who may call which service. It is pure: a decision follows from
// the policies and the attributes of the two sides alone, so that both ends of a fabric
// come to it by themselves and can say why.
//
// Privileged policies go before all others; within each tier those of a lower priority
// number do, of one number those that deny. The first that selects both sides decides.
// Where none does, the answer is no. Start at Compile.
package policy

import (
	"cmp"
	"slices"
)

// Attributes of one side of a connection, by name.
type Attributes map[string]string

// Names of attributes. Those of a workload's labels begin with Label.
const (
	Workload       = "workload"
	Cluster        = "cluster"
	Gateway        = "gateway"
	Namespace      = "namespace"
	Service        = "service"
	Port           = "port"
	Protocol       = "protocol"
	ServiceAccount = "serviceaccount"
	Label          = "label/"
)

// Operator is how a requirement compares, as in Kubernetes' label selectors.
type Operator string

// The operators. NotIn holds also where there is no such attribute.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Requirement is one condition on an attribute.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string
}

// Holds says whether attributes meet the requirement.
func (r Requirement) Holds(a Attributes) bool {
	value, has := a[r.Key]
	switch r.Operator {
	case In:
		return has && slices.Contains(r.Values, value)
	case NotIn:
		return !has || !slices.Contains(r.Values, value)
	case Exists:
		return has
	default:
		return !has
	}
}

// Selector selects what meets all of its requirements; without any, everything.
type Selector []Requirement

// Selects says whether attributes meet every requirement.
func (s Selector) Selects(a Attributes) bool {
	for _, r := range s {
		if !r.Holds(a) {
			return false
		}
	}
	return true
}

// Policy allows or denies connections from what one of From selects to what one of To
// selects.
type Policy struct {
	Name       string
	Deny       bool
	Privileged bool
	// Priority is 0 to 1000; lower goes first.
	Priority int
	From, To []Selector
}

// compare is the order in which policies decide.
func compare(a, b Policy) int {
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	return cmp.Or(first(a.Privileged, b.Privileged), cmp.Compare(a.Priority, b.Priority), first(a.Deny, b.Deny), cmp.Compare(a.Name, b.Name))
}

// Decision is an answer, and why.
type Decision struct {
	Allowed bool
	// Policy is the one that decided, nil where none did.
	Policy *Policy
}

// String is the answer in a line.
func (d Decision) String() string {
	switch {
	case d.Policy == nil:
		return "denied: no policy selects it"
	case d.Allowed:
		return "allowed by " + d.Policy.Name
	}
	return "denied by " + d.Policy.Name
}
