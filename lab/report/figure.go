package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

// figure holds the panels of all cells that differ in scenario and system alone.
type figure struct {
	Title  string
	Panels []panel
}

// panel is one chart: the systems of a scenario, one above the other.
type panel struct {
	Title, Description string
	SVG                template.HTML
}

// figures groups results by condition, then by scenario, and draws them.
func figures(results []Result) ([]figure, error) {
	titled := slices.DeleteFunc(conditions(), func(f factor) bool {
		return f.name != "workload" && f.name != "size" && len(levelsOf(f, results)) < 2
	})
	scenario, system := axes()[0], axes()[1]
	systems := levelsOf(system, results)

	var all []figure
	for _, group := range groupBy(results, func(r Result) string { return phrase(titled, r.Cell) }) {
		f := figure{Title: phrase(titled, group[0].Cell)}
		for _, rs := range groupBy(group, func(r Result) string { return scenario.level(r.Cell) }) {
			name := fmt.Sprintf("figure-%d-%d", len(all)+1, len(f.Panels)+1)
			p, err := panelOf(name, f.Title, rs, systems)
			if err != nil {
				return nil, fmt.Errorf("draw %s, %s: %w", f.Title, p.Title, err)
			}
			f.Panels = append(f.Panels, p)
		}
		all = append(all, f)
	}
	return all, nil
}

// groupBy keeps the order of appearance, of groups and within them.
func groupBy(results []Result, key func(Result) string) [][]Result {
	index := map[string]int{}
	var groups [][]Result
	for _, r := range results {
		k := key(r)
		i, ok := index[k]
		if !ok {
			i = len(groups)
			index[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

func panelOf(id, condition string, results []Result, systems []string) (panel, error) {
	p := panel{Title: results[0].Cell.Scenario.Name, Description: describe(results)}
	svg, err := drawBoxes(results, systems)
	if err != nil {
		return p, err
	}
	title := fmt.Sprintf("Response time in ms by system: %s, %s", condition, p.Title)
	p.SVG = accessible(svg, id, title, p.Description)
	return p, nil
}

// describe says in words what the chart shows, for those who cannot see it.
func describe(results []Result) string {
	decimals := decimalsFor(results)
	texts := make([]string, len(results))
	for i, r := range results {
		if word := r.missing(); word != "" {
			texts[i] = r.Cell.System + " " + word
			continue
		}
		b := r.Summary.Times.Box
		texts[i] = fmt.Sprintf("%s median %s, half of all between %s and %s", r.Cell.System,
			milliseconds(time.Duration(b.Median), decimals),
			milliseconds(time.Duration(b.Q1), decimals), milliseconds(time.Duration(b.Q3), decimals))
	}
	return strings.Join(texts, "; ") + "."
}

// span is the part of the response-time axis that a panel shows, in ms.
type span struct {
	min, max float64
	// dotsMax ends the part where outliers are drawn; slower ones are named.
	dotsMax float64
}

// Shape of the response-time axis.
const (
	// zoomShare: the axis leaves 0 out where every box and whisker lies in its
	// upper part from here on, since overheads would be invisible otherwise.
	zoomShare = 0.5
	// stretchMax: outliers may stretch the axis to this multiple of the part
	// that the whiskers need; slower ones are named in the margin.
	stretchMax = 3.0
	// margin is left of the axis' length for dots and names.
	margin      = 0.04
	marginNames = 0.18
)

// spanOf chooses the axis for a panel's boxes. Without any it is 0 to 1 ms.
func spanOf(results []Result) span {
	low, whisker := math.Inf(1), 0.0
	var outliers []float64
	for _, r := range results {
		if r.missing() != "" {
			continue
		}
		b := r.Summary.Times.Box
		low, whisker = min(low, b.Low/1e6), max(whisker, b.High/1e6)
		for _, v := range b.Outliers {
			outliers = append(outliers, v/1e6)
		}
	}
	if whisker == 0 {
		return span{max: 1, dotsMax: 1}
	}
	s := span{dotsMax: whisker}
	if low > zoomShare*whisker {
		s.min = low
	}
	bound := s.min + stretchMax*max(whisker-s.min, margin*whisker)
	room := margin
	for _, v := range outliers {
		if v <= bound {
			s.dotsMax = max(s.dotsMax, v)
		} else {
			room = marginNames
		}
	}
	length := max(s.dotsMax-s.min, margin*whisker)
	s.max = s.dotsMax + room*length
	if s.min > 0 {
		s.min -= margin * length
	}
	return s
}
