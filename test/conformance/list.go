package main

import (
	"regexp"
	"strings"
)

// conformance marks the specs that every cluster is to pass.
const conformance = "[Conformance]"

// list is a choice of the suite's specs.
type list struct {
	// area that specs are of, empty for each.
	area string
	// focus is what their names match besides; nil for all.
	focus *regexp.Regexp
	// without are those that are not run.
	without []exception
}

// exception is specs that are not run, and why.
type exception struct{ pattern, reason string }

// narrow is what is run by default, wider what FULL=1 asks for.
var (
	narrow = list{area: "sig-network"}
	wider  = list{without: exceptions}
)

// exceptions would take longer than the others together, or want what no lab has.
var exceptions = []exception{
	{`\[Serial\]|\[Disruptive\]`, "it wants the cluster to itself"},
	{`\[Slow\]|CronJob should (not|replace|schedule)|should \*not\* be restarted|monotonically increasing|500 podspec`, "it waits for minutes"},
	{`pull policy of Always`, "it pulls its image from a registry of the internet"},
}

// covers says whether a spec is of the list.
func (l list) covers(name string) bool {
	return strings.Contains(name, conformance) && (l.area == "" || area(name) == l.area) &&
		(l.focus == nil || l.focus.MatchString(name))
}

// leavesOut is the reason why a spec of the list is not run; empty for one that is.
func (l list) leavesOut(name string) string {
	for _, e := range l.without {
		if regexp.MustCompile(e.pattern).MatchString(name) {
			return e.reason
		}
	}
	return ""
}

// flags have ginkgo run the list, which it knows by the labels of specs.
func (l list) flags() []string {
	labels := strings.Trim(conformance, "[]")
	if l.area != "" {
		labels = l.area + " && " + labels
	}
	all := []string{"--label-filter=" + labels}
	if l.focus != nil {
		all = append(all, "--focus="+l.focus.String())
	}
	for _, e := range l.without {
		all = append(all, "--skip="+e.pattern)
	}
	return all
}
