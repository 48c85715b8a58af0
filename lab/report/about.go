package report

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

// about is what was run and how to see it otherwise.
type about struct {
	Facts     []Fact
	Scenarios []scenarioView
	// Files are the names of the figures; FilesMore were not drawn.
	Files     []string
	FilesMore int
	// Elsewhere counts the figures that are files alone.
	Elsewhere int
}

type scenarioView struct {
	Name, Unit string
	// Links that are impaired, each with its impairment; empty for none.
	Links []Fact
}

func aboutOf(in Input, all []Figure, more int) about {
	a := about{Facts: factsOf(in), FilesMore: more}
	for _, f := range all {
		a.Files = append(a.Files, f.Name)
	}
	for _, s := range in.Experiment.Scenarios {
		v := scenarioView{Name: s.Name, Unit: string(unitOf(s))}
		for _, l := range s.Links {
			v.Links = append(v.Links, Fact{Name: linkText(l), Value: stagesText(l.Stages())})
		}
		a.Scenarios = append(a.Scenarios, v)
	}
	return a
}

// Fold says whether the list of files is long.
func (a about) Fold() bool { return len(a.Files) > rowsOpen }

// factsOf lists what was run; a fact that is not known is left out.
func factsOf(in Input) []Fact {
	e, p := in.Experiment, in.Provenance
	started, cores, seed := "", "", ""
	if !p.Started.IsZero() {
		started = p.Started.Format("2 January 2006, 15:04:05 MST")
	}
	if p.Cores > 0 {
		cores = " (" + counted(p.Cores, "core") + ")"
	}
	if e.Topology.Clusters != nil {
		seed = strconv.FormatUint(p.Seed, 10)
	}
	facts := []Fact{
		{Name: "started", Value: started},
		{Name: "took", Value: unlessZero(p.Took.Round(time.Second))},
		{Name: "skerry", Value: strings.TrimSpace(p.Version + " " + p.Commit)},
		{Name: "processor", Value: p.Processor + cores},
		{Name: "kernel", Value: p.Kernel},
		{Name: "substrate", Value: e.Substrate},
		{Name: "links by", Value: p.Backend},
		{Name: "congestion control", Value: congestionOf(e)},
		{Name: "seed", Value: seed},
		{Name: "clusters", Value: clustersText(e.Topology)},
		{Name: "client", Value: string(e.Topology.Client)},
		{Name: "service", Value: string(e.Topology.Service)},
		{Name: "replicas", Value: refsText(e.Topology.Replicas)},
		{Name: "broken", Value: refsText(e.Topology.Broken)},
		{Name: "entries", Value: refsText(e.Topology.Entries)},
		{Name: "repetitions", Value: strconv.Itoa(e.Repetitions)},
	}
	for _, f := range conditions() {
		facts = append(facts, Fact{Name: longName(f.name), Value: strings.Join(levelsOf(f, in.Results), ", ")})
	}
	return slices.DeleteFunc(append(facts, p.Facts...), func(f Fact) bool { return f.Value == "" })
}

// congestionOf is that of the lab's routes; an import has no lab.
func congestionOf(e experiment.Experiment) string {
	if e.Topology.Clusters == nil {
		return ""
	}
	return e.Topology.CongestionControl()
}

func refsText(refs []topology.Ref) string {
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

func longName(factor string) string {
	switch factor {
	case "think":
		return "think time"
	case "iterations":
		return "requests per thread"
	case "warmup":
		return "warm-up per thread"
	case "unit":
		return "unit of emulation"
	}
	return factor
}
