package strict

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// errorsMax bounds how many errors are collected; the rest only count.
const errorsMax = 20

// Error is one thing that is wrong with a file, and where.
type Error struct {
	File string
	// Line and Column count from 1; columns are characters. A syntax error
	// points at the start of a line's text: the parser reports no column.
	Line, Column int
	Message      string
	// Hint says what to do about it; it may be empty.
	Hint string
}

// Error prints FILE:LINE:COLUMN: MESSAGE, and the hint on a line of its own.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	if e.Hint != "" {
		text += "\nhint: " + e.Hint
	}
	return text
}

// Errors is everything that is wrong with a file, up to a bound.
type Errors struct {
	List []*Error
	// Dropped counts the errors over the bound of 20.
	Dropped int
}

// Add appends an error, or over the bound counts it.
func (e *Errors) Add(err *Error) {
	if len(e.List) == errorsMax {
		e.Dropped++
		return
	}
	e.List = append(e.List, err)
}

// Err is nil where nothing is wrong; otherwise e, in the order of the file.
func (e *Errors) Err() error {
	if len(e.List) == 0 {
		return nil
	}
	slices.SortStableFunc(e.List, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}

// Error prints every error in turn.
func (e *Errors) Error() string {
	var lines []string
	for _, err := range e.List {
		lines = append(lines, err.Error())
	}
	if e.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("and %d more errors", e.Dropped))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the errors one by one.
func (e *Errors) Unwrap() []error {
	list := make([]error, len(e.List))
	for i, err := range e.List {
		list[i] = err
	}
	return list
}

// syntax says in plain words what the parser found, by a part of its message.
var syntax = []struct{ found, message, hint string }{
	{"tab character", "a tab indents this line", "indent with spaces; YAML has no tabs"},
	{"cannot start any token", "a value cannot begin with this character", "put the text in quotes"},
	{"mapping values are not allowed", "a key is not expected here", `check the indentation; put text that holds ": " in quotes`},
	{"expected ',' or ']'", "a list that opens with [ is not closed", "write ] at its end, and commas between its values"},
	{"expected ',' or '}'", "a mapping that opens with { is not closed", "write } at its end, and commas between its keys"},
	{"end of stream", "the file ends inside a quoted text", "close the quotes"},
	{"expected '-' indicator", "a key stands among the values of a list", "begin the line with - or check the indentation"},
	{"did not find expected key", "this line fits neither the list nor the mapping before it", "check the indentation of this line and the next"},
	{"could not find expected ':'", "a key has no colon", "write KEY: VALUE"},
	{"exceeded max depth", "the values are nested too deeply", fmt.Sprintf("%d levels are the most", depthMax)},
	{"unknown anchor", "anchors and aliases are not supported", "write the value out, or put the text in quotes"},
}

var syntaxLine = regexp.MustCompile(`^yaml: (line \d+: )?`)

// syntaxError words an error of the parser and finds its line. The parser's own
// line is at times that of the surrounding value, or one off, or absent.
func syntaxError(file string, data []byte, err error) *Error {
	text := syntaxText(err)
	if anchor, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		anchor, _, _ = strings.Cut(anchor, "'")
		p := placeOf(data, max(bytes.Index(data, []byte("*"+anchor)), 0))
		return worded(&Error{File: file, Line: p.line, Column: p.column, Message: text})
	}
	// The first line that brings the error about: with it, and with every line
	// after it, the parser says the same; without it, nothing or something else.
	lines := bytes.SplitAfter(data, []byte("\n"))
	last := sort.Search(len(lines)-1, func(i int) bool {
		_, _, err := documents(bytes.Join(lines[:i+1], nil))
		return err != nil && syntaxText(err) == text
	})
	line := lines[last]
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	if bytes.ContainsRune(indent, '\t') {
		text = "tab character"
	}
	return worded(&Error{File: file, Line: 1 + last, Column: 1 + len(indent), Message: text})
}

func syntaxText(err error) string {
	text := err.Error()
	return strings.TrimPrefix(text, syntaxLine.FindString(text))
}

func worded(e *Error) *Error {
	for _, s := range syntax {
		if strings.Contains(e.Message, s.found) {
			e.Message, e.Hint = s.message, s.hint
			return e
		}
	}
	e.Message = "this is not YAML: " + e.Message
	e.Hint = "check the indentation, the quotes and the brackets of this line"
	return e
}
