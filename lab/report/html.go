package report

import (
	_ "embed" // the page's template and style
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// HTML writes the result as one page that needs nothing else: style and
// figures are inside, there is no script and no reference to another file.
func HTML(w io.Writer, in Input) error {
	page, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("parse the page's template: %w", err)
	}
	v, err := viewOf(in)
	if err != nil {
		return err
	}
	return page.Execute(w, v)
}

// view is Input as the template shows it.
type view struct {
	Style             template.CSS
	Name, Description string
	Summary           string
	Facts             []fact
	Scenarios         []scenarioView
	Heads             []string
	Rows              []row
	Repeated          bool
	Verdicts          []verdictView
	Figures           []figure
	Troubles          []trouble
	HopMaps           []hopMap
	Links             []linkView
}

type fact struct{ Name, Value string }

type scenarioView struct {
	Name, Unit string
	// Links that are impaired, each with its impairment; empty for none.
	Links []fact
}

type verdictView struct {
	Objective, Seen string
	Met             bool
}

// trouble is a cell that was rejected or in which requests failed.
type trouble struct{ Cell, What string }

type hopMap struct{ Title, Text string }

// linkView is one direction of a link in one cell.
type linkView struct {
	Cell, Name, Asked, AskedLoss, SeenLoss string
	Seen                                   impair.Counters
	LateMax                                string
	Distrust                               bool
}

func viewOf(in Input) (view, error) {
	varying, _ := split(in.Results)
	heads := append(axes(), varying...)
	v := view{
		Style:       template.CSS(pageCSS),
		Name:        in.Experiment.Name,
		Description: in.Experiment.Description,
		Summary:     summaryText(in),
		Facts:       factsOf(in),
		Rows:        rows(in.Results, heads),
		Repeated:    slices.ContainsFunc(in.Results, func(r Result) bool { return len(r.PerRepetition) > 1 }),
		HopMaps:     hopMapsOf(in.Results),
	}
	for _, f := range heads {
		v.Heads = append(v.Heads, f.name)
	}
	for _, s := range in.Experiment.Scenarios {
		v.Scenarios = append(v.Scenarios, scenarioOf(s))
	}
	for _, d := range in.Verdicts {
		v.Verdicts = append(v.Verdicts, verdictView{objectiveText(d.Objective), d.Seen, d.Met})
	}
	for _, r := range in.Results {
		v.Troubles = append(v.Troubles, troublesOf(r, heads)...)
		for _, l := range r.Links {
			v.Links = append(v.Links, linkOf(phrase(heads, r.Cell), l))
		}
	}
	var err error
	v.Figures, err = figures(in.Results)
	return v, err
}

// summaryText is "36 cells: 35 measured, 1 rejected; 1 of 3 objectives missed."
func summaryText(in Input) string {
	if len(in.Results) == 0 {
		return "No cell was run."
	}
	counts := map[string]int{}
	for _, r := range in.Results {
		counts[r.missing()]++
	}
	text := fmt.Sprintf("%s: %d measured", counted(len(in.Results), "cell"), counts[""])
	for _, word := range []string{wordRejected, wordNotRun, wordNoAnswer} {
		if counts[word] > 0 {
			text += fmt.Sprintf(", %d %s", counts[word], word)
		}
	}
	missed := 0
	for _, d := range in.Verdicts {
		if !d.Met {
			missed++
		}
	}
	switch {
	case len(in.Verdicts) == 0:
	case missed == 0:
		text += "; all objectives met"
	default:
		text += fmt.Sprintf("; %d of %s missed", missed, counted(len(in.Verdicts), "objective"))
	}
	return text + "."
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// factsOf lists what was run; a fact that is not known is left out.
func factsOf(in Input) []fact {
	e, p := in.Experiment, in.Provenance
	started, cores := "", ""
	if !p.Started.IsZero() {
		started = p.Started.Format("2 January 2006, 15:04:05 MST")
	}
	if p.Cores > 0 {
		cores = " (" + counted(p.Cores, "core") + ")"
	}
	facts := []fact{
		{"started", started},
		{"took", unlessZero(p.Took.Round(time.Second))},
		{"skerry", strings.TrimSpace(p.Version + " " + p.Commit)},
		{"processor", p.Processor + cores},
		{"kernel", p.Kernel},
		{"seed", strconv.FormatUint(p.Seed, 10)},
		{"clusters", clustersText(e.Topology)},
		{"client", string(e.Topology.Client)},
		{"service", string(e.Topology.Service)},
		{"congestion control", e.Topology.CongestionControl()},
		{"repetitions", strconv.Itoa(e.Repetitions)},
	}
	for _, f := range conditions() {
		facts = append(facts, fact{longName(f.name), strings.Join(levelsOf(f, in.Results), ", ")})
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
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

func scenarioOf(s experiment.Scenario) scenarioView {
	v := scenarioView{Name: s.Name, Unit: string(unitOf(s))}
	for _, l := range s.Links {
		v.Links = append(v.Links, fact{linkText(l), impairmentText(l.Impairment)})
	}
	return v
}

func troublesOf(r Result, heads []factor) []trouble {
	var all []trouble
	if r.Rejected != "" {
		all = append(all, trouble{phrase(heads, r.Cell), "rejected: " + r.Rejected})
	}
	if r.Summary.Errors > 0 {
		text := fmt.Sprintf("%s of %s failed: %s", errorsText(r.Summary),
			counted(r.Summary.Requests, "request"), errorClassesText(r.Summary.ErrorClasses))
		all = append(all, trouble{phrase(heads, r.Cell), text})
	}
	return all
}

// hopMapsOf shows each path once, with the systems and scenarios that take it.
func hopMapsOf(results []Result) []hopMap {
	mapped := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.HopMap == "" })
	var all []hopMap
	for _, group := range groupBy(mapped, func(r Result) string { return r.HopMap }) {
		var names []string
		for _, f := range []factor{axes()[1], axes()[0]} {
			names = append(names, strings.Join(levelsOf(f, group), ", "))
		}
		all = append(all, hopMap{Title: names[0] + " in " + names[1], Text: group[0].HopMap})
	}
	return all
}

func linkOf(cell string, l Link) linkView {
	v := linkView{
		Cell: cell, Name: l.Asked.Name, Asked: impairmentText(l.Asked.Impairment), Seen: l.Seen,
		AskedLoss: l.Asked.Loss.String(), SeenLoss: noFigure, LateMax: noFigure,
		Distrust: l.Seen.Late > 0 || l.Seen.Missed > 0,
	}
	if l.Seen.Packets > 0 {
		v.SeenLoss = percent(l.seenLoss())
	}
	if l.Seen.Late > 0 {
		v.LateMax = milliseconds(time.Duration(l.Seen.LateMaxNs), 3)
	}
	return v
}
