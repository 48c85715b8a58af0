// Package report shows the result of a run: as a table in a terminal (Table),
// as JSON that mirrors it (JSON) and as one self-contained page (HTML). It
// reads no file and no clock and judges nothing: all that it says is in Input.
// Start at Input.
package report

import (
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
)

// Input is a run that has ended, finished or not.
type Input struct {
	Experiment experiment.Experiment
	Provenance Provenance
	// Results, one for each cell, in the order in which to show them.
	Results []Result
	// Verdicts on the experiment's objectives, in file order.
	Verdicts []Verdict
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
}

// Result is what one cell amounts to.
type Result struct {
	Cell experiment.Cell
	// Summary is over the requests of all repetitions together.
	Summary       measure.Summary
	PerRepetition []measure.Summary
	// Links that were impaired, counted over all repetitions.
	Links []Link
	// HopMap is the nodes and links that a request crosses, as lines of text.
	HopMap string
	// Rejected says why the cell's figures cannot be trusted. Where it is not
	// empty the figures are not shown.
	Rejected string
}

// Link is one direction of a link: what was asked of it and what it did.
type Link struct {
	Asked impair.Direction
	Seen  impair.Counters
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
	wordNotRun   = "not run"
	wordNoAnswer = "no answer"
)

// missing is the word for a cell without figures, or empty.
func (r Result) missing() string {
	switch {
	case r.Rejected != "":
		return wordRejected
	case r.Summary.Requests == 0:
		return wordNotRun
	case r.Summary.N == 0:
		return wordNoAnswer
	}
	return ""
}

// seenLoss is the share of packets that the link lost at random.
func (l Link) seenLoss() float64 {
	return float64(l.Seen.Lost) / float64(max(l.Seen.Packets, 1))
}
