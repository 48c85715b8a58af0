package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ANSI sequences of a colour terminal.
const (
	ansiBold   = "\x1b[1m"
	ansiYellow = "\x1b[33m"
	ansiReset  = "\x1b[0m"
)

// Table writes the result as a table for a terminal, followed by what to
// distrust and by the verdicts. Times are milliseconds. With colour it
// highlights by ANSI sequences: pass it only where w is a terminal.
func Table(w io.Writer, in Input, colour bool) error {
	varying, shared := split(in.Results)
	heads := append(axes(), varying...)
	t := terminal{colour: colour}
	t.line(ansiBold, in.Experiment.Name+": response time in ms, median with its 95% interval")
	if len(in.Results) == 0 {
		t.line("", "no cell was run")
	} else {
		if all := phrase(shared, in.Results[0].Cell); all != "" {
			t.line("", "all cells: "+all)
		}
		t.line("", "")
		t.grid(gridOf(heads, rows(in.Results, heads)))
		t.distrust(in.Results, heads)
	}
	t.verdicts(in.Verdicts)
	_, err := w.Write(t.out.Bytes())
	return err
}

// grid is a table before alignment. Columns from numbersFrom on hold numbers
// and end at the right.
type grid struct {
	header      []string
	lines       []gridLine
	numbersFrom int
}

type gridLine struct {
	cells  []string
	marked bool
}

func gridOf(heads []factor, rows []row) grid {
	g := grid{numbersFrom: len(heads)}
	for _, f := range heads {
		g.header = append(g.header, f.name)
	}
	g.header = append(g.header, "median ms", "95% interval ms", "p99 ms", "first ms", "errors", "n")
	for _, r := range rows {
		median := r.Median
		if r.Note != "" {
			median = r.Note
		}
		cells := append(r.Levels[:len(r.Levels):len(r.Levels)], median, r.Interval, r.P99, r.First, r.Errors, r.N)
		g.lines = append(g.lines, gridLine{cells: cells, marked: r.Note != "" || r.Failed})
	}
	return g
}

// terminal gathers lines of text.
type terminal struct {
	out    bytes.Buffer
	colour bool
}

// line writes one line in a style, without control characters: what a server
// answered must not steer the terminal.
func (t *terminal) line(style, s string) {
	s = strings.TrimRightFunc(strings.Map(printable, s), unicode.IsSpace)
	if t.colour && style != "" {
		s = style + s + ansiReset
	}
	t.out.WriteString(s + "\n")
}

func (t *terminal) grid(g grid) {
	widths := make([]int, len(g.header))
	for _, cells := range append([]gridLine{{cells: g.header}}, g.lines...) {
		for i, c := range cells.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	t.line(ansiBold, g.align(g.header, widths))
	for _, l := range g.lines {
		style := ""
		if l.marked {
			style = ansiYellow
		}
		t.line(style, g.align(l.cells, widths))
	}
}

func (g grid) align(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if i < g.numbersFrom {
			b.WriteString(c + pad)
		} else {
			b.WriteString(pad + c)
		}
	}
	return b.String()
}

// distrust lists the rejected cells and the errors.
func (t *terminal) distrust(results []Result, heads []factor) {
	gap := "\n"
	for _, r := range results {
		var what string
		switch {
		case r.Rejected != "":
			what = "rejected: " + r.Rejected
		case r.Summary.Errors > 0:
			what = "errors: " + errorClassesText(r.Summary.ErrorClasses)
		default:
			continue
		}
		t.out.WriteString(gap)
		t.line(ansiYellow, phrase(heads, r.Cell)+": "+what)
		gap = ""
	}
}

func (t *terminal) verdicts(verdicts []Verdict) {
	gap := "\n"
	for _, v := range verdicts {
		word, style := "met", ""
		if !v.Met {
			word, style = "missed", ansiYellow
		}
		t.out.WriteString(gap)
		t.line(style, fmt.Sprintf("objective %s: %s; %s", word, objectiveText(v.Objective), v.Seen))
		gap = ""
	}
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return utf8.RuneError
}
