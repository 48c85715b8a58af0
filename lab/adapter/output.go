package adapter

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/sample"
)

// Bounds of what is read.
const (
	rowsMax    = 2e7     // of sample's files
	summaryMax = 1 << 20 // bytes of what a tool prints
)

// OutputError says what of a tool's output is not as that tool writes it.
type OutputError struct {
	Tool string
	// Line from 1, 0 for the output as a whole.
	Line    int
	Message string
}

// Error names the tool and the line.
func (e *OutputError) Error() string {
	if e.Line == 0 {
		return e.Tool + ": " + e.Message
	}
	return fmt.Sprintf("%s: line %d: %s", e.Tool, e.Line, e.Message)
}

// table reads rows of named columns.
type table struct {
	tool string
	rows *csv.Reader
	// columns by name.
	columns map[string]int
	fields  []string
	count   int
	// wrong is the first thing that is, of the row under way.
	wrong *OutputError
}

// openTable reads the header, which must name all that is needed.
func openTable(tool string, r io.Reader, comma rune, needed ...string) (*table, error) {
	t := &table{tool: tool, rows: csv.NewReader(r), columns: map[string]int{}}
	t.rows.Comma, t.rows.ReuseRecord = comma, true
	t.rows.LazyQuotes = comma == '\t' // columns by tabs quote nothing
	header, err := t.rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, &OutputError{tool, 0, "it is empty"}
	}
	if err != nil {
		return nil, t.broken(err)
	}
	for i, name := range header {
		t.columns[strings.TrimPrefix(name, "\ufeff")] = i
	}
	for _, name := range needed {
		if _, ok := t.columns[name]; !ok {
			return nil, &OutputError{tool, 1, fmt.Sprintf("there is no column %s", name)}
		}
	}
	return t, nil
}

// next is false after the last row.
func (t *table) next() (bool, error) {
	if t.wrong != nil {
		return false, t.wrong
	}
	fields, err := t.rows.Read()
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, t.broken(err)
	case t.count == rowsMax:
		return false, &OutputError{t.tool, t.line(), fmt.Sprintf("more than %d rows", int(rowsMax))}
	}
	t.fields = fields
	t.count++
	return true, nil
}

// broken is an error of the reader below.
func (t *table) broken(err error) error {
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return &OutputError{t.tool, wrong.Line, wrong.Err.Error()}
	}
	return fmt.Errorf("%s: %w", t.tool, err)
}

func (t *table) line() int {
	line, _ := t.rows.FieldPos(0)
	return line
}

// fail keeps the first thing that is wrong with a row.
func (t *table) fail(format string, args ...any) {
	if t.wrong == nil {
		t.wrong = &OutputError{t.tool, t.line(), fmt.Sprintf(format, args...)}
	}
}

// text of a column, empty where there is none of the name.
func (t *table) text(column string) string {
	if i, ok := t.columns[column]; ok {
		return t.fields[i]
	}
	return ""
}

// whole is a number of 0 to most.
func (t *table) whole(column string, most int64) int64 {
	v, err := strconv.ParseInt(t.text(column), 10, 64)
	if err != nil || v < 0 || v > most {
		t.fail("%s is %.40q, not a whole number from 0 to %d", column, t.text(column), most)
		return 0
	}
	return v
}

// timesMost bounds the times and moments that are read, so that their sums stay
// within int64: a hundred years in ns.
const timesMost = int64(100 * 365 * 24 * time.Hour)

// length is a time of some unit, not negative, in ns.
func (t *table) length(column string, unit time.Duration) int64 {
	v, err := strconv.ParseFloat(t.text(column), 64)
	ns := math.Round(v * float64(unit))
	if err != nil || !(ns >= 0 && ns <= float64(timesMost)) { // not a number is neither
		t.fail("%s is %.40q, not a time", column, t.text(column))
		return 0
	}
	return int64(ns)
}

// requests are all rows in their order, each as row makes it. The first of a
// connection is the one that dialled, and each where none is kept.
func (t *table) requests(kept bool, row func() sample.Request) ([]sample.Request, error) {
	var rows []sample.Request
	dials := int32(0)
	for {
		more, err := t.next()
		if err != nil {
			return nil, err
		}
		if !more {
			inOrder(rows)
			return rows, nil
		}
		r := row()
		r.Index = 2
		if r.SentNs > r.ScheduledNs || !kept {
			dials++
			r.Connection, r.Index = dials, 1
		}
		rows = append(rows, r)
	}
}

// readFile hands a file of a tool's folder to a reader of it.
func readFile[T any](folder fs.FS, name string, read func(io.Reader) (T, error)) (T, error) {
	f, err := folder.Open(name)
	if err != nil {
		var none T
		return none, fmt.Errorf("what the tool wrote: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read
	return read(f)
}

// counted holds that there are as many rows as requests were asked for.
func counted(tool string, rows []sample.Request, c experiment.Cell) error {
	if want := requests(c); len(rows) != want {
		return &OutputError{tool, 0, fmt.Sprintf("%d rows of %d requests", len(rows), want)}
	}
	return nil
}

// inOrder sorts rows by when they began.
func inOrder(rows []sample.Request) {
	slices.SortStableFunc(rows, func(a, b sample.Request) int { return cmp.Compare(a.ScheduledNs, b.ScheduledNs) })
}

// warm marks the first n rows: those of the tools that count no requests of a
// thread.
func warm(rows []sample.Request, n int) {
	for i := range rows[:min(n, len(rows))] {
		rows[i].Warmup = true
	}
}

// Errors of requests, in the classes of Skerry's own load.
const (
	errorOther  = "error"
	errorMissed = "missed"
)

// counter numbers connections and the requests on each.
type counter struct{ connection, index int32 }

// next request, on a connection of its own or on the last.
func (c *counter) next(fresh bool) (connection, index int32) {
	if fresh || c.connection == 0 {
		c.connection++
		c.index = 0
	}
	c.index++
	return c.connection, c.index
}

// statusError is the error of an answer's status, as Skerry's own load has it.
func statusError(status int32) string {
	if status >= 200 && status <= 299 {
		return ""
	}
	return fmt.Sprintf("status %d", status)
}
