package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/report/figure"
	"skerry.dev/skerry/lab/topology"
)

// Kind of figure: what it shows.
type Kind string

// Kinds of figures, in the order in which a page has room for them.
const (
	KindLimit     Kind = "limit"
	KindLines     Kind = "lines"
	KindBoxes     Kind = "boxes"
	KindHops      Kind = "hops"
	KindJitter    Kind = "jitter"
	KindCDF       Kind = "cdf"
	KindFirst     Kind = "first"
	KindResources Kind = "resources"
	KindTimeline  Kind = "timeline"
)

// Figure of a run.
type Figure struct {
	Kind Kind
	// Name is what to call its files: letters, digits and hyphens, unique in the
	// run. The same cells have the same name in every run.
	Name string
	// Caption in a few words: the cells that it shows.
	Caption string
	figure.Figure
}

// Bounds of the figures of a run.
const (
	// FiguresMax bounds the figures of a run: beyond, nobody looks.
	FiguresMax = 200
	// heatRowsMax bounds the rows of one figure of shares.
	heatRowsMax = 24
	nameMax     = 100
)

// Figures are those of a run, kind by kind, at most FiguresMax; more is how many
// there would have been beyond. They are drawn when they are written.
func Figures(in Input) (all []Figure, more int) {
	p := newPlotter(in)
	p.limits()
	p.lines()
	p.distributions()
	p.hopMaps()
	p.timelines()
	order := []Kind{KindLimit, KindLines, KindBoxes, KindJitter, KindHops, KindCDF, KindFirst, KindResources, KindTimeline}
	slices.SortStableFunc(p.figures, func(a, b Figure) int {
		return slices.Index(order, a.Kind) - slices.Index(order, b.Kind)
	})
	more = max(len(p.figures)-FiguresMax, 0)
	return p.figures[:len(p.figures)-more], more
}

// plotter makes the figures of a run.
type plotter struct {
	Input
	systems []string
	// conditions that a caption names: those that differ.
	conditions []factor
	figures    []Figure
	used       map[string]bool
}

func newPlotter(in Input) *plotter {
	varying, _ := split(in.Results)
	return &plotter{Input: in, systems: levelsOf(axes()[1], in.Results), conditions: varying, used: map[string]bool{}}
}

// add keeps a figure under a name that no other has.
func (p *plotter) add(kind Kind, caption string, f figure.Figure) {
	stem := strings.TrimSuffix(string(kind)+"-"+slug(caption), "-")
	name := stem
	for i := 2; p.used[name]; i++ {
		name = fmt.Sprintf("%s-%d", stem, i)
	}
	p.used[name] = true
	p.figures = append(p.figures, Figure{Kind: kind, Name: name, Caption: caption, Figure: f})
}

// slug is a text as a part of a file's name.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	text := strings.Join(words, "-")
	return strings.Trim(text[:min(len(text), nameMax)], "-")
}

func (p *plotter) system(r Result) figure.System {
	return figure.System{Name: r.Cell.System, Index: slices.Index(p.systems, r.Cell.System)}
}

// limits shows what share of the physical limit each cell reaches.
func (p *plotter) limits() {
	rows := slices.DeleteFunc(groupBy(p.Results, p.condition), func(group []Result) bool {
		return !slices.ContainsFunc(group, func(r Result) bool { _, ok := r.shareOfLimit(); return ok })
	})
	parts := (len(rows) + heatRowsMax - 1) / heatRowsMax
	for i := range parts {
		part := rows[i*heatRowsMax : min((i+1)*heatRowsMax, len(rows))]
		caption := "all cells"
		if parts > 1 {
			caption = fmt.Sprintf("part %d of %d", i+1, parts)
		}
		p.add(KindLimit, caption, p.heat(part))
	}
}

func (p *plotter) heat(rows [][]Result) figure.Figure {
	g := figure.Grid{Columns: p.systems}
	for _, group := range rows {
		g.Rows = append(g.Rows, p.condition(group[0]))
		cells := make([]figure.Share, len(p.systems))
		for i := range cells {
			cells[i].Missing = wordNotRun
		}
		for _, r := range group {
			share, ok := r.shareOfLimit()
			cell := figure.Share{Value: share, Missing: r.Missing()}
			if !ok && cell.Missing == "" {
				cell.Missing = "no limit"
			}
			cells[slices.Index(p.systems, r.Cell.System)] = cell
		}
		g.Cells = append(g.Cells, cells)
	}
	return figure.Heat(figure.Text{Title: "Share of the physical limit that the median reaches"}, g)
}

// condition names all that a cell has but its system, the scenario first.
func (p *plotter) condition(r Result) string {
	return phrase(append(axes()[:1], p.conditions...), r.Cell)
}

// lines shows the median along every factor that has several numeric levels.
func (p *plotter) lines() {
	for _, along := range numeric() {
		others := slices.DeleteFunc(slices.Clone(p.conditions), func(f factor) bool { return f.name == along.Name })
		key := func(r Result) string { return phrase(append(axes()[:1], others...), r.Cell) }
		for _, group := range groupBy(p.Results, key) {
			levels := map[float64]bool{}
			for _, r := range group {
				levels[along.number(r.Cell)] = true
			}
			if len(levels) > 1 {
				p.add(KindLines, key(group[0])+" by "+along.Name, p.curves(group, along, key(group[0])))
			}
		}
	}
}

func (p *plotter) curves(group []Result, along measured, condition string) figure.Figure {
	c := figure.Curves{Factor: along.Axis, Metric: figure.Axis{Name: "median response time", Unit: "ms"}}
	least := map[float64]float64{}
	for _, rs := range groupBy(group, func(r Result) string { return r.Cell.System }) {
		curve := figure.Curve{System: p.system(rs[0])}
		for _, r := range rs {
			if r.Missing() != "" {
				continue
			}
			x := along.number(r.Cell)
			level := figure.Level{X: x, Value: inMs(r.Summary.Times.Median)}
			if level.Low, level.High = level.Value, level.Value; hasInterval(r.Median) {
				level.Low, level.High = r.Median.Low/1e6, r.Median.High/1e6
			}
			curve.Levels = append(curve.Levels, level)
			limit := inMs(r.Oracle.Limit)
			if known, ok := least[x]; limit > 0 && (!ok || limit < known) {
				least[x] = limit
			}
		}
		slices.SortFunc(curve.Levels, byX)
		c.Lines = append(c.Lines, curve)
	}
	for x, limit := range least {
		c.Oracle = append(c.Oracle, figure.Level{X: x, Value: limit})
	}
	slices.SortFunc(c.Oracle, byX)
	return figure.Lines(figure.Text{Title: "Median response time in ms by " + along.Name + ": " + condition}, c)
}

func byX(a, b figure.Level) int {
	switch {
	case a.X < b.X:
		return -1
	case a.X > b.X:
		return 1
	}
	return 0
}

// distributions shows, for each condition, the systems beside each other: as
// boxes, as shares of requests, their first requests and what they consumed.
func (p *plotter) distributions() {
	for _, group := range groupBy(p.Results, p.condition) {
		condition := p.condition(group[0])
		p.boxes(group, condition)
		p.jitter(group, condition)
		p.cdf(group, condition)
		p.first(group, condition)
		p.resources(group, condition)
	}
}

func (p *plotter) boxes(group []Result, condition string) {
	boxes := make([]figure.Box, len(group))
	for i, r := range group {
		boxes[i] = figure.Box{
			System: p.system(r), Box: r.Summary.Times.Box, Slowest: r.Summary.Times.Max, Missing: r.Missing(),
		}
		if boxes[i].Missing == "" && r.Total {
			boxes[i].Missing = wordTotal
		}
	}
	p.add(KindBoxes, condition, figure.Boxes(figure.Text{Title: "Response time in ms by system: " + condition}, boxes))
}

// jitter is of timed packets alone.
func (p *plotter) jitter(group []Result, condition string) {
	var boxes []figure.Box
	for _, r := range group {
		if r.Missing() == "" && r.Jitter.Len() > 0 {
			boxes = append(boxes, figure.Box{System: p.system(r), Box: r.Jitter.Pooled().Box()})
		}
	}
	if len(boxes) > 0 {
		p.add(KindJitter, condition, figure.Jitter(figure.Text{Title: "Jitter in ms by system: " + condition}, boxes))
	}
}

func (p *plotter) cdf(group []Result, condition string) {
	var all []figure.Distribution
	for _, r := range group {
		if r.Missing() == "" && r.Values != nil {
			all = append(all, figure.Distribution{System: p.system(r), Values: r.Values.Pooled()})
		}
	}
	if len(all) > 0 {
		title := "Share of requests answered within a time: " + condition
		p.add(KindCDF, condition, figure.CDF(figure.Text{Title: title}, all))
	}
}

// first leaves out new connections, of which every request is the first.
func (p *plotter) first(group []Result, condition string) {
	var all []figure.FirstRequest
	known := false
	for _, r := range group {
		f := figure.FirstRequest{System: p.system(r), Missing: r.Missing(), Later: inMs(r.Summary.Times.Median)}
		for _, one := range r.PerRepetition {
			if one.FirstN > 0 {
				f.First = append(f.First, inMs(one.First))
			}
		}
		if f.Missing == "" && len(f.First) == 0 {
			f.Missing = "no first request"
		}
		known = known || f.Missing == "" && r.Cell.Connection == experiment.ConnectionKept
		all = append(all, f)
	}
	if known {
		title := "First request of a connection, median of each repetition, and later ones: " + condition
		p.add(KindFirst, condition, figure.First(figure.Text{Title: title}, all))
	}
}

func (p *plotter) resources(group []Result, condition string) {
	u := figure.Uses{CPU: "CPU per repetition"}
	for _, r := range group {
		if r.Rejected != "" {
			continue
		}
		for _, use := range r.Uses {
			u.Rows = append(u.Rows, figure.Use{
				System: p.system(r), Name: r.Cell.System + ": " + use.Name, Node: string(use.Node), CPU: inMs(use.CPU), Memory: float64(use.MemoryBytes),
			})
		}
	}
	if len(u.Rows) > 0 {
		p.add(KindResources, condition, figure.Resources(figure.Text{Title: "CPU time and memory by process: " + condition}, u))
	}
}

// hopMaps shows each way once, with the systems and scenarios that take it.
func (p *plotter) hopMaps() {
	mapped := slices.DeleteFunc(slices.Clone(p.Results), func(r Result) bool { return r.HopMap.Start == "" })
	for _, group := range groupBy(mapped, func(r Result) string { return r.HopMap.String() }) {
		caption := strings.Join(levelsOf(axes()[1], group), ", ") + " in " + strings.Join(levelsOf(axes()[0], group), ", ")
		way := group[0].HopMap
		text := figure.Text{Title: "Way of a request: " + caption, Description: way.String()}
		p.add(KindHops, caption, figure.Topology(text, p.mapOf(way)))
	}
}

func (p *plotter) mapOf(way experiment.HopMap) figure.Map {
	var m figure.Map
	for _, c := range p.Experiment.Topology.Clusters {
		cluster := figure.Cluster{Name: c.Name}
		for _, name := range c.Nodes {
			cluster.Nodes = append(cluster.Nodes, figure.Node{Name: name, Role: p.roleOf(topology.Ref(c.Name+"/"+name), way)})
		}
		m.Clusters = append(m.Clusters, cluster)
	}
	for _, h := range way.Hops {
		hop := figure.Hop{From: string(h.From), To: string(h.To)}
		if !h.Link.IsZero() {
			hop.Link = h.Link.String()
		}
		m.Hops = append(m.Hops, hop)
	}
	return m
}

// roleOf a node, and whether a pod has it on this way.
func (p *plotter) roleOf(node topology.Ref, way experiment.HopMap) (role string) {
	switch t := p.Experiment.Topology; {
	case node == t.Client:
		role = "client"
	case node == t.Service:
		role = "service"
	case slices.Contains(t.Replicas, node):
		role = "replica"
	}
	if slices.Contains(way.Within[node], experiment.Pod) {
		role += " " + experiment.Pod
	}
	return role
}

// timelines shows the response times of each cell over time.
func (p *plotter) timelines() {
	for _, r := range p.Results {
		if r.Missing() == "" && len(r.Timelines) > 0 {
			caption := phrase(append(axes(), p.conditions...), r.Cell)
			p.add(KindTimeline, caption, figure.Timelines(figure.Text{Title: "Response time over time: " + caption}, r.Timelines, marksOf(r.Events)...))
		}
	}
}

// marksOf the events of repetition 1, of which the response times are.
func marksOf(events []Event) (all []figure.Mark) {
	for _, e := range events {
		if e.Repetition == 1 {
			all = append(all, figure.Mark{Name: e.what(), From: e.At + e.Late, Until: e.Undone})
		}
	}
	return all
}
