package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report/terminal"
)

// Table writes the comparison for a terminal: what else differs, a row for each
// cell, and the cells of one run alone. With colour it highlights by ANSI
// sequences.
func Table(w io.Writer, c Comparison, colour bool) error {
	t := &terminal.Text{Colour: colour}
	t.Line(terminal.Bold, fmt.Sprintf("median response time of B = %s against A = %s", c.B, c.A))
	for _, d := range c.Differing {
		t.Line(terminal.Marked, fmt.Sprintf("differs: %s: %s in A, %s in B", d.What, orUnknown(d.A), orUnknown(d.B)))
	}
	if len(c.Cells) > 0 {
		t.Line(terminal.Plain, "")
		t.Table(tableOf(c.Cells))
	}
	t.Line(terminal.Plain, "")
	for _, s := range c.Summary() {
		t.Line(terminal.Plain, s)
	}
	for _, label := range c.OnlyA {
		t.Line(terminal.Plain, "only in A: "+label)
	}
	for _, label := range c.OnlyB {
		t.Line(terminal.Plain, "only in B: "+label)
	}
	_, err := t.WriteTo(w)
	return err
}

func tableOf(cells []Cell) terminal.Table {
	t := terminal.Table{
		Header:      []string{"cell", "A ms", "B ms", "change", "95% interval", "apart µs", "jitter µs", "errors", "p", "floor", "verdict"},
		NumbersFrom: 1, TextFrom: 10,
	}
	for _, c := range cells {
		r := rowOf(c)
		if r.Past {
			r.Verdict += ", past the margin"
		}
		t.Rows = append(t.Rows, terminal.Row{
			Cells:  []string{r.Label, r.A, r.B, r.Change, r.Interval, r.Apart, r.Jitter, r.Errors, r.P, r.Floor, r.Verdict},
			Marked: c.Verdict == measure.Slower || c.Verdict == NotComparable || c.failing(),
		})
	}
	return t
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

type document struct {
	A     string  `json:"a"`
	B     string  `json:"b"`
	Alpha float64 `json:"alpha"`
	// ResolutionMs is what medians must differ by at least.
	ResolutionMs float64     `json:"resolution_ms"`
	Margin       float64     `json:"margin"`
	Differing    []differs   `json:"differing,omitempty"`
	Cells        []pairOfOne `json:"cells"`
	OnlyA        []string    `json:"only_a,omitempty"`
	OnlyB        []string    `json:"only_b,omitempty"`
}

type differs struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
}

type pairOfOne struct {
	ID      string          `json:"id"`
	Cell    string          `json:"cell"`
	Verdict measure.Verdict `json:"verdict"`
	Past    bool            `json:"past_margin"`
	Why     string          `json:"why,omitempty"`
	Needed  int             `json:"repetitions_needed,omitempty"`
	// ErrorsA and ErrorsB are shares of the requests.
	ErrorsA *float64 `json:"a_errors,omitempty"`
	ErrorsB *float64 `json:"b_errors,omitempty"`
	*figures
}

// figures are absent where they are not known.
type figures struct {
	A        *float64 `json:"a_median_ms,omitempty"`
	B        *float64 `json:"b_median_ms,omitempty"`
	Ratio    *float64 `json:"ratio,omitempty"`
	Low      *float64 `json:"ratio_low,omitempty"`
	High     *float64 `json:"ratio_high,omitempty"`
	Apart    *span    `json:"apart_ms,omitempty"`
	Jitter   *span    `json:"jitter_ms,omitempty"`
	Shift    *float64 `json:"shift_ms,omitempty"`
	Delta    *float64 `json:"cliffs_delta,omitempty"`
	P        *float64 `json:"p,omitempty"`
	Adjusted *float64 `json:"p_adjusted,omitempty"`
	Floor    *float64 `json:"noise_floor,omitempty"`
}

// span is a figure with its 95 % interval.
type span struct {
	Value *float64 `json:"value,omitempty"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// spanOf an estimate in ns is in ms.
func spanOf(e measure.Estimate) *span {
	return &span{known(e.Value / 1e6), known(e.Low / 1e6), known(e.High / 1e6)}
}

// JSON writes the comparison as one object, which mirrors the table.
func JSON(w io.Writer, c Comparison) error {
	out := document{A: c.A, B: c.B, Alpha: c.Alpha, ResolutionMs: c.Resolution / 1e6, Margin: c.Margin, Cells: []pairOfOne{}, OnlyA: c.OnlyA, OnlyB: c.OnlyB}
	for _, d := range c.Differing {
		out.Differing = append(out.Differing, differs(d))
	}
	for _, cell := range c.Cells {
		p := pairOfOne{ID: cell.ID, Cell: cell.Label, Verdict: cell.Verdict, Past: cell.Past, Why: cell.Why, Needed: cell.Needed,
			ErrorsA: known(cell.ErrorsA), ErrorsB: known(cell.ErrorsB)}
		if cell.Why == "" {
			p.figures = &figures{
				A: known(cell.A.Value / 1e6), B: known(cell.B.Value / 1e6),
				Ratio: known(cell.Ratio.Value), Low: known(cell.Ratio.Low), High: known(cell.Ratio.High),
				Apart: spanOf(cell.Apart), Jitter: spanOf(cell.Jitter), Shift: known(cell.Shift / 1e6), Delta: known(cell.Delta), P: known(cell.P), Adjusted: known(cell.Adjusted),
				Floor: known(cell.Floor),
			}
		}
		out.Cells = append(out.Cells, p)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// known is a number that JSON has a word for.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
