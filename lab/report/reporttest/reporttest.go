// Package reporttest imagines runs that look like real ones, for tests of what
// shows them: lab/report, its comparison, the page in a browser. It measures
// nothing. The same run comes out every time. Start at WAN.
package reporttest

import (
	"math"
	"math/rand/v2"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/claim"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/oracle"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

const ms = quantity.Duration(time.Millisecond)

// Places in WAN's results of the cells that differ from the others.
const (
	NoAnswer = 7
	Rejected = 18
	NotRun   = 35
)

const (
	repetitions = 10
	iterations  = 200
	warmup      = 20
)

// WAN is an imagined experiment of the size that the papers print: three
// scenarios, four systems and three sizes, ten repetitions. One cell is
// rejected, one gets no answer, some have errors and one was not run. The seed
// moves every figure; slower multiplies the response times of clusterlink.
func WAN(seed uint64, slower float64) report.Input {
	in := report.Input{Experiment: wan(), Provenance: provenance(), Verdicts: verdicts(), Claims: claims()}
	for _, cell := range in.Experiment.Cells() {
		// Each cell has its own chance, so that to change one changes no other.
		rng := rand.New(rand.NewPCG(seed, uint64(len(in.Results))))
		in.Results = append(in.Results, result(cell, slower, rng))
	}
	cells := in.Results
	cells[Rejected] = report.Result{
		Cell: cells[Rejected].Cell, Links: cells[Rejected].Links, Oracle: cells[Rejected].Oracle,
		HopMap: cells[Rejected].HopMap, Proofs: drifted(cells[Rejected]),
		Rejected: "repetition 4: edge>cloud: delay 5.31ms after the load, asked 5ms ± 100µs",
	}
	cells[NoAnswer].Summary = measure.Summarise(refused(40))
	cells[NoAnswer].PerRepetition, cells[NoAnswer].Values, cells[NoAnswer].Timelines = nil, nil, nil
	cells[NotRun] = report.Result{Cell: cells[NotRun].Cell}
	return in
}

func wan() experiment.Experiment {
	return experiment.Experiment{
		Name:        "wan-echo",
		Description: "How long does an echo between two clusters take, through each interconnect and over three links?",
		Topology: topology.Topology{
			Clusters: []topology.Cluster{
				{Name: "edge", Nodes: []string{"gateway", "worker"}}, {Name: "cloud", Nodes: []string{"gateway", "worker"}},
			},
			Client: "edge/worker", Service: "cloud/worker",
		},
		Scenarios:   []experiment.Scenario{scenario("lcl", 0, 0), scenario("edg10", 5*ms, 0.0004), scenario("cloud20", 10*ms, 0.0008)},
		Systems:     []string{"direct", "clusterlink", "skupper", "submariner"},
		Workloads:   []experiment.Workload{{Name: "payload-echo", Size: experiment.List[quantity.Size]{1000, 100_000, 1_000_000}}},
		Load:        experiment.Load{Iterations: iterations, Warmup: warmup},
		Repetitions: repetitions,
	}
}

func scenario(name string, delay quantity.Duration, loss quantity.Fraction) experiment.Scenario {
	s := experiment.Scenario{Name: name}
	if delay > 0 {
		s.Links = []experiment.Link{{
			Between:    []topology.Ref{"edge", "cloud"},
			Impairment: impair.Impairment{Delay: delay, Loss: loss, Rate: 1e9},
		}}
	}
	return s
}

func provenance() report.Provenance {
	return report.Provenance{
		Started: time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC), Took: 47*time.Minute + 12*time.Second,
		Commit: "4f1c2d9", Version: "v0.1.0", Kernel: "Linux 6.12.9-amd64", Processor: "bench-1", Cores: 8, Seed: 20260314,
		Backend: "netem",
		Facts:   []report.Fact{{Name: "CPU governor", Value: "performance"}, {Name: "net.ipv4.tcp_rmem", Value: "4096 131072 6291456"}},
	}
}

func verdicts() []report.Verdict {
	return []report.Verdict{
		{Objective: experiment.Objective{Metric: "p99", Below: "50ms", Systems: []string{"direct"}}, Met: true, Seen: "43.1ms in cloud20/direct/payload-echo 1MB 1 thread kept"},
		{Objective: experiment.Objective{Metric: "errors", Below: "0.1%"}, Seen: "100% in lcl/skupper/payload-echo 100KB 1 thread kept"},
	}
}

func claims() []claim.Judgement {
	return []claim.Judgement{
		{
			Name: "direct-first", Kind: "ORDER", Result: claim.Holds, Effect: "0.92 [0.90, 0.94]",
			Statement: "median direct < submariner < clusterlink < skupper in cloud20 at 1KB",
			Why:       "the closest pair, direct ÷ submariner, lies below 1", Paper: "inter-cluster comparison, fig. 4",
		},
		{
			Name: "gateway-tax", Kind: "RATIO", Result: claim.Fails, Effect: "1.09 [1.08, 1.10]",
			Statement: "median clusterlink ÷ direct below 1.05 in edg10 at 1KB", Why: "the interval lies above 1.05",
		},
		{
			Name: "by-size", Kind: "SLOPE", Result: claim.Inconclusive, Effect: "15.9 [14.2, 17.6] µs/KB",
			Statement: "median of direct grows by less than 17µs/KB in lcl", Why: "17µs/KB lies in the interval: 12 more repetitions needed",
		},
	}
}

// result imagines a cell: round trips, transfer and a system's own overhead,
// with a tail, and now and then a retransmission timeout of 200 ms.
func result(c experiment.Cell, slower float64, rng *rand.Rand) report.Result {
	r := report.Result{Cell: c, HopMap: way(c)}
	var all []sample.Request
	var values [][]float64
	for n := range repetitions {
		one, responses := repetition(c, slower, rng)
		r.PerRepetition = append(r.PerRepetition, measure.Summarise(one))
		for i := range one {
			one[i].Thread += int32(n) << 16
		}
		all, values = append(all, one...), append(values, responses)
	}
	r.Summary = measure.Summarise(all)
	r.Values = measure.Repeat(values)
	r.Median = estimate(r)
	r.Timelines = []measure.Timeline{timeline(values[0])}
	r.Oracle, r.Observed = predicted(c, r.Summary.Times)
	r.Uses = uses(c)
	proven(&r, rng)
	return r
}

// estimate is the median with an interval of two standard errors of the
// repetitions' medians: as wide as the bootstrap's, and made at once.
func estimate(r report.Result) measure.Estimate {
	centre := float64(r.Summary.Times.Median)
	var sum float64
	for _, one := range r.PerRepetition {
		sum += math.Pow(float64(one.Times.Median)-centre, 2)
	}
	half := 2 * math.Sqrt(sum) / repetitions
	return measure.Estimate{Value: centre, Low: centre - half, High: centre + half, N: r.Summary.N, Repetitions: repetitions}
}

func repetition(c experiment.Cell, slower float64, rng *rand.Rand) (requests []sample.Request, responses []float64) {
	drift := 1 + 0.01*rng.NormFloat64()
	if c.System == "clusterlink" {
		drift *= slower
	}
	for i := range int32(c.Warmup + c.Iterations) {
		took := drift * responseMs(c, i == 0, rng)
		q := sample.Request{
			Connection: 1, Index: i + 1, Warmup: i < int32(c.Warmup),
			ScheduledNs: 1e9, LastByteNs: 1e9 + int64(took*1e6), Status: 200,
		}
		if i == 100 && c.System == "skupper" && c.Size == 1_000_000 {
			q.Error = "timeout"
		}
		if requests = append(requests, q); !q.Warmup && q.Error == "" {
			responses = append(responses, took*1e6)
		}
	}
	return requests, responses
}

func responseMs(c experiment.Cell, first bool, rng *rand.Rand) float64 {
	round := 0.08 + rttMs(c)
	system := place(c.System)
	overhead := []float64{0.05, 0.42, 0.65, 0.21}[system] * math.Exp(0.25*rng.NormFloat64())
	response := round*(1+0.5*math.Log10(float64(c.Size)/1000)) + overhead + float64(c.Size)*16e-6*(1+0.1*rng.ExpFloat64())
	if first {
		response += round * float64(1+system)
	}
	if len(c.Scenario.Links) > 0 && rng.Float64() < 0.004 {
		response += 200
	}
	return response
}

func place(system string) int {
	return map[string]int{"direct": 0, "clusterlink": 1, "skupper": 2, "submariner": 3}[system]
}

func rttMs(c experiment.Cell) float64 {
	if len(c.Scenario.Links) == 0 {
		return 0
	}
	return 2 * float64(c.Scenario.Links[0].Delay) / float64(ms)
}

func timeline(responses []float64) measure.Timeline {
	line := measure.Timeline{Connection: 1}
	var at time.Duration
	for _, ns := range responses {
		took := time.Duration(ns)
		line.Points = append(line.Points, measure.Point{At: at, Low: took, Median: took, High: took, N: 1})
		at += took
	}
	return line
}

func predicted(c experiment.Cell, t measure.Times) (oracle.Prediction, oracle.Observed) {
	var p oracle.Prediction
	if rtt := time.Duration(rttMs(c) * 1e6); rtt > 0 {
		p.RTT, p.Serialisation = rtt, 2*time.Duration(c.Size)*8*time.Nanosecond
		p.Limit = p.RTT + p.Serialisation
		p.Rounds = int(math.Log2(float64(c.Size)/14600 + 1))
		p.Expected = p.Limit + time.Duration(p.Rounds)*rtt
		p.Rate = 1 / p.Limit.Seconds()
	}
	rate := 1 / t.Mean.Seconds() // of one thread
	return p, oracle.Observed{Rate: rate, InFlight: 0.998, Little: rate * t.Mean.Seconds()}
}

func uses(c experiment.Cell) []report.Use {
	all := []report.Use{
		{Name: "load", Node: "edge/worker", CPU: 41 * time.Millisecond, MemoryBytes: 21 << 20},
		{Name: "service", Node: "cloud/worker", CPU: 36 * time.Millisecond, MemoryBytes: 14 << 20},
	}
	if c.System == "direct" {
		return all
	}
	for _, cluster := range []string{"edge", "cloud"} {
		all = append(all, report.Use{
			Name: c.System, Node: topology.Ref(cluster + "/gateway"),
			CPU: time.Duration(60+20*place(c.System)) * time.Millisecond, MemoryBytes: 30 << 20,
		})
	}
	return all
}

func refused(n int) []sample.Request {
	requests := make([]sample.Request, n)
	for i := range requests {
		requests[i] = sample.Request{Index: 1, ScheduledNs: 1e9, Error: "connection refused"}
	}
	return requests
}

func way(c experiment.Cell) experiment.HopMap {
	path := []topology.Ref{"edge/worker", "edge/gateway", "cloud/gateway", "cloud/worker"}
	if c.System == "direct" {
		path = []topology.Ref{"edge/worker", "cloud/worker"}
	}
	return c.Scenario.HopMap(path)
}
