package experiment

import "strings"

// membersMax bounds the comparisons that one claim asks for.
const membersMax = 1000

// Member is one comparison of a claim: one of the combinations that it holds of.
type Member struct {
	// Points along the factor of a slope or a crossing, in the order of the
	// cells; for other claims one.
	Points []Point
}

// Point is a figure of one cell, alone or beside that of another.
type Point struct {
	Of Side
	// To is what a ratio divides by, a slope or a bound subtracts, an order has
	// next, a crossing compares with; Cell is -1 without one.
	To Side
}

// Side is a cell, an index into the cells, and the metric of its figure.
type Side struct {
	Cell   int
	Metric string
}

// Members lists the comparisons among cells, at most 1000 of them, and whether
// there would be more. Two cells are compared where they differ only in the
// factors that either selector names; along a factor, where their levels of it
// are the same. A cell is not compared with itself by the same metric.
func (c Claim) Members(cells []Cell) (members []Member, more bool) {
	pairs := [][2]*Selector{{c.Of, c.other()}}
	if c.Kind == KindOrder {
		pairs = nil
		for i := range len(c.Order) - 1 {
			pairs = append(pairs, [2]*Selector{&c.Order[i], &c.Order[i+1]})
		}
	}
	for _, pair := range pairs {
		members = append(members, c.compare(cells, pair[0], pair[1])...)
	}
	return members[:min(len(members), membersMax)], len(members) > membersMax
}

// other is the second selector of all kinds but an order.
func (c Claim) other() *Selector {
	if c.To != nil {
		return c.To
	}
	return c.Minus
}

// line is the cells that differ in the factor Over alone; without such a factor
// it has one cell. Levels are by the name of the factor.
type line struct {
	levels map[string]string
	cells  []int
}

// lines groups the cells that both the claim and the selector select.
func (c Claim) lines(cells []Cell, s *Selector) []*line {
	var lines []*line
	known := map[string]*line{}
	for i, cell := range cells {
		if !c.Where.Selects(cell) || !s.Selects(cell) {
			continue
		}
		levels := map[string]string{}
		for _, d := range dimensions() {
			if d.name != c.along() {
				levels[d.name] = d.level(cell)
			}
		}
		key := shared(levels, nil, nil)
		if known[key] == nil {
			known[key] = &line{levels: levels}
			lines = append(lines, known[key])
		}
		known[key].cells = append(known[key].cells, i)
	}
	return lines
}

// along is the dimension that the claim runs along, or empty.
func (c Claim) along() string {
	if c.Over == OverRTT {
		return "scenario"
	}
	return c.Over
}

// shared is a key of the levels that neither selector names.
func shared(levels map[string]string, of, to *Selector) string {
	var key strings.Builder
	for _, d := range dimensions() {
		if level, ok := levels[d.name]; ok && !of.names(d) && !to.names(d) {
			key.WriteString(level + "\x00")
		}
	}
	return key.String()
}

// compare pairs the lines of two selectors; without a second, those of the first
// stand alone. It stops past the bound.
func (c Claim) compare(cells []Cell, of, to *Selector) (members []Member) {
	var others map[string][]*line
	if to != nil {
		others = map[string][]*line{}
		for _, l := range c.lines(cells, to) {
			key := shared(l.levels, of, to)
			others[key] = append(others[key], l)
		}
	}
	for _, l := range c.lines(cells, of) {
		if to == nil {
			members = append(members, c.split(c.alone(l, of))...)
		}
		for _, other := range others[shared(l.levels, of, to)] {
			members = append(members, c.split(c.pair(cells, [2]*line{l, other}, of, to))...)
		}
		if len(members) > membersMax {
			break
		}
	}
	return members
}

func (c Claim) alone(l *line, of *Selector) (m Member) {
	for _, i := range l.cells {
		m.Points = append(m.Points, Point{Of: Side{i, c.MetricOf(of)}, To: Side{Cell: -1}})
	}
	return m
}

// pair joins two lines where their levels of the factor are the same.
func (c Claim) pair(cells []Cell, lines [2]*line, of, to *Selector) (m Member) {
	level := func(Cell) string { return "" }
	for _, d := range dimensions() {
		if d.name == c.along() {
			level = d.level
		}
	}
	for _, i := range lines[0].cells {
		for _, j := range lines[1].cells {
			p := Point{Of: Side{i, c.MetricOf(of)}, To: Side{j, c.MetricOf(to)}}
			if level(cells[i]) == level(cells[j]) && p.Of != p.To {
				m.Points = append(m.Points, p)
			}
		}
	}
	return m
}

// split leaves out what has too few points to compare, and parts a slope that
// is judged by its steps into them.
func (c Claim) split(m Member) []Member {
	least := 1
	if c.Over != "" {
		least = 2
	}
	switch {
	case len(m.Points) < least:
		return nil
	case !c.Steps:
		return []Member{m}
	}
	var all []Member
	for i := range len(m.Points) - 1 {
		all = append(all, Member{Points: m.Points[i : i+2]})
	}
	return all
}
