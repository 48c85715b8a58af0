package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

const ms = quantity.Duration(time.Millisecond)

// wan is an imagined experiment of the size that the papers print: three
// scenarios, four systems and three sizes, five repetitions. One cell is
// rejected, one gets no answer, one has errors and one was not run.
func wan() Input {
	in := Input{
		Experiment: experiment.Experiment{
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
			Repetitions: 5,
		},
		Provenance: Provenance{
			Started: time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC), Took: 47*time.Minute + 12*time.Second,
			Commit: "4f1c2d9", Version: "v0.1.0", Kernel: "6.12.9-amd64", Processor: "bench-1", Cores: 8, Seed: 20260314,
		},
		Verdicts: []Verdict{
			{experiment.Objective{Metric: "p99", Below: "50ms", Systems: []string{"direct"}}, true, "43.10 ms in the worst of 9 cells (cloud20, direct, 1MB)"},
			{experiment.Objective{Metric: "errors", Below: "0.1%"}, false, "100% in the worst of 36 cells (lcl, skupper, 100KB)"},
		},
	}
	rng := newRand()
	for _, size := range []quantity.Size{1000, 100_000, 1_000_000} {
		for _, s := range in.Experiment.Scenarios {
			for i, system := range in.Experiment.Systems {
				c := experiment.Cell{
					Scenario: s, System: system, Workload: "payload-echo", Size: size,
					Threads: 1, Iterations: 200, Warmup: 20, Connection: "kept", Timeout: 30_000 * ms,
				}
				in.Results = append(in.Results, result(c, i, rng))
			}
		}
	}
	in.Results[6] = Result{Cell: in.Results[6].Cell, Links: in.Results[6].Links, Rejected: "link edge>cloud drifted: asked 5 ms, probed 5.31 ms after the cell"}
	in.Results[14].Summary = measure.Summarise(refused(40))
	in.Results[14].PerRepetition = nil
	in.Results[35] = Result{Cell: in.Results[35].Cell}
	return in
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

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

// result imagines a cell: round trips, transfer and a system's own overhead,
// with a tail, and now and then a retransmission timeout of 200 ms.
func result(c experiment.Cell, system int, rng *rand.Rand) Result {
	r := Result{Cell: c, HopMap: hops(c)}
	var all []sample.Request
	for range 5 {
		var one []sample.Request
		drift := 1 + 0.02*rng.NormFloat64()
		for i := range int32(c.Warmup + c.Iterations) {
			one = append(one, request(c, i+1, drift*responseMs(c, system, i == 0, rng)))
		}
		if c.System == "skupper" && c.Size == 1_000_000 {
			one[100].Error = "timeout"
		}
		r.PerRepetition = append(r.PerRepetition, measure.Summarise(one))
		all = append(all, one...)
	}
	r.Summary = measure.Summarise(all)
	for _, l := range c.Scenario.Links {
		for _, name := range []string{"edge>cloud", "cloud>edge"} {
			packets := uint64(1100 * (2 + int64(c.Size)/1448))
			r.Links = append(r.Links, Link{
				Asked: impair.Direction{Name: name, Unit: impair.UnitPacket, Impairment: l.Impairment},
				Seen:  impair.Counters{Packets: packets, Bytes: packets * 900, Lost: uint64(float64(packets) * float64(l.Loss))},
			})
		}
	}
	if len(r.Links) > 0 && c.System == "submariner" {
		r.Links[0].Seen.Late, r.Links[0].Seen.LateMaxNs = 3, 1_240_000
	}
	return r
}

func responseMs(c experiment.Cell, system int, first bool, rng *rand.Rand) float64 {
	rtt := 0.08
	if len(c.Scenario.Links) > 0 {
		rtt += 2 * float64(c.Scenario.Links[0].Delay) / float64(ms)
	}
	overhead := []float64{0.05, 0.42, 0.65, 0.21}[system] * math.Exp(0.25*rng.NormFloat64())
	response := rtt*(1+0.5*math.Log10(float64(c.Size)/1000)) + overhead + float64(c.Size)*16e-6*(1+0.1*rng.ExpFloat64())
	if first {
		response += rtt * float64(1+system)
	}
	if len(c.Scenario.Links) > 0 && rng.Float64() < 0.004 {
		response += 200
	}
	return response
}

func request(c experiment.Cell, index int32, responseMs float64) sample.Request {
	return sample.Request{
		Connection: 1, Index: index, Warmup: index <= int32(c.Warmup),
		ScheduledNs: 1e9, LastByteNs: 1e9 + int64(responseMs*1e6), Status: 200,
	}
}

func refused(n int) []sample.Request {
	requests := make([]sample.Request, n)
	for i := range requests {
		requests[i] = sample.Request{Index: 1, ScheduledNs: 1e9, Error: "connection refused"}
	}
	return requests
}

func hops(c experiment.Cell) string {
	link := "no impairment"
	if len(c.Scenario.Links) > 0 {
		link = fmt.Sprintf("%s, loss %s", c.Scenario.Links[0].Delay, c.Scenario.Links[0].Loss)
	}
	if c.System == "direct" {
		return "edge/worker ──(" + link + ")── cloud/worker"
	}
	return "edge/worker ── edge/gateway ──(" + link + ")── cloud/gateway ── cloud/worker"
}
