package experiment

import (
	"errors"
	"fmt"
	"slices"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
)

// claimsMax bounds the claims of a file.
const claimsMax = 200

// claims checks every claim but for the cells that it selects.
func (c *checker) claims() {
	if len(c.e.Claims) > claimsMax {
		c.add("claims", "split the experiment", "%d claims are too many, the most is %d", len(c.e.Claims), claimsMax)
		return
	}
	var names, paths []string
	for i, claim := range c.e.Claims {
		path := fmt.Sprintf("claims[%d]", i)
		names, paths = append(names, claim.Name), append(paths, path+".name")
		for _, s := range claim.selectors() {
			c.selector(path+"."+s.path, s.Selector)
		}
		if !slices.Contains(Kinds(), claim.Kind) {
			c.add(path+".kind", nearest.Hint(claim.Kind, Kinds()), "there is no kind of claim %.80q", claim.Kind)
			continue
		}
		c.claimKeys(path, claim)
		c.claimMetric(path, claim)
		c.claimRange(path, claim)
	}
	if len(names) > 0 {
		c.names("claim", names, paths)
	}
}

// placed is a selector and its key.
type placed struct {
	path string
	*Selector
}

func (c Claim) selectors() []placed {
	var all []placed
	for _, s := range []placed{{"where", c.Where}, {"of", c.Of}, {"to", c.To}, {"minus", c.Minus}} {
		if s.Selector != nil {
			all = append(all, s)
		}
	}
	for i := range c.Order {
		all = append(all, placed{fmt.Sprintf("order[%d]", i), &c.Order[i]})
	}
	return all
}

// selector checks that the experiment has the levels.
func (c *checker) selector(path string, s *Selector) {
	for _, d := range dimensions() {
		known := d.levels(c.e)
		chosen := d.chosen(*s)
		if at := path + "." + d.name; len(chosen) == 0 && c.e.document.Has(at) {
			c.add(at, "remove the key to select every "+d.name, "no %s is selected", d.name)
		}
		for i, level := range chosen {
			if !slices.Contains(known, level) {
				c.add(fmt.Sprintf("%s.%s[%d]", path, d.name, i), nearest.Hint(level, known),
					"this experiment has no %s %.80q", d.name, level)
			}
		}
	}
	if s.Metric != "" && !slices.Contains(ClaimMetrics(), s.Metric) {
		c.add(path+".metric", nearest.Hint(s.Metric, ClaimMetrics()), "a claim has no metric %.80q", s.Metric)
	}
}

// claimKey says which kinds of claims need a key and which take it.
type claimKey struct {
	name        string
	given       bool
	needs, take []string
	example     string
}

func claimKeys(c Claim) []claimKey {
	return []claimKey{
		{"order", c.Order != nil, []string{KindOrder}, nil, "[{system: a}, {system: b}], the least first"},
		{"of", c.Of != nil, []string{KindRatio, KindCrossing}, []string{KindSlope, KindBound}, "{system: a}"},
		{"to", c.To != nil, []string{KindRatio, KindCrossing}, nil, "{system: b}"},
		{"minus", c.Minus != nil, nil, []string{KindSlope, KindBound}, ""},
		{"over", c.Over != "", []string{KindSlope, KindCrossing}, nil, "rtt, or another factor"},
		{"steps", c.Steps, nil, []string{KindSlope}, ""},
		{"never", c.Never, nil, []string{KindCrossing}, ""},
		{"between", c.Between != nil, nil, []string{KindRatio, KindSlope, KindCrossing, KindBound}, ""},
		{"below", c.Below != "", nil, []string{KindRatio, KindSlope, KindCrossing, KindBound}, ""},
		{"above", c.Above != "", nil, []string{KindRatio, KindSlope, KindCrossing, KindBound}, ""},
	}
}

// claimKeys checks that a claim has what its kind needs, and nothing else.
func (c *checker) claimKeys(path string, claim Claim) {
	for _, k := range claimKeys(claim) {
		needs, takes := slices.Contains(k.needs, claim.Kind), slices.Contains(k.take, claim.Kind)
		switch {
		case k.given && !needs && !takes:
			c.add(path+"."+k.name, "remove it", "a claim of kind %s takes no %s", claim.Kind, k.name)
		case !k.given && needs:
			c.add(path, fmt.Sprintf("add %s: %s", k.name, k.example), "a claim of kind %s needs the key %s", claim.Kind, k.name)
		}
	}
	if len(claim.Order) == 1 {
		c.add(path+".order", "name the cells with the least figure first", "an order has 2 ends or more, not 1")
	}
	if claim.Over != "" && !slices.Contains(Overs(), claim.Over) {
		c.add(path+".over", nearest.Hint(claim.Over, Overs()), "there is no factor %.80q to run over", claim.Over)
	}
	if claim.At != "" && claim.At != AtEvery && claim.At != AtSome {
		c.add(path+".at", "write every or some", "%s is not possible here", show(claim.At))
	}
}

// claimMetric checks the metrics: known, with a limit where they need one, and
// of one unit.
func (c *checker) claimMetric(path string, claim Claim) {
	if claim.Metric != "" && !slices.Contains(ClaimMetrics(), claim.Metric) {
		c.add(path+".metric", nearest.Hint(claim.Metric, ClaimMetrics()), "a claim has no metric %.80q", claim.Metric)
	}
	if claim.Where != nil && claim.Where.Metric != "" {
		c.add(path+".where.metric", "give it to the claim itself", "where takes no metric")
	}
	metrics := []string{claim.MetricOf(nil)}
	var unit Unit
	if claim.Of == nil && claim.Order == nil {
		unit = MetricUnit(claim.MetricOf(nil))
	}
	for _, s := range claim.selectors() {
		if s.path == "where" {
			continue
		}
		metric := claim.MetricOf(s.Selector)
		metrics = append(metrics, metric)
		if unit != "" && MetricUnit(metric) != unit {
			c.add(path+"."+s.path, "compare a time with a time, a rate with a rate, a share with a share",
				"%s is a %s, the claim is about a %s", metric, MetricUnit(metric), unit)
		}
		unit = MetricUnit(metric)
	}
	needs := slices.Contains(metrics, MetricShare)
	switch {
	case needs && claim.Limit == 0:
		c.add(path, "add limit: 1s", "the metric share needs a limit")
	case !needs && claim.Limit != 0:
		c.add(path+".limit", "remove it, or write metric: share", "the metric %s takes no limit", claim.MetricOf(nil))
	}
}

// claimRange checks where the figure must lie.
func (c *checker) claimRange(path string, claim Claim) {
	if claim.Kind == KindOrder {
		return
	}
	given := 0
	for _, is := range []bool{claim.Between != nil, claim.Below != "", claim.Above != "", claim.Never} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		c.add(path, "add between: [LOW, HIGH], below: HIGH or above: LOW", "the claim does not say where its figure must lie")
		return
	case given > 1:
		c.add(path, "keep one of between, below, above and never", "the claim says twice where its figure must lie")
		return
	case claim.Between != nil && len(claim.Between) != 2:
		c.add(path+".between", "write for example between: [0.9, 1.1]", "a range has 2 ends, not %d", len(claim.Between))
		return
	}
	if _, _, err := claim.Limits(); err != nil {
		message, hint := err.Error(), ""
		if wrong := new(quantity.Error); errors.As(err, &wrong) {
			message, hint = wrong.Message, wrong.Hint
		}
		c.add(path+claim.rangeKey(), hint, "%s", message)
	}
}

// rangeKey is the one key of the range that is given.
func (r Range) rangeKey() string {
	switch {
	case r.Below != "":
		return ".below"
	case r.Above != "":
		return ".above"
	}
	return ".between"
}

// compared checks that every claim has something to compare. It expands the
// matrix, which must be within its bounds.
func (c *checker) compared() {
	cells := c.e.Cells()
	for i, claim := range c.e.Claims {
		members, more := claim.Members(cells)
		path := fmt.Sprintf("claims[%d]", i)
		switch {
		case more:
			c.add(path, "narrow it by where", "the claim asks for more than %d comparisons", membersMax)
		case len(members) == 0 && claim.Over != "":
			c.add(path, "widen where, or name a factor that has several levels there",
				"no line of two cells or more runs over %s where the claim looks", claim.Over)
		case len(members) == 0:
			c.add(path, "widen where, or the selectors", "no cells are left to compare")
		}
	}
}
