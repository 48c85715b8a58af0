package report

import (
	"slices"
	"strconv"
	"strings"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/report/figure"
)

// factor is one dimension of the matrix. Its level is empty for a cell that
// the factor says nothing about.
type factor struct {
	name  string
	level func(experiment.Cell) string
}

// measured is a factor whose levels are numbers, so that a figure can be drawn
// along it.
type measured struct {
	figure.Axis
	number func(experiment.Cell) float64
}

// numeric lists the factors that figures are drawn along.
func numeric() []measured {
	return []measured{
		{figure.Axis{Name: "size", Unit: "KB"}, func(c experiment.Cell) float64 { return float64(c.Size) / 1000 }},
		{figure.Axis{Name: "time", Unit: "ms"}, func(c experiment.Cell) float64 { return inMs(c.Time.Std()) }},
		{figure.Axis{Name: "threads"}, func(c experiment.Cell) float64 { return float64(c.Threads) }},
		{figure.Axis{Name: "think", Unit: "ms"}, func(c experiment.Cell) float64 { return inMs(c.Think.Std()) }},
		{figure.Axis{Name: "rate", Unit: "requests/s"}, func(c experiment.Cell) float64 { return float64(c.Rate) }},
	}
}

// axes are the two factors that every table and figure shows; conditions are
// shown where they differ between cells.
func axes() []factor {
	return []factor{
		{"scenario", func(c experiment.Cell) string { return c.Scenario.Name }},
		{"system", func(c experiment.Cell) string { return c.System }},
	}
}

func conditions() []factor {
	return []factor{
		{"workload", func(c experiment.Cell) string { return c.Workload }},
		{"size", func(c experiment.Cell) string { return unlessZero(c.Size) }},
		{"time", func(c experiment.Cell) string { return unlessZero(c.Time) }},
		{"memory", func(c experiment.Cell) string { return unlessZero(c.Memory) }},
		{"threads", threadsOf},
		{"ratio", func(c experiment.Cell) string { return c.Ratio }},
		{"think", func(c experiment.Cell) string { return unlessOpen(c, c.Think.String()) }},
		{"ramp", func(c experiment.Cell) string { return unlessZero(c.Ramp) }},
		{"tool", experiment.Cell.SentBy},
		{"protocol", experiment.Cell.Speaks},
		{"connection", func(c experiment.Cell) string { return c.Connection }},
		{"rate", func(c experiment.Cell) string { return unlessClosed(c, c.Rate.String()) }},
		{"arrivals", func(c experiment.Cell) string { return c.Arrivals }},
		{"duration", func(c experiment.Cell) string { return unlessZero(c.Duration) }},
		{"rotate", func(c experiment.Cell) string { return unlessZero(c.Rotate) }},
		{"settle", func(c experiment.Cell) string { return unlessZero(c.Settle) }},
		{"iterations", iterationsOf},
		{"warmup", func(c experiment.Cell) string { return unlessOpen(c, strconv.Itoa(c.Warmup)) }},
		{"timeout", timeoutOf},
		{"unit", func(c experiment.Cell) string { return string(unitOf(c.Scenario)) }},
	}
}

// threadsOf a cell without a ratio: else that says how many there are.
func threadsOf(c experiment.Cell) string {
	if c.Ratio != "" {
		return ""
	}
	return strconv.Itoa(c.Threads)
}

// iterationsOf a closed loop that has some.
func iterationsOf(c experiment.Cell) string {
	if c.Timed() {
		return ""
	}
	return unlessOpen(c, strconv.Itoa(c.Iterations))
}

// timeoutOf a load that is known.
func timeoutOf(c experiment.Cell) string {
	if imported(c) {
		return ""
	}
	return unlessZero(c.Timeout)
}

// imported says that nothing is known of the load but its requests.
func imported(c experiment.Cell) bool { return c.Rate == 0 && c.Duration == 0 && c.Iterations == 0 }

func unlessClosed(c experiment.Cell, level string) string {
	if c.Rate == 0 {
		return ""
	}
	return level
}

func unlessOpen(c experiment.Cell, level string) string {
	if c.Rate > 0 || imported(c) {
		return ""
	}
	return level
}

func unlessZero[T interface {
	~int64
	String() string
}](v T) string {
	if v == 0 {
		return ""
	}
	return v.String()
}

func unitOf(s experiment.Scenario) impair.Unit {
	if s.Unit == "" {
		return impair.UnitPacket
	}
	return s.Unit
}

// split parts the conditions into those that differ between results and those
// that all results share.
func split(results []Result) (varying, shared []factor) {
	for _, f := range conditions() {
		switch levels := levelsOf(f, results); {
		case len(levels) == 1 && f.name == "tool" && levels[0] == experiment.ToolSkerry: // goes without saying
		case len(levels) > 1:
			varying = append(varying, f)
		case len(levels) == 1 && levels[0] != "":
			shared = append(shared, f)
		}
	}
	return varying, shared
}

// levelsOf lists the levels of a factor in order of appearance.
func levelsOf(f factor, results []Result) []string {
	var levels []string
	for _, r := range results {
		if level := f.level(r.Cell); !slices.Contains(levels, level) {
			levels = append(levels, level)
		}
	}
	return levels
}

func levels(factors []factor, c experiment.Cell) []string {
	texts := make([]string, len(factors))
	for i, f := range factors {
		texts[i] = f.level(c)
	}
	return texts
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

// phrase names a cell's levels in a sentence: "payload-echo, 1MB, threads 8".
func phrase(factors []factor, c experiment.Cell) string {
	var parts []string
	for _, f := range factors {
		level := f.level(c)
		switch {
		case level == "":
		case f.name == "scenario" || f.name == "system" || f.name == "workload" || f.name == "size":
			parts = append(parts, level)
		default:
			parts = append(parts, f.name+" "+level)
		}
	}
	return strings.Join(parts, ", ")
}

// Labels names each result by what differs between them: "edg10, direct, 1KB".
func Labels(results []Result) []string {
	varying, _ := split(results)
	heads := append(axes(), varying...)
	all := make([]string, len(results))
	for i, r := range results {
		all[i] = phrase(heads, r.Cell)
	}
	return all
}
