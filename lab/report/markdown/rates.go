package markdown

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry.dev/skerry/lab/report"
)

// Rates are how many requests systems answer a second, case by case.
type Rates struct {
	Systems []string
	Rows    []Row
}

// Row is of one case: for all systems all else is the same.
type Row struct {
	Case string
	// Answered a second, by system; without one that was not run, or was rejected.
	Answered map[string]float64
}

// corner heads the first column, by which RatesIn finds the table; none stands in place
// of a figure, bar between columns.
const (
	corner = "answered a second"
	none   = "–"
	bar    = " | "
)

// RatesOf are those of closed loops that go on for a time, in the order of the results; of
// other loads what is answered says nothing of the system.
func RatesOf(results []report.Result) Rates {
	var rates Rates
	for i, name := range cases(results) {
		r := results[i]
		if !r.Cell.Timed() {
			continue
		}
		if !slices.Contains(rates.Systems, r.Cell.System) {
			rates.Systems = append(rates.Systems, r.Cell.System)
		}
		row := rates.row(name)
		if r.Missing() == "" {
			row.Answered[r.Cell.System] = r.Observed.Rate
		}
	}
	return rates
}

// cases names each result by what differs between them but for the system.
func cases(results []report.Result) []string {
	others := slices.Clone(results)
	for i := range others {
		others[i].Cell.System = ""
	}
	return report.Labels(others)
}

// row is the one of a case, which it adds where there is none.
func (r *Rates) row(name string) *Row {
	i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Case == name })
	if i < 0 {
		i = len(r.Rows)
		r.Rows = append(r.Rows, Row{name, map[string]float64{}})
	}
	return &r.Rows[i]
}

// String is the table in Markdown, whole requests: empty where there is nothing to compare.
func (r Rates) String() string {
	if len(r.Systems) < 2 {
		return ""
	}
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, bar)) }
	line(append([]string{corner}, r.Systems...))
	line(append([]string{"---"}, slices.Repeat([]string{"--:"}, len(r.Systems))...))
	for _, row := range r.Rows {
		cells := []string{row.Case}
		for _, system := range r.Systems {
			cell := none
			if answered, has := row.Answered[system]; has {
				cell = strconv.FormatFloat(answered, 'f', 1, 64)
			}
			cells = append(cells, cell)
		}
		line(cells)
	}
	return b.String()
}

// RatesIn reads what String has written, somewhere in a text.
func RatesIn(text string) (Rates, error) {
	_, table, has := strings.Cut(text, "| "+corner+bar)
	if !has {
		return Rates{}, fmt.Errorf("there is no table %q", corner)
	}
	head, body, _ := strings.Cut(table, "\n")
	rates := Rates{Systems: columns(head)}
	for i, line := range strings.Split(body, "\n") {
		cells := columns(strings.TrimPrefix(line, "| "))
		if i == 0 { // below the head
			continue
		}
		if len(cells) != len(rates.Systems)+1 {
			break
		}
		row := rates.row(cells[0])
		for j, system := range rates.Systems {
			if cells[j+1] == none {
				continue
			}
			answered, err := strconv.ParseFloat(cells[j+1], 64)
			if err != nil {
				return Rates{}, fmt.Errorf("%s, %s: %q is no number of requests a second", row.Case, system, cells[j+1])
			}
			row.Answered[system] = answered
		}
	}
	return rates, nil
}

// columns are the cells of a line whose first bar is taken off.
func columns(line string) []string { return strings.Split(strings.TrimSuffix(line, " |"), bar) }

// Best counts the cases in which a system has answered more than any other, of those which
// it and another have figures of.
func (r Rates) Best(system string) (best, of int) {
	for _, row := range r.Rows {
		own, has := row.Answered[system]
		if !has || len(row.Answered) < 2 {
			continue
		}
		of++
		first := true
		for other, answered := range row.Answered {
			first = first && (other == system || answered < own)
		}
		if first {
			best++
		}
	}
	return best, of
}
