// Package figure draws the figures of a report: boxes, distributions, curves,
// a grid of shares, timelines, the way of a request through the lab. Each is a
// pure function from plain data to a Figure, which renders as a part of a page,
// as an SVG document and as PDF. It computes no statistics and decides nothing:
// what a figure shows is in its arguments.
//
// Values that lab/measure made are in ns, as they come from there; a plain
// float64 is in ms unless its doc says otherwise. What is not a finite number
// is not drawn. Names may hold anything: they are escaped, and cut to fit.
//
// Start at Figure, then at one of the functions that return it.
package figure

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Text is what a figure says to those who cannot see it.
type Text struct {
	// Title in a few words, and Description: what there is to see, in sentences.
	// Without a description the figure makes one from its data.
	Title, Description string
}

// Figure is a drawing that has its size and can be rendered any number of
// times, by several goroutines too. The zero Figure is not usable.
type Figure struct {
	text          Text
	width, height vg.Length
	paint         func(pen)
}

// Title of the figure, as it was given.
func (f Figure) Title() string { return f.text.Title }

// Description of the figure in words: as it was given, or made from the data.
func (f Figure) Description() string { return f.text.Description }

// Inline is the figure as a part of a page: an svg element without a size of
// its own, which scales with the box around it, writes and draws in the page's
// text colour and gives title and description to screen readers. id must be
// unique in the page and a valid HTML id.
//
// It is made to be 320 px to 420 px wide: at 320 px its text is 9 pt high.
func (f Figure) Inline(id string) template.HTML {
	id = template.HTMLEscapeString(id)
	head := fmt.Sprintf(`<svg viewBox="0 0 %s %s" role="img" aria-labelledby="%s-title %s-desc" fill="currentColor" font-family="%s">`,
		whole(f.width), whole(f.height), id, id, families)
	return template.HTML(head + f.accessible(id) + f.body() + "</svg>")
}

// WriteSVG writes the figure as an SVG document on white.
func (f Figure) WriteSVG(w io.Writer) error {
	width, height := whole(f.width), whole(f.height)
	_, err := fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%spt" height="%spt" viewBox="0 0 %s %s" role="img" aria-labelledby="figure-title figure-desc" color="#000000" fill="currentColor" font-family="%s">
%s<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, width, height, width, height, families, f.accessible("figure"), f.body())
	if err != nil {
		return fmt.Errorf("write SVG: %w", err)
	}
	return nil
}

// WritePDF writes the figure as a PDF of one page of the figure's size, its
// font embedded. The same figure gives the same bytes. The font has the
// characters of Windows-1252: others become their nearest, or "?".
//
// The first PDF of a process needs a folder for temporary files, where the
// library prepares the font.
func (f Figure) WritePDF(w io.Writer) error {
	out, err := f.pdf()
	if err != nil {
		return fmt.Errorf("draw PDF: %w", err)
	}
	if _, err := w.Write(pdfDate.ReplaceAll(out, []byte("$1(D:20000101000000)"))); err != nil {
		return fmt.Errorf("write PDF: %w", err)
	}
	return nil
}

// pdf is the document as the library makes it, which panics with a text where
// it cannot write a temporary file. Other panics are bugs of ours.
func (f Figure) pdf() (out []byte, err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case string:
			err = errors.New(v)
		default:
			panic(v)
		}
	}()
	c := vgpdf.New(f.width, f.height)
	f.paint(newPen(c, westernOf))
	var b bytes.Buffer
	_, err = c.WriteTo(&b)
	return b.Bytes(), err
}

// pdfDate is when the library made the document. It is replaced by a date of
// the same length, so that the offsets in the file stay right.
var pdfDate = regexp.MustCompile(`(/(?:CreationDate|ModDate) )\(D:\d{14}\)`)

// families have the widths of the font that text was measured with.
const families = "Liberation Sans,Arial,Helvetica,sans-serif"

func (f Figure) accessible(id string) string {
	return fmt.Sprintf(`<title id="%s-title">%s</title><desc id="%s-desc">%s</desc>`,
		id, template.HTMLEscapeString(printable(f.text.Title)), id, template.HTMLEscapeString(printable(f.text.Description)))
}

// body is what the library drew, without the element around it. Its black,
// which it leaves out where it fills, becomes the text colour.
func (f Figure) body() string {
	c := vgsvg.New(f.width, f.height)
	f.paint(newPen(c, printable))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		panic(err) // memory takes every write
	}
	_, body, _ := strings.Cut(out.String(), "<svg")
	_, body, _ = strings.Cut(body, ">")
	body = strings.TrimSuffix(strings.TrimSpace(body), "</svg>")
	return strings.NewReplacer(
		"stroke:#000000", "stroke:currentColor",
		"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "",
	).Replace(body)
}
