package figure

import (
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"skerry.dev/skerry/lab/measure"
)

var (
	direct  = System{"direct", 0}
	mesh    = System{"istio-ambient", 1}
	gateway = System{"clusterlink", 2}
	tunnel  = System{"submariner", 3}
	skupper = System{"skupper", 4}
	hostile = System{"<script>alert(1)</script> & \"co\"\x00\n", 5}
)

// times are n response times in ns around a median in ms, with a tail.
func times(n int, median, tail float64) measure.Sorted {
	rng := rand.New(rand.NewPCG(7, uint64(n)+uint64(median*1000)))
	values := make([]float64, n)
	for i := range values {
		values[i] = median * 1e6 * (1 + 0.05*rng.ExpFloat64())
		if rng.Float64() < 0.02 {
			values[i] *= 1 + tail*rng.ExpFloat64()
		}
	}
	return measure.Sort(values)
}

func box(s System, values measure.Sorted) Box {
	return Box{System: s, Box: values.Box(), Slowest: time.Duration(values.Max())}
}

// examples are one figure of each kind and more where a kind has several looks.
var examples = sync.OnceValue(func() map[string]Figure {
	all := measured(Text{Title: "A title"})
	maps.Copy(all, compared(Text{Title: "A title"}))
	return all
})

// measured are those of response times.
func measured(text Text) map[string]Figure {
	return map[string]Figure{
		"boxes": Boxes(text, []Box{
			box(direct, times(4000, 21.2, 1)), box(mesh, times(4000, 23.4, 1)),
			box(gateway, times(4000, 22.9, 4)), {System: tunnel, Missing: "rejected"},
			box(skupper, times(4000, 27.5, 1)),
		}),
		"boxes-long": Boxes(text, []Box{
			box(System{"istio-ambient-waypoint", 1}, times(500, 3.4, 9)), box(hostile, times(500, 0.9, 9)),
		}),
		"cdf": CDF(text, []Distribution{
			{direct, times(20000, 21.2, 1)}, {mesh, times(20000, 23.4, 1)},
			{gateway, times(20000, 22.9, 4)}, {skupper, times(20000, 27.5, 1)},
		}),
		"cdf-tail": CDF(text, []Distribution{
			{direct, times(200000, 0.2, 1)}, {mesh, times(200000, 1.3, 40)}, {tunnel, times(2000, 0.5, 30)},
		}),
		"lines": Lines(text, Curves{
			Factor: Axis{"round-trip time", "ms"}, Metric: Axis{"median response time", "ms"},
			Lines: []Curve{
				{direct, []Level{{1, 1.4, 1.3, 1.5}, {5, 5.4, 5.2, 5.6}, {20, 21.3, 20.5, 22}, {100, 101, 99, 104}}},
				{mesh, []Level{{1, 4.1, 3.6, 4.9}, {5, 9.2, 8.7, 9.9}, {20, 31, 29, 34}, {100, 146, 139, 151}}},
				{gateway, []Level{{1, 2.1, 1.9, 2.4}, {5, 6.6, 6.1, 7}, {20, 24.3, 23, 25}, {100, 111, 108, 113}}},
			},
			Oracle: []Level{{X: 1, Value: 1}, {X: 5, Value: 5}, {X: 20, Value: 20}, {X: 100, Value: 100}},
		}),
		"lines-apart": Lines(text, Curves{
			Factor: Axis{"threads", ""}, Metric: Axis{"rate", "requests/s"},
			Lines: []Curve{
				{direct, []Level{{1, 900, 880, 930}, {2, 1750, 1700, 1790}, {4, 3200, 3100, 3300}, {8, 5200, 4900, 5400}}},
				{tunnel, []Level{{1, 600, 580, 640}, {2, 1150, 1100, 1190}, {4, 2000, 1900, 2200}, {8, 2600, 2300, 2900}}},
			},
			Oracle: []Level{{X: 1, Value: 1000}, {X: 2, Value: 2000}, {X: 4, Value: 4000}, {X: 8, Value: 8000}},
		}),
		"first": First(text, []FirstRequest{
			{System: direct, First: []float64{42.1, 42.9, 43.3, 41.8}, Later: 21.2},
			{System: mesh, First: []float64{130, 141, 122, 171}, Later: 23.4},
			{System: gateway, First: []float64{66.1, 67, 65.2, 88}, Later: 22.9},
			{System: tunnel, Missing: "not run"},
		}),
		"timeline":   Timelines(text, connections(4, 300)),
		"timelines8": Timelines(text, connections(11, 5000)),
		"band":       Timelines(text, []measure.Timeline{pooled(300)}),
		"events": Timelines(text, connections(2, 300),
			Mark{Name: "freeze c1/worker", From: time.Second, Until: 2 * time.Second}, Mark{Name: "links change", From: 4 * time.Second}),
	}
}

// compared are those of shares, ratios, resources and the lab itself.
func compared(text Text) map[string]Figure {
	return map[string]Figure{
		"heat": Heat(text, Grid{
			Rows:    []string{"echo, 64 B", "echo, 16 KiB", "1 MiB, 20 ms", "1 MiB, 100 ms"},
			Columns: []string{"direct", "istio-ambient", "clusterlink", "submariner", "skupper"},
			Cells: [][]Share{
				{{Value: 0.98}, {Value: 0.61}, {Value: 0.83}, {Value: 0.9}, {Value: 0.42}},
				{{Value: 0.95}, {Value: 0.55}, {Missing: "rejected"}, {Value: 0.84}, {Value: 0.31}},
				{{Value: 0.71}, {Value: 0.4}, {Value: 0.55}, {Missing: "no answer"}, {Value: 0.2}},
				{{Value: 0.33}, {Value: 0.12}, {Value: 0.25}, {Value: 0.074}},
			},
		}),
		"heat-long": Heat(text, Grid{
			Rows:    []string{"request/response, 64 B, 20 ms RTT, 16 threads", "stream, 100 MiB, 100 ms RTT, 0.1 % loss"},
			Columns: []string{"lan", "wan"},
			Cells:   [][]Share{{{Value: 0.97}, {Value: 0.5}}, {{Value: 0.031}, {Missing: "rejected"}}},
		}),
		"topology": Topology(text, Map{
			Clusters: []Cluster{
				{"hub", []Node{{"head", "gateway"}, {"n1", ""}, {"n2", "service"}}},
				{"edge", []Node{{"head", "gateway"}, {"n1", "client"}, {"n2", ""}}},
			},
			Hops: []Hop{{"edge/n1", "edge/head", ""}, {"edge/head", "hub/head", "10ms ±1ms 0.1% 100Mbit/s"}, {"hub/head", "hub/n2", ""}},
		}),
		"topology-large": Topology(text, large()),
		"resources": Resources(text, Uses{CPU: "CPU per request", Rows: []Use{
			{direct, "skerry-agent", "edge/n1", 0.031, 22 << 20},
			{mesh, "ztunnel", "edge/head", 0.21, 61 << 20},
			{mesh, "istiod", "hub/head", 0.002, 140 << 20},
			{gateway, "cl-dataplane", "edge/head", 0.094, math.NaN()},
		}}),
		"forest": Forest(text, Comparison{Metric: "median response time, B ÷ A", Rows: []Ratio{
			{Name: "direct, lan, echo 64 B", Value: 1.004, Low: 0.99, High: 1.015, Floor: 0.05, Verdict: Unchanged},
			{Name: "istio-ambient, wan, echo 64 B", Value: 1.12, Low: 1.09, High: 1.16, Floor: 0.05, Verdict: Worse},
			{Name: "clusterlink, wan, echo 16 KiB, 16 threads", Value: 0.88, Low: 0.85, High: 0.9, Floor: 0.08, Verdict: Better},
			{Name: "submariner, lan, stream", Value: 1.06, Low: 0.93, High: 1.21, Floor: 0.05},
			{Name: "skupper, lan, stream", Missing: "rejected"},
		}}),
		"forest-far": Forest(text, Comparison{Metric: "median response time, B ÷ A", Rows: []Ratio{
			{Name: "direct", Value: 90, Low: 80, High: 110, Floor: 0.05, Verdict: Worse},
			{Name: "other", Value: 0.4, Low: 0.3, High: 0.6, Floor: 2, Verdict: Better},
		}}),
	}
}

func connections(n, points int) []measure.Timeline {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	lines := make([]measure.Timeline, n)
	for i := range lines {
		lines[i] = measure.Timeline{Thread: i / 2, Connection: i%2 + 1}
		for j := range points {
			v := time.Duration((20 + float64(i)*2 + rng.ExpFloat64()) * 1e6)
			if j == 0 {
				v *= 2
			}
			lines[i].Points = append(lines[i].Points, measure.Point{
				At: time.Duration(j) * 20 * time.Millisecond, Low: v, Median: v, High: v, N: 1})
		}
	}
	return lines
}

func pooled(points int) measure.Timeline {
	rng := rand.New(rand.NewPCG(5, 5))
	t := measure.Timeline{Thread: -1, Connection: -1}
	for j := range points {
		v := 20e6 + 3e6*math.Sin(float64(j)/30)
		t.Points = append(t.Points, measure.Point{
			At: time.Duration(j) * 100 * time.Millisecond, N: 80,
			Low: time.Duration(v * 0.9), Median: time.Duration(v), High: time.Duration(v * (1.1 + 0.3*rng.ExpFloat64()))})
	}
	return t
}

// large has what is hard to draw: a way through four clusters and back into
// the first, past others, with long names.
func large() Map {
	var m Map
	for _, name := range []string{"frankfurt", "dublin", "sao-paulo-east1", "tokyo"} {
		c := Cluster{Name: name}
		for _, n := range []string{"gateway", "worker-one", "worker-two", "worker-three", "worker-four", "worker-five"} {
			c.Nodes = append(c.Nodes, Node{Name: n})
		}
		m.Clusters = append(m.Clusters, c)
	}
	m.Clusters[0].Nodes[1].Role = "client"
	m.Clusters[3].Nodes[5].Role = "service"
	m.Hops = []Hop{
		{"frankfurt/worker-one", "frankfurt/gateway", ""},
		{"frankfurt/gateway", "dublin/gateway", "12ms ±2ms 0.05% 1Gbit/s"},
		{"dublin/gateway", "sao-paulo-east1/gateway", "95ms ±4ms 0.1% 200Mbit/s"},
		{"sao-paulo-east1/gateway", "frankfurt/worker-three", "80ms"},
		{"frankfurt/worker-three", "tokyo/gateway", "120ms ±9ms 0.4% 50Mbit/s limit 1000 packets"},
		{"tokyo/gateway", "tokyo/worker-five", "1ms"},
	}
	return m
}
