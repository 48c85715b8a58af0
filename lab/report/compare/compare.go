// Package compare says what changed from one run to another beyond noise, cell
// by cell: as a table in a terminal (Table), as JSON and as one self-contained
// page (HTML). It is pure; lab/measure decides what is a difference, and nothing
// here says why there is one: it lists what else differs between the runs.
// Start at Runs.
package compare

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
)

// Side is one of the runs, by the Name that the user gave it.
type Side struct {
	Name string
	report.Input
}

// Options of a comparison.
type Options struct {
	// Rule says when a difference is called.
	measure.Rule
	// Margin is how much slower a cell may become: 0.05 is 5 %.
	Margin float64
}

// NotComparable is the verdict on a cell that has no figures in one of the runs,
// or none with a ratio.
const NotComparable = measure.NotComparable

// whyNoRatio is where times come in whole milliseconds, of which 0 is one.
const whyNoRatio = "the median of a repetition is 0 ms, which has no ratio"

// Comparison of run B with run A.
type Comparison struct {
	A, B string
	Options
	// Differing is what else differs between the runs, which may be the cause.
	Differing []Differing
	// Cells that both runs have, in the order of A.
	Cells []Cell
	// OnlyA and OnlyB are the cells that the other run has not.
	OnlyA, OnlyB []string
}

// factSubstrate is the name of what the nodes of a run were.
const factSubstrate = "substrate"

// Differing is something that is not the same in both runs; empty where it is
// not known of one.
type Differing struct{ What, A, B string }

// Cell is one cell in both runs.
type Cell struct {
	ID, Label string
	// A and B are the medians in ns, and means nothing where not comparable.
	A, B measure.Estimate
	// Why it is not comparable; else empty.
	Why string
	measure.Difference
	// ErrorsA and ErrorsB are the shares of requests that failed, NaN where none counts.
	ErrorsA, ErrorsB float64
	// Past the margin: slower beyond noise, and by more than may be.
	Past bool
}

// failing says that the verdict is on failed requests.
func (c Cell) failing() bool { return c.Verdict == measure.MoreErrors }

// Runs compares the cells that both runs have, matched by their ID.
func Runs(a, b Side, o Options, rng *rand.Rand) Comparison {
	c := Comparison{A: a.Name, B: b.Name, Options: o, Differing: differing(a, b)}
	inB := map[string]report.Result{}
	for _, r := range b.Results {
		inB[r.Cell.ID()] = r
	}
	var both []report.Result
	for _, r := range a.Results {
		if _, ok := inB[r.Cell.ID()]; ok {
			both = append(both, r)
		} else {
			c.OnlyA = append(c.OnlyA, r.Cell.String())
		}
	}
	inA := map[string]bool{}
	for i, label := range report.Labels(both) {
		id := both[i].Cell.ID()
		inA[id] = true
		c.Cells = append(c.Cells, cellOf(id, label, both[i], inB[id]))
	}
	for _, r := range b.Results {
		if !inA[r.Cell.ID()] {
			c.OnlyB = append(c.OnlyB, r.Cell.String())
		}
	}
	c.judge(both, inB, rng)
	c.failures(both, inB, rng)
	return c
}

func cellOf(id, label string, a, b report.Result) Cell {
	c := Cell{ID: id, Label: label, A: a.Median, B: b.Median, ErrorsA: errorShare(a), ErrorsB: errorShare(b)}
	for _, side := range []struct {
		name string
		report.Result
	}{{"A", a}, {"B", b}} {
		word := side.Missing()
		switch {
		case c.Why != "":
		case word != "":
			c.Why = word + " in " + side.name
		case side.Values == nil || side.Values.Len() == 0:
			c.Why = "no samples in " + side.name
		}
	}
	if c.Why != "" {
		c.Verdict = NotComparable
	}
	return c
}

// errorShare is that of a cell that counts, else NaN.
func errorShare(r report.Result) float64 {
	if r.Rejected != "" || r.Lacks != "" || r.Summary.Requests == 0 {
		return math.NaN()
	}
	return r.Summary.ErrorShare()
}

// failures finds the cells of which requests fail in B that were answered in A: all of
// them, or more than chance explains, likewise as one family. A verdict on the times of
// the rest gives way to that.
func (c *Comparison) failures(a []report.Result, b map[string]report.Result, rng *rand.Rand) {
	tests := 0
	for _, cell := range c.Cells {
		if !math.IsNaN(cell.ErrorsA + cell.ErrorsB) {
			tests++
		}
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		if !(cell.ErrorsB > cell.ErrorsA) { // either may be NaN
			continue
		}
		none := cell.ErrorsB == 1 // and some in A
		if none || measure.FailsMore(a[i].PerRepetition, b[cell.ID].PerRepetition, tests, c.Rule, rng) {
			cell.Verdict = measure.MoreErrors
		}
	}
}

// judge has lab/measure say which of the comparable cells differ, all of them
// as one family.
func (c *Comparison) judge(a []report.Result, b map[string]report.Result, rng *rand.Rand) {
	var pairs []measure.Pair
	var places []int
	for i, cell := range c.Cells {
		if cell.Why == "" {
			pairs, places = append(pairs, measure.Pair{A: a[i].Values, B: b[cell.ID].Values}), append(places, i)
		}
	}
	for i, d := range measure.Compare(pairs, c.Rule, rng) {
		cell := &c.Cells[places[i]]
		cell.Difference = d
		cell.Past = d.Verdict == measure.Slower && d.Ratio.Value > 1+c.Margin
		if d.Verdict == NotComparable {
			cell.Why = whyNoRatio
		}
	}
}

// Slower are the cells that are slower past the margin.
func (c Comparison) Slower() []Cell {
	return slices.DeleteFunc(slices.Clone(c.Cells), func(cell Cell) bool { return !cell.Past })
}

// Failing are the cells of which more requests fail.
func (c Comparison) Failing() []Cell {
	return slices.DeleteFunc(slices.Clone(c.Cells), func(cell Cell) bool { return !cell.failing() })
}

// none stands for a whole that a run has nothing of.
const none = "none"

// differing lists what is known of both runs and is not the same, and what is
// known of one alone. What is of a run alone, such as its seed, always differs. Of a
// whole that one run has nothing of, the parts are counted and not named.
func differing(a, b Side) []Differing {
	allA, allB := facts(a), facts(b)
	ofA, onlyA := parted(allA, allB)
	ofB, onlyB := parted(allB, allA)
	var all []Differing
	for _, f := range ofA {
		if other := valueOf(ofB, f.Name); other != f.Value {
			all = append(all, Differing{f.Name, f.Value, other})
		}
	}
	for _, f := range ofB {
		if f.Value != "" && !slices.ContainsFunc(ofA, func(g report.Fact) bool { return g.Name == f.Name }) {
			all = append(all, Differing{What: f.Name, B: f.Value})
		}
	}
	for _, f := range onlyA {
		all = append(all, Differing{f.Name, f.Value, none})
	}
	for _, f := range onlyB {
		all = append(all, Differing{f.Name, none, f.Value})
	}
	return all
}

// parted takes out of a run's facts the wholes that the other has nothing of, each
// with the number of its parts.
func parted(of, other []report.Fact) (rest, alone []report.Fact) {
	parts := map[string]int{}
	for _, f := range of {
		switch {
		case f.Of == "" || slices.ContainsFunc(other, func(g report.Fact) bool { return g.Of == f.Of }):
			rest = append(rest, f)
		case f.Name == f.Of:
			alone = append(alone, f)
		default:
			parts[f.Of]++
		}
	}
	for i, f := range alone {
		alone[i].Value = f.Value + " and " + counted(parts[f.Of], "program") + " of it"
	}
	return rest, alone
}

func facts(s Side) []report.Fact {
	p := s.Provenance
	lasting := slices.DeleteFunc(slices.Clone(p.Facts), func(f report.Fact) bool { return f.OfRun })
	return append([]report.Fact{
		{Name: "experiment", Value: s.Experiment.Name},
		{Name: factSubstrate, Value: cmp.Or(s.Experiment.Substrate, experiment.SubstrateHosts)},
		{Name: "skerry", Value: strings.TrimSpace(p.Version + " " + p.Commit)},
		{Name: "kernel", Value: p.Kernel},
		{Name: "processor", Value: p.Processor},
		{Name: "cores", Value: strconv.Itoa(p.Cores)},
		{Name: "links by", Value: p.Backend},
		{Name: "congestion control", Value: s.Experiment.Topology.CongestionControl()},
		{Name: "repetitions", Value: strconv.Itoa(s.Experiment.Repetitions)},
	}, lasting...)
}

func valueOf(facts []report.Fact, name string) string {
	i := slices.IndexFunc(facts, func(f report.Fact) bool { return f.Name == name })
	if i < 0 {
		return ""
	}
	return facts[i].Value
}

// verdicts in the order in which they are told.
func verdicts() []measure.Verdict {
	return []measure.Verdict{measure.Same, measure.MoreErrors, measure.Slower, measure.Faster, measure.TooFew, NotComparable}
}

// Summary is the comparison in a paragraph, a sentence each.
func (c Comparison) Summary() []string {
	if len(c.Cells) == 0 {
		return []string{"The runs have no cell in common."}
	}
	var parts []string
	for _, v := range verdicts() {
		n := 0
		for _, cell := range c.Cells {
			if cell.Verdict == v {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+string(v))
		}
	}
	sentences := []string{counted(len(c.Cells), "cell") + " in both runs: " + strings.Join(parts, ", ") + "."}
	if past := c.Slower(); len(past) > 0 {
		worst := slices.MaxFunc(past, func(a, b Cell) int { return cmp.Compare(a.Ratio.Value, b.Ratio.Value) })
		sentences = append(sentences, counted(len(past), "cell")+" slower by more than "+quantity.Fraction(c.Margin).String()+
			", most of all "+worst.Label+": "+change(worst.Ratio.Value)+".")
	}
	if failing := c.Failing(); len(failing) > 0 {
		worst := slices.MaxFunc(failing, func(a, b Cell) int { return cmp.Compare(a.ErrorsB-a.ErrorsA, b.ErrorsB-b.ErrorsA) })
		sentences = append(sentences, counted(len(failing), "cell")+" with more errors, most of all "+worst.Label+": "+errorsOf(worst)+".")
	}
	if text := c.added(); text != "" {
		sentences = append(sentences, text)
	}
	if n := len(c.OnlyA) + len(c.OnlyB); n > 0 {
		sentences = append(sentences, counted(n, "cell")+" in one run alone.")
	}
	return sentences
}

// added says what the substrate of B adds to a request, where it is another than A's:
// the least and the most of the cells.
func (c Comparison) added() string {
	i := slices.IndexFunc(c.Differing, func(d Differing) bool { return d.What == factSubstrate })
	var apart, jitter []float64
	for _, cell := range c.Cells {
		if cell.Why == "" {
			apart, jitter = append(apart, cell.Apart.Value), append(jitter, cell.Jitter.Value)
		}
	}
	if i < 0 || len(apart) == 0 {
		return ""
	}
	return c.Differing[i].B + " in place of " + c.Differing[i].A + ": " + rangeOf(apart) + " at the median, " +
		rangeOf(jitter) + " between the quartiles."
}

// rangeOf times in ns is "+87 to +143 µs".
func rangeOf(ns []float64) string {
	least, most := whole(slices.Min(ns)), whole(slices.Max(ns))
	if least != most {
		least += " to " + most
	}
	return least + " µs"
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
