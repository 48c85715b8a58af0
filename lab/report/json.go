package report

import (
	"encoding/json"
	"io"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
)

// JSON writes what the tables show as one JSON object. Times are milliseconds
// with full precision. A figure that a cell does not have is absent.
func JSON(w io.Writer, in Input) error {
	out := document{
		Experiment:  in.Experiment.Name,
		Description: in.Experiment.Description,
		Provenance:  provenanceOf(in),
		Cells:       []cell{},
	}
	for _, r := range in.Results {
		out.Cells = append(out.Cells, cellOf(r))
	}
	for _, v := range in.Verdicts {
		out.Objectives = append(out.Objectives, objective{Objective: v.Objective, Met: v.Met, Seen: v.Seen})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

type document struct {
	Experiment  string      `json:"experiment"`
	Description string      `json:"description,omitempty"`
	Provenance  provenance  `json:"provenance"`
	Cells       []cell      `json:"cells"`
	Objectives  []objective `json:"objectives,omitempty"`
}

type provenance struct {
	Started    time.Time `json:"started,omitzero"`
	TookS      float64   `json:"took_s,omitempty"`
	Commit     string    `json:"commit,omitempty"`
	Version    string    `json:"version,omitempty"`
	Kernel     string    `json:"kernel,omitempty"`
	Processor  string    `json:"processor,omitempty"`
	Cores      int       `json:"cores,omitempty"`
	Seed       uint64    `json:"seed"`
	Congestion string    `json:"congestion"`
}

type cell struct {
	condition
	Rejected string        `json:"rejected,omitempty"`
	Requests int           `json:"requests"`
	Errors   int           `json:"errors"`
	Classes  []errorClass  `json:"error_classes,omitempty"`
	N        int           `json:"n"`
	Times    *times        `json:"times,omitempty"`
	FirstMs  *float64      `json:"first_ms,omitempty"`
	FirstN   int           `json:"first_n"`
	Each     []repetition  `json:"repetitions,omitempty"`
	Links    []linkSummary `json:"links,omitempty"`
	HopMap   string        `json:"hop_map,omitempty"`
}

type condition struct {
	Scenario    string      `json:"scenario"`
	Unit        impair.Unit `json:"unit"`
	System      string      `json:"system"`
	Workload    string      `json:"workload"`
	SizeBytes   int64       `json:"size_bytes,omitempty"`
	TimeMs      float64     `json:"time_ms,omitempty"`
	MemoryBytes int64       `json:"memory_bytes,omitempty"`
	Threads     int         `json:"threads"`
	ThinkMs     float64     `json:"think_ms"`
	Connection  string      `json:"connection"`
	Iterations  int         `json:"iterations"`
	openLoop
	Warmup    int     `json:"warmup"`
	TimeoutMs float64 `json:"timeout_ms,omitempty"`
}

// openLoop is empty for a closed loop.
type openLoop struct {
	Rate       string  `json:"rate,omitempty"`
	Arrivals   string  `json:"arrivals,omitempty"`
	DurationMs float64 `json:"duration_ms,omitempty"`
}

type times struct {
	MedianMs float64   `json:"median_ms"`
	Interval *interval `json:"median_interval,omitempty"`
	P90Ms    float64   `json:"p90_ms"`
	P99Ms    float64   `json:"p99_ms"`
	MeanMs   float64   `json:"mean_ms"`
	IQRMean  float64   `json:"iqr_mean_ms"`
	MaxMs    float64   `json:"max_ms"`
}

type interval struct {
	LowMs    float64 `json:"low_ms"`
	HighMs   float64 `json:"high_ms"`
	Coverage float64 `json:"coverage"`
}

type errorClass struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

type repetition struct {
	Requests int    `json:"requests"`
	Errors   int    `json:"errors"`
	N        int    `json:"n"`
	Times    *times `json:"times,omitempty"`
}

type linkSummary struct {
	Link     string            `json:"link"`
	Asked    impair.Impairment `json:"asked"`
	Seen     impair.Counters   `json:"seen"`
	SeenLoss float64           `json:"seen_loss"`
}

type objective struct {
	experiment.Objective
	Met  bool   `json:"met"`
	Seen string `json:"seen,omitempty"`
}

func provenanceOf(in Input) provenance {
	p := in.Provenance
	return provenance{
		Started: p.Started, TookS: p.Took.Seconds(), Commit: p.Commit, Version: p.Version,
		Kernel: p.Kernel, Processor: p.Processor, Cores: p.Cores, Seed: p.Seed,
		Congestion: in.Experiment.Topology.CongestionControl(),
	}
}

func cellOf(r Result) cell {
	out := cell{condition: conditionOf(r.Cell), Rejected: r.Rejected, HopMap: r.HopMap}
	for _, l := range r.Links {
		out.Links = append(out.Links, linkSummary{l.Asked.Name, l.Asked.Impairment, l.Seen, l.seenLoss()})
	}
	if r.Rejected != "" {
		return out
	}
	s := r.Summary
	out.Requests, out.Errors, out.N, out.FirstN = s.Requests, s.Errors, s.N, s.FirstN
	out.Times = timesOf(s)
	if s.FirstN > 0 {
		first := inMs(s.First)
		out.FirstMs = &first
	}
	for _, c := range s.ErrorClasses {
		out.Classes = append(out.Classes, errorClass(c))
	}
	for _, s := range r.PerRepetition {
		out.Each = append(out.Each, repetition{Requests: s.Requests, Errors: s.Errors, N: s.N, Times: timesOf(s)})
	}
	return out
}

func conditionOf(c experiment.Cell) condition {
	return condition{
		Scenario: c.Scenario.Name, Unit: unitOf(c.Scenario), System: c.System, Workload: c.Workload,
		SizeBytes: int64(c.Size), TimeMs: inMs(c.Time.Std()), MemoryBytes: int64(c.Memory),
		Threads: c.Threads, ThinkMs: inMs(c.Think.Std()), Connection: c.Connection,
		Iterations: c.Iterations, openLoop: openLoop{Rate: unlessClosed(c, c.Rate.String()), Arrivals: c.Arrivals, DurationMs: inMs(c.Duration.Std())},
		Warmup: c.Warmup, TimeoutMs: inMs(c.Timeout.Std()),
	}
}

func timesOf(s measure.Summary) *times {
	if s.N == 0 {
		return nil
	}
	t := s.Times
	out := &times{
		MedianMs: inMs(t.Median), P90Ms: inMs(t.P90), P99Ms: inMs(t.P99),
		MeanMs: inMs(t.Mean), IQRMean: inMs(t.IQRMean), MaxMs: inMs(t.Max),
	}
	if t.Interval.Coverage > 0 {
		out.Interval = &interval{inMs(t.Interval.Low), inMs(t.Interval.High), t.Interval.Coverage}
	}
	return out
}
