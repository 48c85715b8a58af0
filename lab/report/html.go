package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
)

//go:embed page
var pageFiles embed.FS

// HTML writes the result as one page that needs nothing else: style and
// figures are inside, there is no script and no reference to another file. Of
// the figures it holds the first panelsMax, of long tables of evidence the first
// rowsMax rows, and says so.
func HTML(w io.Writer, in Input) error {
	page, err := template.ParseFS(pageFiles, "page/*.html")
	if err != nil {
		return fmt.Errorf("parse the page's templates: %w", err)
	}
	v := viewOf(in)
	for _, s := range v.sections() {
		if !s.shown {
			continue
		}
		var body bytes.Buffer
		if err := page.ExecuteTemplate(&body, s.ID+".html", v); err != nil {
			return fmt.Errorf("write section %s: %w", s.ID, err)
		}
		s.Body = template.HTML(body.String())
		v.Sections = append(v.Sections, s)
	}
	return page.ExecuteTemplate(w, "page.html", v)
}

// Style is the style of the lab's pages.
func Style() (template.CSS, error) {
	css, err := pageFiles.ReadFile("page/page.css")
	return template.CSS(css), err
}

// Bounds of a page.
const (
	panelsMax     = 60
	panelBytesMax = 3_500_000
	rowsMax       = 400
	// rowsOpen is how many rows of evidence a reader takes in at once: a longer
	// table is closed at first.
	rowsOpen = 12
)

// view is Input as the templates show it.
type view struct {
	Name, Description string
	// Summary is the whole run in a paragraph.
	Summary  []string
	Results  resultsView
	Claims   []claimView
	Verdicts []verdictView
	Evidence evidence
	About    about
	// Figures by kind.
	Figures  map[Kind]*figureGroup
	Sections []section
}

// section of the page; its template has the name of its ID.
type section struct {
	ID, Title string
	Body      template.HTML
	shown     bool
}

// sections are all that a page can have, in order.
func (v view) sections() []section {
	e := v.Evidence
	drawn := func(kinds ...Kind) bool {
		for _, k := range kinds {
			if v.Figures[k] != nil {
				return true
			}
		}
		return false
	}
	return []section{
		{ID: "verdicts", Title: "Claims and objectives", shown: len(v.Claims)+len(v.Verdicts) > 0},
		{ID: "results", Title: "Response times", shown: true},
		{ID: "figures", Title: "Figures", shown: drawn(KindLimit, KindLines, KindBoxes, KindJitter, KindCDF, KindFirst, KindTimeline)},
		{ID: "links", Title: "Links, proven", shown: len(e.Links.Rows) > 0},
		{ID: "troubles", Title: "Rejected and failed", shown: len(e.Troubles) > 0},
		{ID: "events", Title: "Events of the timeline", shown: len(e.Events.Rows) > 0},
		{ID: "oracle", Title: "What physics allows", shown: len(e.Oracle.Rows) > 0},
		{ID: "resources", Title: "Resource use", shown: len(e.Uses.Rows)+len(e.Scales.Rows) > 0},
		{ID: "hops", Title: "The way of a request", shown: drawn(KindHops)},
		{ID: "run", Title: "What was run", shown: true},
		{ID: "reading", Title: "How to read this", shown: true},
		{ID: "redraw", Title: "How to redraw this", shown: true},
	}
}

// Style is the page's.
func (v view) Style() (template.CSS, error) { return Style() }

// Figure is the group of a kind, or nothing.
func (v view) Figure(kind string) *figureGroup { return v.Figures[Kind(kind)] }

// resultsView is the main table.
type resultsView struct {
	// Heads are the factors, with the width of their levels in characters.
	Heads []headView
	Rows  []row
	// Repeated says that some cell has several repetitions.
	Repeated, Limited, Rated bool
	Marks                    []string
}

type headView struct {
	Name  string
	Width int
}

// Cell is a row's levels, each with its width.
func (v resultsView) Cell(r row) []headView {
	cells := make([]headView, len(v.Heads))
	for i, h := range v.Heads {
		cells[i] = headView{Name: r.Levels[i], Width: h.Width}
	}
	return cells
}

// Columns counts the columns of response times: six, and their repetitions.
func (v resultsView) Columns() int {
	if v.Repeated {
		return 7
	}
	return 6
}

// Counts counts the columns about requests.
func (v resultsView) Counts() int {
	if v.Rated {
		return 3
	}
	return 2
}

type figureGroup struct {
	Kind   Kind
	Panels []panel
	// Elsewhere is how many figures of the kind the page has no room for.
	Elsewhere int
}

// panel is a figure in the page.
type panel struct {
	Caption string
	SVG     template.HTML
}

func viewOf(in Input) view {
	varying, _ := split(in.Results)
	heads := append(axes(), varying...)
	all, more := Figures(in)
	v := view{
		Name: in.Experiment.Name, Description: in.Experiment.Description,
		Summary: summaryOf(in),
		Results: resultsOf(in.Results, heads),
		Claims:  claimsOf(in), Verdicts: objectivesOf(in),
		Evidence: evidenceOf(in.Results, heads),
		About:    aboutOf(in, all, more),
		Figures:  groupsOf(all),
	}
	for _, g := range v.Figures {
		v.About.Elsewhere += g.Elsewhere
	}
	return v
}

func resultsOf(results []Result, heads []factor) resultsView {
	v := resultsView{Rows: rows(results, heads), Marks: marksText(results)}
	for i, f := range heads {
		width := len([]rune(f.name))
		for _, r := range v.Rows {
			width = max(width, len([]rune(r.Levels[i])))
		}
		v.Heads = append(v.Heads, headView{f.name, width})
	}
	for i, r := range results {
		v.Repeated = v.Repeated || len(r.PerRepetition) > 1
		v.Limited = v.Limited || v.Rows[i].Share != noFigure
		v.Rated = v.Rated || v.Rows[i].Rate != noFigure
	}
	return v
}

// groupsOf draws the figures that the page has room for.
func groupsOf(all []Figure) map[Kind]*figureGroup {
	groups := map[Kind]*figureGroup{}
	panels, size := 0, 0
	for i, f := range all {
		g := groups[f.Kind]
		if g == nil {
			g = &figureGroup{Kind: f.Kind}
			groups[f.Kind] = g
		}
		if panels == panelsMax || size > panelBytesMax {
			g.Elsewhere++
			continue
		}
		p := panel{Caption: f.Caption, SVG: f.Inline("figure-" + strconv.Itoa(i+1))}
		g.Panels = append(g.Panels, p)
		panels, size = panels+1, size+len(p.SVG)
	}
	return groups
}
