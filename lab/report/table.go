package report

import (
	"fmt"
	"io"
	"slices"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/report/terminal"
)

// Table writes the result as a table for a terminal, followed by what to
// distrust and by the verdicts. Times are milliseconds. With colour it
// highlights by ANSI sequences: pass it only where w is a terminal.
func Table(w io.Writer, in Input, colour bool) error {
	varying, shared := split(in.Results)
	heads := append(axes(), varying...)
	t := &terminal.Text{Colour: colour}
	t.Line(terminal.Bold, in.Experiment.Name+": response time in ms, median with its 95% interval over repetitions")
	if len(in.Results) == 0 {
		t.Line(terminal.Plain, "no cell was run")
	} else {
		if all := phrase(shared, in.Results[0].Cell); all != "" {
			t.Line(terminal.Plain, "all cells: "+all)
		}
		t.Line(terminal.Plain, "")
		t.Table(tableOf(heads, in.Results))
		t.Lines(terminal.Plain, marksText(in.Results))
		t.Lines(terminal.Marked, distrust(in.Results, heads))
	}
	verdicts(t, in)
	_, err := t.WriteTo(w)
	return err
}

// tableOf has the answered requests a second where loads go on for a time: that many is
// what they have done.
func tableOf(heads []factor, results []Result) terminal.Table {
	t := terminal.Table{NumbersFrom: len(heads)}
	for _, f := range heads {
		t.Header = append(t.Header, f.name)
	}
	timed := slices.ContainsFunc(results, func(r Result) bool { return r.Cell.Timed() })
	t.Header = append(t.Header, "median ms", "95% interval ms", "p99 ms", "first ms")
	if timed {
		t.Header = append(t.Header, "per second")
	}
	t.Header = append(t.Header, "errors", "n")
	for _, r := range rows(results, heads) {
		median := r.Median
		if r.Note != "" {
			median = r.Note
		}
		cells := append(r.Levels[:len(r.Levels):len(r.Levels)], median, r.Interval, r.P99, r.First)
		if timed {
			cells = append(cells, r.Rate)
		}
		cells = append(cells, r.Errors, r.N)
		t.Rows = append(t.Rows, terminal.Row{Cells: cells, Marked: r.Note != "" || r.Failed})
	}
	return t
}

// distrust lists the rejected cells and the errors.
func distrust(results []Result, heads []factor) []string {
	var lines []string
	for _, r := range results {
		switch {
		case r.Rejected != "":
			lines = append(lines, phrase(heads, r.Cell)+": rejected: "+r.Rejected)
		case r.Lacks != "":
			lines = append(lines, phrase(heads, r.Cell)+": "+wordLacks+": "+r.Lacks)
		case r.Summary.Errors > 0:
			lines = append(lines, phrase(heads, r.Cell)+": errors: "+errorClassesText(r.Summary.ErrorClasses))
		}
	}
	return lines
}

// verdicts adds the claims, then the objectives, what failed in colour.
func verdicts(t *terminal.Text, in Input) {
	if len(in.Claims)+len(in.Verdicts) > 0 {
		t.Line(terminal.Plain, "")
	}
	for _, c := range in.Claims {
		style := terminal.Plain
		if c.Result != claim.Holds {
			style = terminal.Marked
		}
		text := fmt.Sprintf("claim %s %s: %s", c.Name, c.Result, c.Statement)
		if c.Effect != "" {
			text += "; " + c.Effect
		}
		t.Line(style, text)
		if c.Why != "" {
			t.Line(style, "  "+c.Why)
		}
	}
	for _, v := range in.Verdicts {
		word, style := "met", terminal.Plain
		if !v.Met {
			word, style = "missed", terminal.Marked
		}
		t.Line(style, fmt.Sprintf("objective %s: %s; %s", word, objectiveText(v.Objective), v.Seen))
	}
}
