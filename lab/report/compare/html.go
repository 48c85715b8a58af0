package compare

import (
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"io"
	"strconv"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/report/figure"
)

//go:embed page.html
var pageHTML string

// Bounds of the page's figures.
const (
	forestRowsMax = 20
	forestsMax    = 12
)

// view is a Comparison as the template shows it.
type view struct {
	Comparison
	Style template.CSS
	Rows  []row
	// Forests are the ratios drawn; Undrawn cells have no room.
	Forests []template.HTML
	Undrawn int
}

// Alphas is alpha in per cent.
func (v view) Alphas() string { return quantity.Fraction(v.Alpha).String() }

// Resolutions is the resolution as a time.
func (v view) Resolutions() string { return time.Duration(v.Resolution).String() }

// Margins is the margin in per cent.
func (v view) Margins() string { return quantity.Fraction(v.Margin).String() }

// HTML writes the comparison as one page that needs nothing else and has no
// script.
func HTML(w io.Writer, c Comparison) error {
	page, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("parse the page's template: %w", err)
	}
	v := view{Comparison: c}
	if v.Style, err = report.Style(); err != nil {
		return err
	}
	for _, cell := range c.Cells {
		v.Rows = append(v.Rows, rowOf(cell))
	}
	v.Forests, v.Undrawn = forests(c.Cells)
	return page.Execute(w, v)
}

// forests draws the ratios, some rows to a figure.
func forests(cells []Cell) (drawn []template.HTML, undrawn int) {
	most := min(len(cells), forestRowsMax*forestsMax)
	for from := 0; from < most; from += forestRowsMax {
		f := figure.Comparison{Metric: "median response time, B ÷ A"}
		for _, c := range cells[from:min(from+forestRowsMax, most)] {
			f.Rows = append(f.Rows, ratioOf(c))
		}
		text := figure.Text{Title: "Median response time of B over that of A"}
		drawn = append(drawn, figure.Forest(text, f).Inline("forest-"+strconv.Itoa(len(drawn)+1)))
	}
	return drawn, len(cells) - most
}

func ratioOf(c Cell) figure.Ratio {
	r := figure.Ratio{Name: c.Label, Value: c.Ratio.Value, Low: c.Ratio.Low, High: c.Ratio.High, Floor: c.Floor}
	r.Missing = c.Why
	switch c.Verdict {
	case measure.Same:
		r.Verdict = figure.Unchanged
	case measure.Slower, measure.MoreErrors:
		r.Verdict = figure.Worse
	case measure.Faster:
		r.Verdict = figure.Better
	}
	return r
}
