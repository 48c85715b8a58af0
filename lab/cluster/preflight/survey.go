package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// lead is before the names of findings.
const lead = "kubernetes: "

// Survey tries all that clusters may need of this machine, whatever is chosen of them,
// and makes none.
func Survey(now time.Time) []host.Finding {
	if err := host.RequireRoot(); err != nil {
		return []host.Finding{{What: lead + "all of it", Detail: err.Error(), Remedy: "run as root: what it needs cannot be tried else"}}
	}
	var findings []host.Finding
	for _, n := range everyNeed() {
		findings = append(findings, n.finding())
	}
	m, err := look(host.Root(), now)
	if err != nil {
		return append(findings, found("machine", "", err))
	}
	return append(findings, m.survey()...)
}

// finding tries a need.
func (n need) finding() host.Finding {
	err := n.missing()
	f := found(n.what, "", err)
	f.Detail = "for " + n.by
	if lacks, ok := errors.AsType[*FeatureError](err); ok {
		f.Detail += ": " + lacks.Err.Error()
	}
	if lacks, ok := errors.AsType[*ProgramError](err); ok {
		f.Detail += ": " + lacks.Program + " is not installed"
	}
	return f
}

// everyNeed is all needs that some choice has, of either family, each once, by all that
// need it.
func everyNeed() []need {
	choices := []spec.Spec{{}}
	for _, cni := range spec.CNIs() {
		choices = append(choices, spec.Spec{CNI: cni})
	}
	for _, proxy := range spec.Proxies() {
		choices = append(choices, spec.Spec{Proxy: proxy})
	}
	var all []need
	for _, choice := range choices {
		for _, n := range needs(choice, true) {
			i := slices.IndexFunc(all, func(a need) bool { return a.what == n.what })
			switch {
			case i < 0:
				all = append(all, n)
			case !slices.Contains(strings.Split(all[i].by, ", "), n.by):
				all[i].by += ", " + n.by
			}
		}
	}
	return all
}

// survey looks at what a machine has, against what the smallest lab of clusters wants.
func (m machine) survey() []host.Finding {
	smallest := topology.Topology{Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}}}
	findings := []host.Finding{found("clock", m.now.UTC().Format(time.RFC3339), m.late())}
	for _, w := range m.wants(&smallest) {
		detail := fmt.Sprintf("%s are free; one cluster of one node wants %s", w.amount(w.Free), w.amount(w.Need))
		findings = append(findings, found(w.What, detail, w.short()))
	}
	return findings
}

// found is a finding: with an error, of what is not here.
func found(what, detail string, err error) host.Finding {
	f := host.Finding{What: lead + what, Here: err == nil, Detail: detail}
	if err != nil {
		f.Detail = err.Error()
	}
	if advised, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		f.Remedy = advised.Hint()
	}
	return f
}
