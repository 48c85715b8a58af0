package experiment

import (
	"fmt"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/quantity"
)

// Selector names cells by levels of their factors; a factor that it does not
// name may have any.
type Selector struct {
	// System under test, or several.
	System List[string] `yaml:"system,omitempty" json:"system,omitempty"`
	// Scenario of links.
	Scenario List[string] `yaml:"scenario,omitempty" json:"scenario,omitempty"`
	// Workload served.
	Workload List[string] `yaml:"workload,omitempty" json:"workload,omitempty"`
	// Size of the request's body.
	Size List[quantity.Size] `yaml:"size,omitempty" json:"size,omitempty"`
	// Time that the workload takes.
	Time List[quantity.Duration] `yaml:"time,omitempty" json:"time,omitempty"`
	// Threads of the load.
	Threads List[int] `yaml:"threads,omitempty" json:"threads,omitempty"`
	// Ratio of the threads at the entries.
	Ratio List[string] `yaml:"ratio,omitempty" json:"ratio,omitempty"`
	// Think time of the load.
	Think List[quantity.Duration] `yaml:"think,omitempty" json:"think,omitempty"`
	// Rate of an open loop.
	Rate List[quantity.Frequency] `yaml:"rate,omitempty" json:"rate,omitempty"`
	// Tool of the load.
	Tool List[string] `yaml:"tool,omitempty" json:"tool,omitempty"`
	// Protocol of the load.
	Protocol List[string] `yaml:"protocol,omitempty" json:"protocol,omitempty"`
	// Connection: kept or new.
	Connection List[string] `yaml:"connection,omitempty" json:"connection,omitempty"`
	// Metric in place of the claim's.
	Metric string `yaml:"metric,omitempty" json:"metric,omitempty" jsonschema:"enum=p25,enum=p50,enum=p90,enum=p99,enum=mean,enum=iqr-mean,enum=iqr,enum=first,enum=rate,enum=errors,enum=share,enum=of-limit,enum=jitter"`
}

// String names the levels, factors in the order of a cell's label, and the
// metric where it has one: "haproxy-mtls 1KB", "first". One that selects all is
// "any cell".
func (s Selector) String() string {
	var parts []string
	if s.Metric != "" {
		parts = append(parts, s.Metric)
	}
	for _, d := range dimensions() {
		levels := d.chosen(s)
		switch {
		case len(levels) == 0:
		case d.unit != "":
			parts = append(parts, strings.Join(levels, " or ")+" "+d.unit)
		default:
			parts = append(parts, strings.Join(levels, " or "))
		}
	}
	if len(parts) == 0 {
		return "any cell"
	}
	return strings.Join(parts, " ")
}

// Selects reports whether the cell has only levels that the selector allows.
func (s *Selector) Selects(c Cell) bool {
	if s == nil {
		return true
	}
	for _, d := range dimensions() {
		if levels := d.chosen(*s); len(levels) > 0 && !slices.Contains(levels, d.level(c)) {
			return false
		}
	}
	return true
}

// names reports whether the selector names a level of the factor.
func (s *Selector) names(d dimension) bool { return s != nil && len(d.chosen(*s)) > 0 }

// dimension is a factor of the matrix; levels are compared as they print.
type dimension struct {
	// name is the key of a selector, and of Over but for the scenario's RTT.
	name string
	// unit follows the level in words.
	unit   string
	level  func(Cell) string
	chosen func(Selector) []string
	levels func(*Experiment) []string
}

// dimensions in the order in which Cells crosses them.
func dimensions() []dimension {
	return []dimension{
		{"scenario", "", func(c Cell) string { return c.Scenario.Name }, func(s Selector) []string { return s.Scenario }, scenarioNames},
		{"system", "", func(c Cell) string { return c.System }, func(s Selector) []string { return s.System },
			func(e *Experiment) []string { return e.Systems }},
		{"workload", "", func(c Cell) string { return c.Workload }, func(s Selector) []string { return s.Workload }, workloadNames},
		{"size", "", func(c Cell) string { return c.Size.String() }, func(s Selector) []string { return texts(s.Size) },
			func(e *Experiment) []string {
				return ofWorkloads(e, func(w Workload) []string { return texts(w.Size) })
			}},
		{"time", "", func(c Cell) string { return c.Time.String() }, func(s Selector) []string { return texts(s.Time) },
			func(e *Experiment) []string {
				return ofWorkloads(e, func(w Workload) []string { return texts(w.Time) })
			}},
		{"threads", "threads", Cell.threadsLevel, func(s Selector) []string { return texts(s.Threads) }, threadsLevels},
		{"ratio", "threads", func(c Cell) string { return c.Ratio }, func(s Selector) []string { return s.Ratio },
			func(e *Experiment) []string { return e.Load.Ratio }},
		{"think", "think", func(c Cell) string { return c.Think.String() }, func(s Selector) []string { return texts(s.Think) },
			func(e *Experiment) []string { return texts(or(e.Load.Think, 0)) }},
		{"rate", "", func(c Cell) string { return c.Rate.String() }, func(s Selector) []string { return texts(s.Rate) },
			func(e *Experiment) []string { return texts(e.Load.Rate) }},
		{"tool", "", Cell.SentBy, func(s Selector) []string { return s.Tool },
			func(e *Experiment) []string { return or(e.Load.Tool, ToolSkerry) }},
		{"protocol", "", Cell.chosen, func(s Selector) []string { return s.Protocol },
			func(e *Experiment) []string { return or(e.Load.Protocol, ProtocolHTTP1) }},
		{"connection", "", func(c Cell) string { return c.Connection }, func(s Selector) []string { return s.Connection },
			func(e *Experiment) []string { return or(e.Load.Connection, ConnectionKept) }},
	}
}

// threadsLevel is the level of the cell of the factor load.threads: none with a ratio.
func (c Cell) threadsLevel() string {
	if c.Ratio != "" {
		return ""
	}
	return fmt.Sprint(c.Threads)
}

func threadsLevels(e *Experiment) []string {
	if e.Load.Ratio != nil {
		return nil
	}
	return texts(or(e.Load.Threads, 1))
}

func texts[T any](list []T) []string {
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = fmt.Sprint(v)
	}
	return all
}

func scenarioNames(e *Experiment) []string {
	names := make([]string, len(e.Scenarios))
	for i, s := range e.Scenarios {
		names[i] = s.Name
	}
	return names
}

func workloadNames(e *Experiment) []string {
	names := make([]string, len(e.Workloads))
	for i, w := range e.Workloads {
		names[i] = w.Name
	}
	return names
}

// ofWorkloads lists the levels of all workloads, each once.
func ofWorkloads(e *Experiment, levels func(Workload) []string) []string {
	var all []string
	for _, w := range e.Workloads {
		for _, level := range levels(w) {
			if !slices.Contains(all, level) {
				all = append(all, level)
			}
		}
	}
	return all
}
