// Package terminal lays text out for a terminal: lines and tables, in colour
// where one is there. It knows no figure; control characters that come with a
// text never reach the terminal. Start at Text.
package terminal

import (
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style of a line.
type Style string

// Styles, as ANSI sequences of a colour terminal.
const (
	Plain Style = ""
	Bold  Style = "\x1b[1m"
	// Marked is what to distrust or to act on.
	Marked Style = "\x1b[33m"
)

const ansiReset = "\x1b[0m"

// Text gathers lines. The zero value has no colour.
type Text struct {
	// Colour highlights by ANSI sequences: set it only for a terminal.
	Colour bool
	out    bytes.Buffer
}

// Line adds one line, without control characters: what a server answered must
// not steer the terminal.
func (t *Text) Line(style Style, s string) {
	s = strings.TrimRightFunc(strings.Map(printable, s), unicode.IsSpace)
	if t.Colour && style != Plain {
		s = string(style) + s + ansiReset
	}
	t.out.WriteString(s + "\n")
}

// Lines adds lines of one style below an empty one; none adds nothing.
func (t *Text) Lines(style Style, lines []string) {
	if len(lines) > 0 {
		t.Line(Plain, "")
	}
	for _, l := range lines {
		t.Line(style, l)
	}
}

// Table adds a table.
func (t *Text) Table(table Table) {
	widths := make([]int, len(table.Header))
	for _, row := range append([]Row{{Cells: table.Header}}, table.Rows...) {
		for i, c := range row.Cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	t.Line(Bold, table.align(table.Header, widths))
	for _, row := range table.Rows {
		style := Plain
		if row.Marked {
			style = Marked
		}
		t.Line(style, table.align(row.Cells, widths))
	}
}

// WriteTo writes all that was added and forgets it.
func (t *Text) WriteTo(w io.Writer) (int64, error) { return t.out.WriteTo(w) }

// Table is a table before alignment, every row as long as its header. Columns
// from NumbersFrom on hold numbers and end at the right, up to TextFrom, from
// which on they hold words again; 0 stands for none.
type Table struct {
	Header                []string
	Rows                  []Row
	NumbersFrom, TextFrom int
}

// Row of a table; a Marked one stands out in colour.
type Row struct {
	Cells  []string
	Marked bool
}

func (t Table) align(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if i >= t.NumbersFrom && (t.TextFrom == 0 || i < t.TextFrom) {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	return b.String()
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return utf8.RuneError
}
