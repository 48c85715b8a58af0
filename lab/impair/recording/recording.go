// Package recording reads delays that were measured, so that a link can have their
// distribution: files of milliseconds, and the tables of iproute2. It draws
// nothing: impair.Table is what the back ends draw from. Start at Open; Read is
// pure.
package recording

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/textfile"
)

// valuesMax bounds a recording.
const valuesMax = 1_000_000

// Column of a CSV file that has the delays, in milliseconds.
const Column = "delay_ms"

// tableSuffix names the tables of iproute2, whose values are in 1/8192 of the
// jitter, as 16-bit numbers.
const (
	tableSuffix = ".dist"
	tableScale  = 8192
)

// Recording is a distribution of delays that was measured.
type Recording struct {
	// Mean and Deviation of the delays; both are 0 of a table of iproute2, which
	// has no delays of its own.
	Mean, Deviation quantity.Duration
	Table           *impair.Table
}

// Open reads the recording in a file.
func Open(name string) (Recording, error) {
	data, err := textfile.Read(name)
	if err != nil {
		return Recording{}, fmt.Errorf("read distribution: %w", err)
	}
	r, err := Read(name, data)
	if err != nil {
		return Recording{}, fmt.Errorf("distribution %s: %w", name, err)
	}
	return r, nil
}

// Kept are recordings that were read.
type Kept = textfile.Kept[Recording]

// Fill has each stage whose distribution is a file take its table from it, unless
// it has one.
func Fill(stages impair.Stages) error { return FillFrom(Kept{}.Next(), stages) }

// FillFrom is Fill that reads no file of which the recording was kept.
func FillFrom(kept Kept, stages impair.Stages) error {
	for k := range stages {
		i := &stages[k]
		if !i.Distribution.IsFile() || i.Table != nil {
			continue
		}
		r, err := kept.Open(string(i.Distribution), Open)
		if err == nil {
			err = r.Apply(i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Apply has the jitter of an impairment follow the recording: centred on its delay
// and scaled to its jitter or, where it has no jitter, as the delays were, on top of
// its delay. Then their mean and their standard deviation become part of what is
// asked. The error is an *impair.Error.
func (r Recording) Apply(i *impair.Impairment) error {
	switch {
	case i.Jitter > 0:
	case r.Deviation == 0:
		return &impair.Error{
			Field: "distribution", Message: "a table of iproute2 has no delays of its own", Hint: "set delay and jitter as well",
		}
	default:
		i.Delay += r.Mean
		i.Jitter = r.Deviation
	}
	i.Table = r.Table
	return i.Check()
}

// Read reads a recording by the name of its file. One that ends in .dist is a
// table of iproute2. In any other a line holds a delay in ms, or the first line is
// the header of a CSV file with a column delay_ms. Empty lines and lines that begin
// with # say nothing. Errors are a *textfile.Error.
func Read(name string, data []byte) (Recording, error) {
	if filepath.Ext(name) == tableSuffix {
		return readTable(data)
	}
	values, err := readDelays(data)
	if err != nil {
		return Recording{}, err
	}
	table, mean, deviation, err := impair.NewTable(values)
	r := Recording{Mean: milliseconds(mean), Deviation: milliseconds(deviation), Table: table}
	if err != nil || r.Deviation == 0 {
		return Recording{}, textfile.Wrong(0, "record delays that vary", "%d delays make no distribution", len(values))
	}
	return r, nil
}

func milliseconds(v float64) quantity.Duration { return quantity.Duration(math.Round(v * 1e6)) }

// readTable reads the numbers of a table of iproute2, several to a line.
func readTable(data []byte) (Recording, error) {
	var values []float64
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		if strings.HasPrefix(text, "#") {
			continue
		}
		for _, field := range strings.Fields(text) {
			v, err := strconv.ParseInt(field, 10, 16)
			if err != nil {
				return Recording{}, textfile.Wrong(line, "a table of iproute2 holds numbers of 16 bits", "%.40q is no value", field)
			}
			if len(values) == valuesMax {
				return Recording{}, textfile.Wrong(line, "cut it", "there are more than %d values", valuesMax)
			}
			values = append(values, float64(v)/tableScale)
		}
	}
	table, err := impair.ScaledTable(values)
	if err != nil {
		return Recording{}, textfile.Wrong(0, "take one that varies", "%d values make no distribution", len(values))
	}
	return Recording{Table: table}, nil
}

// readDelays reads the column of delays, in ms.
func readDelays(data []byte) ([]float64, error) {
	lines := csv.NewReader(bytes.NewReader(data))
	lines.Comment, lines.FieldsPerRecord, lines.ReuseRecord = '#', -1, true
	var values []float64
	column, begun := 0, false
	for {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if broken, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, textfile.Wrong(broken.Line, "write a number to a line, or CSV", "%v", broken.Err)
		}
		line, _ := lines.FieldPos(0)
		if len(record) == 1 && strings.TrimSpace(record[0]) == "" {
			continue
		}
		first := !begun
		begun = true
		if first {
			if named, ok := columnOf(record); ok {
				column = named
				continue
			}
			if len(record) > 1 {
				return nil, textfile.Wrong(line, "begin with a header that names it "+Column, "none of %d columns is known to be the delay", len(record))
			}
		}
		if len(values) == valuesMax {
			return nil, textfile.Wrong(line, "cut it", "there are more than %d delays", valuesMax)
		}
		v, err := delayIn(record, column)
		if err != nil {
			return nil, textfile.Wrong(line, "write milliseconds, 0 to 60000", "%v", err)
		}
		values = append(values, v)
	}
}

// columnOf a header has the delays.
func columnOf(header []string) (column int, ok bool) {
	for i, name := range header {
		if strings.TrimSpace(name) == Column {
			return i, true
		}
	}
	return 0, false
}

func delayIn(record []string, column int) (float64, error) {
	if column >= len(record) {
		return 0, fmt.Errorf("the column %s is missing", Column)
	}
	text := strings.TrimSpace(record[column])
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= float64(impair.DelayMax)/1e6) { // NaN too
		return 0, fmt.Errorf("%.40q is no delay", text)
	}
	return v, nil
}
