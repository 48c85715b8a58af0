package report

import (
	"encoding/json"
	"io"
	"time"

	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
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
	for _, c := range in.Claims {
		out.Claims = append(out.Claims, judgement(c))
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
	Claims      []judgement `json:"claims,omitempty"`
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
	Backend    string    `json:"links_by,omitempty"`
	Congestion string    `json:"congestion,omitempty"`
	Facts      []fact    `json:"facts,omitempty"`
}

type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type cell struct {
	ID string `json:"id"`
	condition
	Rejected string       `json:"rejected,omitempty"`
	Lacks    string       `json:"not_runnable,omitempty"`
	Total    bool         `json:"total,omitempty"`
	Requests int          `json:"requests"`
	Errors   int          `json:"errors"`
	Classes  []errorClass `json:"error_classes,omitempty"`
	N        int          `json:"n"`
	Times    *times       `json:"times,omitempty"`
	FirstMs  *float64     `json:"first_ms,omitempty"`
	FirstN   int          `json:"first_n"`
	Each     []repetition `json:"repetitions,omitempty"`
	ground
}

// ground is what the figures of a cell rest on and are compared with.
type ground struct {
	Oracle *prediction   `json:"oracle,omitempty"`
	Links  []linkSummary `json:"links,omitempty"`
	Proofs []try         `json:"proofs,omitempty"`
	Uses   []use         `json:"resources,omitempty"`
	// Entries of a cell with a ratio.
	Entries []entry  `json:"entries,omitempty"`
	Scales  []scaled `json:"scales,omitempty"`
	HopMap  string   `json:"hop_map,omitempty"`
	Events  []event  `json:"events,omitempty"`
}

// event of a timeline; times are counted from the beginning of the load.
type event struct {
	Repetition int     `json:"repetition"`
	Event      string  `json:"event"`
	AtMs       float64 `json:"at_ms"`
	LateMs     float64 `json:"late_ms"`
	UndoneMs   float64 `json:"undone_ms,omitempty"`
}

// prediction is what physics allows, and what was seen of it.
type prediction struct {
	RTTMs           float64  `json:"rtt_ms"`
	SerialisationMs float64  `json:"serialisation_ms"`
	ServiceMs       float64  `json:"service_ms"`
	LimitMs         float64  `json:"limit_ms"`
	Rounds          int      `json:"slow_start_rounds"`
	ExpectedMs      float64  `json:"expected_ms"`
	Share           float64  `json:"share_of_limit,omitempty"`
	RateMost        float64  `json:"rate_most,omitempty"`
	Rate            float64  `json:"rate,omitempty"`
	InFlight        float64  `json:"in_flight,omitempty"`
	Little          float64  `json:"in_flight_by_little,omitempty"`
	Notes           []string `json:"notes,omitempty"`
}

type try struct {
	Repetition int `json:"repetition"`
	Try        int `json:"try"`
	proof.Proof
}

// entry is a node at which requests entered, with its part of the cell's rate.
type entry struct {
	Node    string  `json:"node"`
	Threads int     `json:"threads"`
	Rate    float64 `json:"rate"`
}

type use struct {
	Process     string  `json:"process"`
	Node        string  `json:"node"`
	CPUMs       float64 `json:"cpu_ms"`
	MemoryBytes uint64  `json:"memory_bytes"`
}

// scaled is how many pods took requests in a repetition, as that changed.
type scaled struct {
	Repetition int     `json:"repetition"`
	Pods       []scale `json:"pods"`
}

// scale is a number of pods from a time on, counted from the beginning of the load.
type scale struct {
	AtMs float64 `json:"at_ms"`
	Pods int     `json:"pods"`
}

type judgement struct {
	Name      string       `json:"name"`
	Statement string       `json:"statement"`
	Paper     string       `json:"paper,omitempty"`
	Kind      string       `json:"kind"`
	Result    claim.Result `json:"result"`
	Effect    string       `json:"effect,omitempty"`
	Why       string       `json:"why,omitempty"`
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
	sender
	Connection string `json:"connection"`
	Iterations int    `json:"iterations"`
	openLoop
	Warmup    int     `json:"warmup"`
	TimeoutMs float64 `json:"timeout_ms,omitempty"`
}

// sender is who sends the requests, and how they speak.
type sender struct {
	Tool     string `json:"tool"`
	Protocol string `json:"protocol"`
	Ratio    string `json:"ratio,omitempty"`
}

// openLoop is empty for a closed loop, but for the duration of one by time.
type openLoop struct {
	Rate       string  `json:"rate,omitempty"`
	Arrivals   string  `json:"arrivals,omitempty"`
	DurationMs float64 `json:"duration_ms,omitempty"`
	RotateMs   float64 `json:"rotate_ms,omitempty"`
	SettleMs   float64 `json:"settle_ms,omitempty"`
}

type times struct {
	MedianMs float64   `json:"median_ms"`
	Interval *interval `json:"median_interval,omitempty"`
	P90Ms    float64   `json:"p90_ms"`
	P99Ms    float64   `json:"p99_ms"`
	MeanMs   float64   `json:"mean_ms"`
	IQRMean  float64   `json:"iqr_mean_ms,omitempty"`
	MaxMs    float64   `json:"max_ms"`
}

// interval is one of 95 % by the bootstrap over repetitions.
type interval struct {
	LowMs        float64 `json:"low_ms"`
	HighMs       float64 `json:"high_ms"`
	Repetitions  int     `json:"repetitions"`
	RequestsOnly bool    `json:"requests_only,omitempty"`
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
	Link     string              `json:"link"`
	Asked    impair.Impairment   `json:"asked"`
	Then     []impair.Impairment `json:"then,omitempty"`
	Seen     impair.Counters     `json:"seen"`
	SeenLoss float64             `json:"seen_loss"`
}

type objective struct {
	experiment.Objective
	Met  bool   `json:"met"`
	Seen string `json:"seen,omitempty"`
}

func provenanceOf(in Input) provenance {
	p := in.Provenance
	out := provenance{
		Started: p.Started, TookS: p.Took.Seconds(), Commit: p.Commit, Version: p.Version,
		Kernel: p.Kernel, Processor: p.Processor, Cores: p.Cores, Seed: p.Seed,
		Backend: p.Backend, Congestion: congestionOf(in.Experiment),
	}
	for _, f := range p.Facts {
		out.Facts = append(out.Facts, fact{f.Name, f.Value})
	}
	return out
}

func cellOf(r Result) cell {
	out := cell{ID: r.Cell.ID(), condition: conditionOf(r.Cell), Rejected: r.Rejected, Lacks: r.Lacks, Total: r.Total, ground: groundOf(r)}
	if r.Rejected != "" {
		return out
	}
	s := r.Summary
	out.Requests, out.Errors, out.N, out.FirstN = s.Requests, s.Errors, s.N, s.FirstN
	if out.Times = timesOf(s); out.Times != nil && hasInterval(r.Median) {
		m := r.Median
		out.Times.Interval = &interval{m.Low / 1e6, m.High / 1e6, m.Repetitions, m.RequestsOnly}
	}
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

func groundOf(r Result) ground {
	g := ground{Oracle: predictionOf(r), HopMap: r.HopMap.String()}
	for _, l := range r.Links {
		g.Links = append(g.Links, linkSummary{l.label(), l.Asked.Impairment, l.Asked.Then, l.Seen, l.seenLoss()})
	}
	for _, t := range r.Proofs {
		g.Proofs = append(g.Proofs, try{t.Repetition, t.Number, t.Proof})
	}
	for _, u := range r.Uses {
		g.Uses = append(g.Uses, use{u.Name, string(u.Node), inMs(u.CPU), u.MemoryBytes})
	}
	for _, e := range r.Entries {
		g.Entries = append(g.Entries, entry{string(e.Node), e.Threads, e.Rate})
	}
	for _, e := range r.Events {
		g.Events = append(g.Events, event{e.Repetition, e.what(), inMs(e.At), inMs(e.Late), inMs(e.Undone)})
	}
	for _, s := range r.Scales {
		one := scaled{Repetition: s.Repetition}
		for _, now := range s.Scale {
			one.Pods = append(one.Pods, scale{inMs(now.At), now.Pods})
		}
		g.Scales = append(g.Scales, one)
	}
	return g
}

// predictionOf is nothing where the oracle said nothing. What was seen of a
// rejected cell stays unsaid.
func predictionOf(r Result) *prediction {
	o := r.Oracle
	if o.Limit == 0 && o.Rate == 0 && len(o.Notes) == 0 && r.Observed.Rate == 0 {
		return nil
	}
	p := &prediction{
		RTTMs: inMs(o.RTT), SerialisationMs: inMs(o.Serialisation), ServiceMs: inMs(o.Service), LimitMs: inMs(o.Limit),
		Rounds: o.Rounds, ExpectedMs: inMs(o.Expected), RateMost: o.Rate, Notes: o.Notes,
	}
	p.Share, _ = r.shareOfLimit()
	if r.Rejected == "" {
		p.Rate, p.InFlight, p.Little = r.Observed.Rate, r.Observed.InFlight, r.Observed.Little
	}
	return p
}

func conditionOf(c experiment.Cell) condition {
	return condition{
		Scenario: c.Scenario.Name, Unit: unitOf(c.Scenario), System: c.System, Workload: c.Workload,
		SizeBytes: int64(c.Size), TimeMs: inMs(c.Time.Std()), MemoryBytes: int64(c.Memory),
		Threads: c.Threads, ThinkMs: inMs(c.Think.Std()), sender: sender{c.SentBy(), c.Speaks(), c.Ratio}, Connection: c.Connection,
		Iterations: c.Iterations, openLoop: openLoop{
			Rate: unlessClosed(c, c.Rate.String()), Arrivals: c.Arrivals,
			DurationMs: inMs(c.Duration.Std()), RotateMs: inMs(c.Rotate.Std()), SettleMs: inMs(c.Settle.Std()),
		},
		Warmup: c.Warmup, TimeoutMs: inMs(c.Timeout.Std()),
	}
}

func timesOf(s measure.Summary) *times {
	if s.N == 0 {
		return nil
	}
	t := s.Times
	return &times{
		MedianMs: inMs(t.Median), P90Ms: inMs(t.P90), P99Ms: inMs(t.P99),
		MeanMs: inMs(t.Mean), IQRMean: inMs(t.IQRMean), MaxMs: inMs(t.Max),
	}
}
