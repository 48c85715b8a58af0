package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/mathext"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair/proof"
)

// evidence is what the figures rest on.
type evidence struct {
	Troubles []trouble
	Links    table[linkView]
	Oracle   table[oracleView]
	Uses     table[useView]
	Events   table[eventView]
	Scales   table[scaleView]
	// Proven says whether a link was probed, Notes what the oracle does not know.
	Proven bool
	Notes  []trouble
}

// table is a table that may be too long for the page.
type table[T any] struct {
	Rows []T
	// More rows are not on the page.
	More int
}

func (t *table[T]) add(rows ...T) {
	room := min(rowsMax-len(t.Rows), len(rows))
	t.Rows = append(t.Rows, rows[:room]...)
	t.More += len(rows) - room
}

// Open says whether the table is short enough to be shown at once.
func (t table[T]) Open() bool { return len(t.Rows) <= rowsOpen }

// trouble is something that happened to a cell.
type trouble struct{ Cell, What string }

// linkView is one direction of a link in one cell.
type linkView struct {
	Cell, Name, Asked string
	// Before and After are the delays that the probes saw, in ms.
	Before, After, Rate string
	Loss, Packets       string
	Late, Missed        uint64
	LateMax             string
	Verdict             string
	Good, Bad           bool
}

type oracleView struct {
	Cell, RTT, Serialisation, Service   string
	Limit, Rounds, Expected             string
	Median, Share                       string
	RateMost, Rate                      string
	InFlight, Little, LittleDisagreesBy string
}

// eventView is an event of a timeline; times are in s, but Late in ms.
type eventView struct {
	Cell, What       string
	Repetition       int
	At, Undone, Late string
}

type useView struct{ Cell, Process, Node, CPU, CPUEach, Memory string }

// scaleView is the pods of an autoscaled workload in one repetition.
type scaleView struct {
	Cell       string
	Repetition int
	Pods       string
}

func evidenceOf(results []Result, heads []factor) evidence {
	var e evidence
	decimals := decimalsFor(results)
	for _, r := range results {
		cell := phrase(heads, r.Cell)
		e.Troubles = append(e.Troubles, troublesOf(r, cell)...)
		for _, l := range r.Links {
			v := linkOf(cell, r, l)
			e.Proven = e.Proven || v.Good || v.Bad
			e.Links.add(v)
		}
		if r.Missing() == "" && r.Oracle.Limit > 0 {
			e.Oracle.add(oracleOf(cell, r, decimals))
		}
		for _, n := range r.Oracle.Notes {
			e.Notes = append(e.Notes, trouble{cell, n})
		}
		e.Uses.add(usesOf(cell, r)...)
		e.Events.add(eventsOf(cell, r)...)
		for _, s := range r.Scales {
			e.Scales.add(scaleView{cell, s.Repetition, s.String()})
		}
	}
	return e
}

// troublesOf are reasons to look twice at a cell: it was rejected, a try of a
// repetition was, or requests failed.
func troublesOf(r Result, cell string) []trouble {
	var all []trouble
	if r.Rejected != "" {
		all = append(all, trouble{cell, "rejected: " + r.Rejected})
	}
	if r.Lacks != "" {
		all = append(all, trouble{cell, wordLacks + ": " + r.Lacks})
	}
	for _, t := range r.Proofs {
		if t.Rejected() {
			all = append(all, trouble{cell, fmt.Sprintf("repetition %d, try %d did not count: %s",
				t.Repetition, t.Number, strings.Join(t.Reasons, "; "))})
		}
	}
	if r.Summary.Errors > 0 {
		text := fmt.Sprintf("%s of %s failed: %s", errorsText(r.Summary),
			counted(r.Summary.Requests, "request"), errorClassesText(r.Summary.ErrorClasses))
		all = append(all, trouble{cell, text})
	}
	return all
}

func linkOf(cell string, r Result, l Link) linkView {
	v := linkView{
		Cell: cell, Name: l.label(), Asked: l.Asked.String(),
		Packets: strconv.FormatUint(l.Seen.Packets, 10), Late: l.Seen.Late, Missed: l.Seen.Missed,
		Before: noFigure, After: noFigure, Rate: noFigure, Loss: noFigure, LateMax: noFigure, Verdict: "not probed",
	}
	if l.Seen.Late > 0 {
		v.LateMax = milliseconds(time.Duration(l.Seen.LateMaxNs), 3)
	}
	unknown := false
	var before, after []proof.Probe
	tries, rejected := 0, 0
	for _, t := range r.Proofs {
		d, found := directionOf(t, l)
		if !found {
			continue
		}
		tries++
		unknown = unknown || d.LossUnknown
		if slices.ContainsFunc(t.Reasons, func(reason string) bool { return strings.HasPrefix(reason, d.Label()+": ") }) {
			rejected++
		}
		// Of a cell that counts, those that count are shown.
		if r.Rejected != "" || !t.Rejected() {
			before, after = append(before, d.Before), append(after, d.After)
		}
	}
	if l.Seen.Packets > 0 && !unknown {
		v.Loss = lossText(l.Seen.Lost, l.Seen.Packets)
	}
	if tries == 0 {
		return v
	}
	v.Before, v.After = delayText(before), delayText(after)
	v.Rate = rateShareText(append(before, after...))
	v.Good, v.Verdict = true, "as asked"
	switch {
	case rejected > 0 && r.Rejected != "":
		v.Good, v.Bad, v.Verdict = false, true, fmt.Sprintf("not as asked in %d of %d tries", rejected, tries)
	case rejected == 1:
		v.Verdict = "as asked, after a rejected try"
	case rejected > 1:
		v.Verdict = fmt.Sprintf("as asked, after %d rejected tries", rejected)
	}
	return v
}

// label is the link's name, and from when on it does this.
func (l Link) label() string {
	if l.From == 0 {
		return l.Asked.Name
	}
	return fmt.Sprintf("%s from %s", l.Asked.Name, quantity.Duration(l.From))
}

// directionOf finds a direction by its name, which links write with an arrow, and
// by when it was asked for.
func directionOf(t Try, l Link) (proof.Direction, bool) {
	name := strings.ReplaceAll(l.Asked.Name, " → ", ">")
	i := slices.IndexFunc(t.Directions, func(d proof.Direction) bool { return d.Name == name && d.FromNs == int64(l.From) })
	if i < 0 {
		return proof.Direction{}, false
	}
	return t.Directions[i], true
}

// delayText is the delays of the probes in ms, the least to the greatest.
func delayText(probes []proof.Probe) string {
	var delays []float64
	for _, p := range probes {
		if p.Received > 0 {
			delays = append(delays, float64(p.DelayNs)/1e6)
		}
	}
	return rangeText(delays, 3)
}

// rateShareText is what the bursts showed of what they should have, in per cent.
func rateShareText(probes []proof.Probe) string {
	var shares []float64
	for _, p := range probes {
		if p.RateExpected > 0 {
			shares = append(shares, 100*p.Rate/p.RateExpected)
		}
	}
	if len(shares) == 0 {
		return noFigure
	}
	return rangeText(shares, 1) + "%"
}

func rangeText(values []float64, decimals int) string {
	if len(values) == 0 {
		return noFigure
	}
	low := strconv.FormatFloat(slices.Min(values), 'f', decimals, 64)
	high := strconv.FormatFloat(slices.Max(values), 'f', decimals, 64)
	if low == high {
		return low
	}
	return low + " to " + high
}

// lossText is a share of packets with the range that holds the link's own
// probability in 99 of 100 cases: "0.081% [0.059, 0.11]". A link that duplicates before it
// loses may lose more than enter it, which is no share: it has the counts.
func lossText(lost, packets uint64) string {
	if lost > packets {
		return fmt.Sprintf("%d of %d", lost, packets)
	}
	low, high := lossRange(lost, packets)
	seen := float64(lost) / float64(packets)
	bare := func(share float64) string { return strings.TrimSuffix(percent(share), "%") }
	return fmt.Sprintf("%s [%s, %s]", percent(seen), bare(low), bare(high))
}

// lossRange is the interval of Clopper and Pearson, The Use of Confidence or
// Fiducial Limits (1934), at 99 %.
func lossRange(lost, packets uint64) (low, high float64) {
	const beyond = 0.01 / 2
	k, n := float64(lost), float64(packets)
	high = 1
	if lost > 0 {
		low = mathext.InvRegIncBeta(k, n-k+1, beyond)
	}
	if lost < packets {
		high = mathext.InvRegIncBeta(k+1, n-k, 1-beyond)
	}
	return low, high
}

func oracleOf(cell string, r Result, decimals int) oracleView {
	o, seen := r.Oracle, r.Observed
	out := oracleView{
		Cell: cell, RTT: milliseconds(o.RTT, decimals), Serialisation: milliseconds(o.Serialisation, decimals),
		Service: milliseconds(o.Service, decimals), Limit: milliseconds(o.Limit, decimals),
		Rounds: strconv.Itoa(o.Rounds), Expected: milliseconds(o.Expected, decimals),
		Median: milliseconds(r.Summary.Times.Median, decimals), Share: noFigure, RateMost: noFigure, Rate: noFigure,
		InFlight: noFigure, Little: noFigure, LittleDisagreesBy: noFigure,
	}
	if share, ok := r.shareOfLimit(); ok {
		out.Share = strconv.FormatFloat(100*share, 'f', 1, 64) + "%"
	}
	if o.Rate > 0 {
		out.RateMost = rateText(o.Rate)
	}
	if seen.Rate > 0 {
		out.Rate = rateText(seen.Rate)
	}
	if seen.InFlight > 0 && seen.Little > 0 {
		out.InFlight = strconv.FormatFloat(seen.InFlight, 'f', 2, 64)
		out.Little = strconv.FormatFloat(seen.Little, 'f', 2, 64)
		out.LittleDisagreesBy = strconv.FormatFloat(100*math.Abs(seen.Little/seen.InFlight-1), 'f', 1, 64) + "%"
	}
	return out
}

const mebi = 1 << 20

func usesOf(cell string, r Result) []useView {
	if word := r.Missing(); word != "" && word != wordNoAnswer {
		return nil
	}
	var all []useView
	for _, u := range r.Uses {
		v := useView{
			Cell: cell, Process: u.Name, Node: string(u.Node), CPU: milliseconds(u.CPU, 1), CPUEach: noFigure,
			Memory: strconv.FormatFloat(float64(u.MemoryBytes)/mebi, 'f', 1, 64),
		}
		if each := r.Summary.Requests / max(len(r.PerRepetition), 1); each > 0 {
			v.CPUEach = milliseconds(u.CPU/time.Duration(each), 3)
		}
		all = append(all, v)
	}
	return all
}

func eventsOf(cell string, r Result) (all []eventView) {
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
	for _, e := range r.Events {
		v := eventView{Cell: cell, What: e.what(), Repetition: e.Repetition, At: seconds(e.At), Late: milliseconds(e.Late, 1), Undone: noFigure}
		if e.Undone > 0 {
			v.Undone = seconds(e.Undone)
		}
		all = append(all, v)
	}
	return all
}

// String is "1 pod, 3 from 17.2 s, 4 from 32.0 s".
func (s Scaled) String() string {
	var parts []string
	for i, now := range s.Scale {
		if i == 0 {
			parts = append(parts, counted(now.Pods, "pod"))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d from %.1f s", now.Pods, now.At.Seconds()))
	}
	return strings.Join(parts, ", ")
}
