package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"skerry.dev/skerry/fabric/policy"
)

// Change is flows of the same client attributes to the same service that other policies
// would decide otherwise.
type Change struct {
	Flows     int       `json:"flows"`
	Direction Direction `json:"direction"`
	Cluster   string    `json:"cluster"`
	Service   string    `json:"service"`
	From      string    `json:"from"`
	// Was and Would are decisions, with the policies that made them.
	Was   string `json:"was"`
	Would string `json:"would"`
}

// Comparison holds flows that were decided against policies.
type Comparison struct {
	policies *policy.Set
	since    time.Time
	groups   map[Change]int
	// Flows were decided since; Otherwise are those of them that would be decided
	// otherwise; Ungrouped of these have no Change, of which there are too many.
	Flows, Otherwise, Ungrouped int
}

// changesMax bounds the groups that are kept.
const changesMax = 10_000

// Compare begins to hold flows that began since a time against policies.
func Compare(policies *policy.Set, since time.Time) *Comparison {
	return &Comparison{policies: policies, since: since, groups: map[Change]int{}}
}

// Add takes a flow. Those that no policy was asked about do not count.
func (c *Comparison) Add(r *Record) {
	allowed, asked := r.Decided()
	if !asked || r.Begin.Before(c.since) {
		return
	}
	c.Flows++
	d := c.policies.Decide(r.From, To(r.Cluster, r.Service))
	if d.Allowed == allowed {
		return
	}
	c.Otherwise++
	group := Change{
		Direction: r.Direction, Cluster: r.Cluster, Service: r.Service.String(), From: words(r.From),
		Was: was(r.Policy, allowed), Would: d.String(),
	}
	if _, known := c.groups[group]; !known && len(c.groups) == changesMax {
		c.Ungrouped++
		return
	}
	c.groups[group]++
}

// was words the decision that a record tells.
func was(name string, allowed bool) string {
	d := policy.Decision{Allowed: allowed}
	if name != "" {
		d.Policy = &policy.Policy{Name: name}
	}
	return d.String()
}

// Changes lists the groups, those with the most flows first.
func (c *Comparison) Changes() []Change {
	all := []Change{}
	for group, n := range c.groups {
		group.Flows = n
		all = append(all, group)
	}
	slices.SortFunc(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.Flows, a.Flows), strings.Compare(a.Service, b.Service), strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return all
}

// words are attributes as the flags of explain take them. A peer may claim any, so what
// would steer a terminal is quoted.
func words(a policy.Attributes) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		one := key + "=" + a[key]
		if strings.ContainsFunc(one, func(r rune) bool { return !unicode.IsPrint(r) }) {
			one = strconv.Quote(one)
		}
		all = append(all, one)
	}
	return strings.Join(all, ",")
}
