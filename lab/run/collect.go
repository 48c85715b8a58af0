package run

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/oracle"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/sample"
)

// Errors that a caller tells apart.
var (
	ErrNoRun   = errors.New("no run")
	ErrDamaged = errors.New("damaged file of a run")
)

// Collect reads a run directory and makes all figures anew from its samples.
// Repetitions that are missing are missing in the figures, too; a cell with one
// whose every try was rejected is rejected.
func Collect(dir string) (report.Input, error) {
	// Messages name the directory as the caller did.
	record, err := store{dir}.record()
	if err != nil {
		return report.Input{}, err
	}
	input := report.Input{Experiment: *record.Experiment, Provenance: provenance(record)}
	shown := map[string]bool{} // tools
	var figures []claim.Figures
	var claimed []claim.Cell
	for _, cell := range record.Experiment.Cells() {
		c, err := store{dir}.collect(cell, record)
		if err != nil {
			return report.Input{}, err
		}
		if len(c.command) > 0 && !shown[cell.Tool] {
			shown[cell.Tool] = true
			fact := report.Fact{Name: cell.Tool + ", first cell", Value: strings.Join(c.command, " "), OfRun: true}
			input.Provenance.Facts = append(input.Provenance.Facts, fact)
		}
		result := c.result()
		input.Results = append(input.Results, result)
		claimed = append(claimed, claimedOf(result, c.pooled))
		judged := claim.Figures{Cell: cell}
		if result.Rejected == "" {
			judged.Summary = result.Summary
		}
		figures = append(figures, judged)
	}
	for _, o := range record.Experiment.Objectives {
		v, err := claim.Objective(o, figures)
		if err != nil {
			return report.Input{}, err
		}
		input.Verdicts = append(input.Verdicts, report.Verdict{Objective: o, Met: v.Met, Seen: v.Seen})
	}
	input.Claims, err = claim.Judge(record.Experiment.Claims, claimed)
	return input, err
}

// claimedOf is a cell as claims look at it.
func claimedOf(r report.Result, p measure.Pooled) claim.Cell {
	c := claim.Cell{
		Cell: r.Cell, RTT: r.Cell.Scenario.RTT(r.HopMap), Limit: r.Oracle.Limit, Repetitions: p.Each, Rates: p.Rates,
		Values: p.Values, First: p.First, Jitter: p.Jitter, Missing: r.Rejected, Lacks: r.Lacks,
	}
	switch {
	case c.Missing != "":
	case r.Summary.Requests == 0:
		c.Missing = "not run"
	case r.Total:
		c.Missing = r.Cell.Tool + " keeps no requests, and its total cannot be resampled"
	}
	return c
}

func provenance(r Record) report.Provenance {
	p := report.Provenance{
		Started: r.Began, Version: r.Machine.Version, Kernel: r.Machine.Kernel, Processor: r.Machine.CPU,
		Cores: r.Machine.Cores, Seed: r.Seed, Commit: r.Machine.Commit, Backend: r.Links.Backend, Facts: r.facts(),
	}
	if !r.Ended.IsZero() {
		p.Took = r.Ended.Sub(r.Began)
	}
	return p
}

// collection is what the repetitions of a cell hold, one after the other: the
// rows of only one are in memory at a time.
type collection struct {
	cell       experiment.Cell
	congestion string
	lacks      string
	hops       experiment.HopMap
	gathered   []*measure.Gathered
	pooled     measure.Pooled
	// totals are of a tool that keeps no requests, command is its first.
	totals   []sample.Summary
	command  []string
	observed []oracle.Observed
	// notes say in which repetition the figures contradict one another.
	notes    []string
	course   report.Course
	counters map[string]impair.Counters
	tries    []report.Try
	rejected []string
	report.Resources
}

// collect reads all tries of a cell's repetitions.
func (s store) collect(cell experiment.Cell, record Record) (*collection, error) {
	c := &collection{
		cell: cell, congestion: record.Experiment.Topology.CongestionControl(),
		lacks: record.NotRunnable[cell.ID()], counters: map[string]impair.Counters{},
	}
	c.Entries = entriesOf(cell, record.Experiment.Topology.Entries)
	for n := 1; n <= record.Experiment.Repetitions; n++ {
		turn := Turn{Cell: cell, Repetition: n}
		tries, err := s.tries(turn)
		if err != nil {
			return nil, err
		}
		for _, try := range tries {
			c.tries = append(c.tries, report.Try{Repetition: n, Number: try.Try, Proof: try.Proof})
		}
		switch {
		case len(tries) == 0:
		case tries[len(tries)-1].Proof.Rejected():
			if s.done(turn) { // else it goes on
				c.reject(n, tries[len(tries)-1])
			}
		default:
			requests, err := readSamples(filepath.Join(s.turnDir(turn), samplesFile))
			if err != nil {
				return nil, err
			}
			c.add(tries[len(tries)-1], requests)
		}
	}
	c.pooled = measure.Pool(c.gathered)
	c.gathered = nil
	if len(c.totals) > 0 {
		c.pooled = measure.Totals(c.totals)
	}
	return c, nil
}

// reject notes a repetition that none of its tries has proven.
func (c *collection) reject(n int, last Repetition) {
	c.rejected = append(c.rejected, fmt.Sprintf("repetition %d, %d tries: %s", n, last.Try, last.Proof.Reasons[0]))
}

// add takes a repetition that counts: not one that was imported without requests.
func (c *collection) add(r Repetition, requests []sample.Request) {
	if r.Total == nil && len(requests) == 0 {
		return
	}
	if len(c.observed) == 0 {
		c.hops, c.command = c.cell.Scenario.HopMap(r.Path), r.Command
		c.hops.Within = r.Within
	}
	if r.Total != nil {
		c.addTotal(*r.Total, requests)
	} else {
		c.addRequests(r, requests)
	}
	for _, d := range r.Proof.Directions {
		c.counters[d.Label()] = c.counters[d.Label()].Plus(d.Seen)
	}
	if r.Heard != nil {
		c.hear(r)
	}
	for _, d := range r.Deaths {
		if d.By == "" || r.Repetition == 1 { // what was asked for is told once
			c.notes = append(c.notes, fmt.Sprintf("repetition %d: %s", r.Repetition, d))
		}
	}
	for _, e := range r.Changes {
		c.course.Events = append(c.course.Events, report.Event{
			Repetition: r.Repetition, Fault: e.Fault, At: time.Duration(e.AtNs), Late: time.Duration(e.LateNs), Undone: time.Duration(e.UndoneNs),
		})
	}
	for _, use := range r.Uses {
		c.use(use)
	}
	c.scale(r)
}

// hear notes what became of timed packets that did not arrive once, in order: of the lost
// the samples tell.
func (c *collection) hear(r Repetition) {
	for _, odd := range []struct {
		n    int
		what string
	}{
		{r.Heard.Duplicates, "arrived more than once"}, {r.Heard.Reordered, "arrived after a later one"},
		{r.Heard.Strays, "were none of the talkers'"}, {r.Heard.Overflowed, "were lost to the listener's own full buffer"},
	} {
		if odd.n > 0 {
			c.notes = append(c.notes, fmt.Sprintf("repetition %d: %d packets %s", r.Repetition, odd.n, odd.what))
		}
	}
}

// scale adds how an autoscaled workload was scaled in one repetition.
func (c *collection) scale(r Repetition) {
	if len(r.Scale) == 0 {
		return
	}
	if len(c.Scales) == 0 {
		c.notes = append(c.notes, "pods that an autoscaler adds at other nodes are further away than the way of a request says")
	}
	scaled := report.Scaled{Repetition: r.Repetition}
	for _, s := range r.Scale {
		scaled.Scale = append(scaled.Scale, report.Scale{At: time.Duration(s.AtNs), Pods: s.Pods})
	}
	c.Scales = append(c.Scales, scaled)
}

// gather keeps what counts of the requests of a repetition.
func gather(cell experiment.Cell, requests []sample.Request) *measure.Gathered {
	g := measure.Gather(requests)
	if cell.Rate > 0 && !cell.OneWay() {
		g.OpenLoop()
	}
	return g
}

// addRequests takes requests whose beginnings are known.
func (c *collection) addRequests(r Repetition, requests []sample.Request) {
	if len(c.gathered) == 0 {
		c.course.Timelines = measure.Timelines(requests)
	}
	g := gather(c.cell, requests)
	observed := oracle.Observe(requests)
	threads := c.cell.Threads
	switch {
	case c.cell.Rate > 0:
		if c.cell.OneWay() {
			g.ByPacket(requests)
		}
		threads = 0 // an open loop keeps no number of requests under way
	case c.cell.Timed():
		g.Within(requests, c.cell.Settle.Std(), c.cell.Duration.Std())
		observed.Rate = g.Rate()
	default:
		g.ByThread(requests)
	}
	c.gathered, c.observed = append(c.gathered, g), append(c.observed, observed)
	c.atEntries(requests, observed.Rate)
	// The times of other tools are too coarse for the law to hold to the digit.
	if text := observed.Contradiction(threads); text != "" && c.cell.Tool == "" {
		c.notes = append(c.notes, fmt.Sprintf("repetition %d: %s", r.Repetition, text))
	}
}

// addTotal takes a tool's total, with requests of which it is not known when they
// began, or with none.
func (c *collection) addTotal(total sample.Summary, requests []sample.Request) {
	var observed oracle.Observed
	if total.DurationNs > 0 {
		observed.Rate = float64(total.Requests-total.Errors) / time.Duration(total.DurationNs).Seconds()
	}
	c.observed = append(c.observed, observed)
	if len(requests) == 0 {
		c.totals = append(c.totals, total)
		return
	}
	g := gather(c.cell, requests)
	g.Over(time.Duration(total.DurationNs))
	c.gathered = append(c.gathered, g)
	c.atEntries(requests, observed.Rate)
}

// use adds what a process consumed in one repetition.
func (c *collection) use(u host.Use) {
	for i := range c.Uses {
		if c.Uses[i].Name == u.Name && c.Uses[i].Node == u.Node {
			c.Uses[i].CPU += u.CPU
			c.Uses[i].MemoryBytes = max(c.Uses[i].MemoryBytes, uint64(u.MemoryPeak))
			return
		}
	}
	c.Uses = append(c.Uses, report.Use{Name: u.Name, Node: u.Node, CPU: u.CPU, MemoryBytes: uint64(u.MemoryPeak)})
}

// result is the cell as a report shows it. Its interval is drawn by the cell's
// ID, so that the same samples always have the same.
func (c *collection) result() report.Result {
	digest := fnv.New64a()
	_, _ = io.WriteString(digest, c.cell.ID()) // a hash takes all
	r := report.Result{
		Cell: c.cell, Summary: c.pooled.Summary, PerRepetition: c.pooled.Each, Values: c.pooled.Values,
		Median: c.pooled.Values.Median(rand.New(rand.NewPCG(digest.Sum64(), 0))),
		Course: c.course, Proofs: c.tries, HopMap: c.hops,
		Observed: oracle.Mean(c.observed), Lacks: c.lacks,
		Rejected: strings.Join(c.rejected, "; "), Total: len(c.totals) > 0,
		Resources: c.Resources,
	}
	r.Jitter = c.pooled.Jitter
	if c.hops.Start != "" {
		r.Oracle = oracle.Predict(c.cell, c.hops, c.congestion)
		r.Oracle.Notes = append(r.Oracle.Notes, c.notes...)
	}
	for i := range r.Uses {
		r.Uses[i].CPU /= time.Duration(len(c.observed))
	}
	for i := range r.Entries {
		r.Entries[i].Rate /= max(float64(len(c.observed)), 1)
	}
	for _, p := range c.cell.Scenario.Phases() {
		for _, d := range p.Directions {
			r.Links = append(r.Links, report.Link{
				Asked: impair.Direction{Name: string(d.From + " → " + d.To), Unit: d.Unit, Impairment: d.Impairment, Then: d.Then},
				From:  p.At, Seen: c.counters[proof.Direction{Name: d.Name(), FromNs: int64(p.At)}.Label()],
			})
		}
	}
	return r
}

func readSamples(path string) ([]sample.Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	requests, err := sample.ReadRequests(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return requests, nil
}
