// Package report shows the result of a run: as a table in a terminal (Table),
// as JSON that mirrors it (JSON), as one self-contained page (HTML), as figures
// (Figures) and as CSV (CellsCSV, RequestsCSV). It reads no file and no clock
// and judges nothing: all that it says is in Input. Start at Input.
package report

import (
	"time"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/oracle"
	"skerry.dev/skerry/lab/topology"
)

// Input is a run that has ended, finished or not.
type Input struct {
	Experiment experiment.Experiment
	Provenance Provenance
	// Results, one for each cell, in the order in which to show them.
	Results []Result
	// Verdicts on the experiment's objectives, in file order.
	Verdicts []Verdict
	// Claims as they were judged, in file order.
	Claims []claim.Judgement
}

// Provenance is where and when the results came about. Empty fields are left out.
type Provenance struct {
	Started time.Time
	Took    time.Duration
	// Commit of Skerry's source, and its version.
	Commit, Version string
	// Kernel release and Processor of the machine, with its number of Cores.
	Kernel, Processor string
	Cores             int
	// Seed of the order of cells, of loss and of jitter.
	Seed uint64
	// Backend of the links.
	Backend string
	// Facts are what else may have moved a figure, in the order in which to show
	// them: versions, sysctls, the governor, digests of programs.
	Facts []Fact
}

// Fact about where and when results came about. One of this run alone differs
// from run to run, and explains no difference between two. Of names the whole that it
// is a part of, or is itself, where there is one.
type Fact struct {
	Name, Value string
	OfRun       bool
	Of          string
}

// Result is what one cell amounts to.
type Result struct {
	Cell experiment.Cell
	// Summary is over the requests of all repetitions together.
	Summary       measure.Summary
	PerRepetition []measure.Summary
	// Total says that the figures are those of the load's tool, which keeps no
	// requests: they have no interval.
	Total bool
	// Links that were impaired, counted over all repetitions.
	Links []Link
	// Median of the response times in ns, with the interval of the bootstrap over
	// repetitions; Values are what it was made from.
	Median measure.Estimate
	Values *measure.Repetitions
	Course
	// Proofs of the links, one for each try of a repetition.
	Proofs []Try
	Resources
	Oracle   oracle.Prediction
	Observed oracle.Observed
	// HopMap is the nodes and links that a request crosses.
	HopMap experiment.HopMap
	// Rejected says why the cell's figures cannot be trusted. Where it is not
	// empty the figures are not shown.
	Rejected string
	// Lacks says what the cell needs that the machine has not: it was not run.
	Lacks string
}

// Course is how repetitions of a cell went on.
type Course struct {
	// Jitter of timed packets, in ns.
	Jitter *measure.Repetitions
	// Timelines are response times over the time of repetition 1.
	Timelines []measure.Timeline
	// Events of the scenario's timeline, as they happened in each repetition that counts.
	Events []Event
}

// Event of a timeline that happened; times are counted from the beginning of the load.
type Event struct {
	// Repetition counts from 1.
	Repetition int
	// Fault that began, in the words of the file; empty where links changed.
	Fault string
	// At is when it was asked for, and Late how much later it was in force.
	At, Late time.Duration
	// Undone is when a fault was, 0 where there was nothing to undo.
	Undone time.Duration
}

// what happened, in words.
func (e Event) what() string {
	if e.Fault == "" {
		return "links change"
	}
	return e.Fault
}

// Try is one try of a repetition, which counts unless its proof has reasons.
type Try struct {
	// Repetition and Number count from 1.
	Repetition, Number int
	proof.Proof
}

// Resources are what served a cell.
type Resources struct {
	// Entries at which requests entered, of a cell with a ratio.
	Entries []Entry
	// Uses of resources, by process.
	Uses []Use
	// Scales of an autoscaled workload, one for each repetition.
	Scales []Scaled
}

// Entry is a node at which requests entered, with the threads that called it and its part
// of the answered requests a second, the mean over repetitions.
type Entry struct {
	Node    topology.Ref
	Threads int
	Rate    float64
}

// Scaled is how many pods took requests in a repetition, as that changed.
type Scaled struct {
	Repetition int
	Scale      []Scale
}

// Scale is a number of pods, from a time on that counts from the beginning of the load.
type Scale struct {
	At   time.Duration
	Pods int
}

// Use is what the processes of one name consumed in a repetition.
type Use struct {
	Name string
	Node topology.Ref
	// CPU time, the mean over repetitions.
	CPU time.Duration
	// MemoryBytes at most, in any repetition.
	MemoryBytes uint64
}

// Link is one direction of a link: what was asked of it and what it did.
type Link struct {
	Asked impair.Direction
	// From is when an event put it into force, counted from the beginning of the load.
	From time.Duration
	Seen impair.Counters
}

// Verdict says whether the run met an objective.
type Verdict struct {
	Objective experiment.Objective
	Met       bool
	// Seen is the figure that decided, with its unit and cell.
	Seen string
}

// Words that stand where a cell has no figures.
const (
	wordRejected = "rejected"
	wordLacks    = "not runnable here"
	wordNotRun   = "not run"
	wordNoAnswer = "no answer"
	// wordTotal is for what needs requests, where a tool keeps none.
	wordTotal = "a total alone"
)

// Missing is the word for a cell without figures: rejected, not run or no answer;
// empty for one that has them.
func (r Result) Missing() string {
	switch {
	case r.Rejected != "":
		return wordRejected
	case r.Lacks != "":
		return wordLacks
	case r.Summary.Requests == 0:
		return wordNotRun
	case r.Summary.N == 0:
		return wordNoAnswer
	}
	return ""
}

// shareOfLimit is how much of the physical limit the median reaches: 1 at the
// limit, which is 0 where the cell's links cost nothing; then there is no share.
func (r Result) shareOfLimit() (share float64, ok bool) {
	if r.Missing() != "" || r.Oracle.Limit <= 0 || r.Summary.Times.Median <= 0 {
		return 0, false
	}
	return float64(r.Oracle.Limit) / float64(r.Summary.Times.Median), true
}

// seenLoss is the share of packets that the link lost at random.
func (l Link) seenLoss() float64 {
	return float64(l.Seen.Lost) / float64(max(l.Seen.Packets, 1))
}
