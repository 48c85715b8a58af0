// Package experiment is the experiment file: its types, its strict reading, the
// matrix of cells that it asks for and what each cell will cost. It starts and
// measures nothing. Begin at Read, then Experiment.Cells and Order.
package experiment

import (
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// Experiment is one file: a matrix of scenarios, systems, workloads and load,
// and what is asked of the result.
type Experiment struct {
	// Name of the experiment: lower-case letters, digits and hyphens.
	Name string `yaml:"name" json:"name" jsonschema:"pattern=^[a-z0-9]([a-z0-9-]{0\\,61}[a-z0-9])?$"`
	// Description says in a sentence what the experiment is for.
	Description string `yaml:"description,omitempty" json:"description,omitempty"`
	// Substrate that the nodes are: hosts (default), where the workload is a process,
	// or kubernetes, where each cluster is one and the workload a Deployment.
	Substrate string `yaml:"substrate,omitempty" json:"substrate,omitempty" jsonschema:"enum=hosts,enum=kubernetes"`
	// Kubernetes is what is chosen of its clusters, on that substrate.
	Kubernetes *Kubernetes `yaml:"kubernetes,omitempty" json:"kubernetes,omitempty"`
	// Topology of clusters and nodes.
	Topology topology.Topology `yaml:"topology" json:"topology"`
	// Emulator of the links shares the machine's cores with all else of the lab (default), or
	// is apart: on a core that nothing else of it runs on.
	Emulator string `yaml:"emulator,omitempty" json:"emulator,omitempty" jsonschema:"enum=shares,enum=apart"`
	// Scenarios are named sets of impairments; each is a level of the matrix.
	Scenarios []Scenario `yaml:"scenarios" json:"scenarios" jsonschema:"minItems=1"`
	// Systems under test, each by the name of its plug-in, or of several that stand
	// on one another, bottom first, joined by "+"; each is a level.
	Systems []string `yaml:"systems" json:"systems" jsonschema:"minItems=1,uniqueItems=true"`
	// Workloads served; each, at each of its sizes, is a level.
	Workloads []Workload `yaml:"workloads" json:"workloads" jsonschema:"minItems=1"`
	// Load that drives the workload; every list in it is a factor.
	Load Load `yaml:"load" json:"load"`
	// Repetitions of every cell, each with fresh processes and connections.
	Repetitions int `yaml:"repetitions" json:"repetitions" jsonschema:"minimum=1,maximum=1000"`
	// Seed of the order of cells, of loss and of jitter; by default drawn and recorded.
	Seed uint64 `yaml:"seed,omitempty" json:"seed,omitempty" jsonschema:"minimum=0"`
	// Objectives that the run must meet; a miss is exit status 1.
	Objectives []Objective `yaml:"objectives,omitempty" json:"objectives,omitempty"`
	// Claims that are judged by the samples; one that fails is exit status 1.
	Claims []Claim `yaml:"claims,omitempty" json:"claims,omitempty"`

	// document knows where the values stand, for the checks that come later.
	document strict.Document
}

// Scenario is a named set of impairments.
type Scenario struct {
	// Name of the scenario, as charts show it: lower-case letters, digits and hyphens.
	Name string `yaml:"name" json:"name" jsonschema:"pattern=^[a-z0-9]([a-z0-9-]{0\\,61}[a-z0-9])?$"`
	// Unit that loss, jitter and rate fall on: packet (default) or superpacket.
	Unit impair.Unit `yaml:"unit,omitempty" json:"unit,omitempty" jsonschema:"enum=packet,enum=superpacket"`
	// Links that are impaired; all others cost nothing.
	Links []Link `yaml:"links,omitempty" json:"links,omitempty"`
	// Timeline changes links while the load runs, and has nodes, processes, pods and
	// control planes fail.
	Timeline []Event `yaml:"timeline,omitempty" json:"timeline,omitempty"`
}

// Link impairs both directions between two ends, or one.
type Link struct {
	// Between names both ends: two clusters or two nodes; each direction is
	// impaired separately, as written here.
	Between []topology.Ref `yaml:"between,omitempty" json:"between,omitempty" jsonschema:"minItems=2,maxItems=2,oneof_required=both directions"`
	// From names the end that sends, where one direction alone is impaired.
	From topology.Ref `yaml:"from,omitempty" json:"from,omitempty" jsonschema:"oneof_required=one direction"`
	// To names the end that receives; from and to stand in place of between.
	To topology.Ref `yaml:"to,omitempty" json:"to,omitempty" jsonschema:"oneof_required=one direction"`

	impair.Impairment `yaml:",inline"`
	// Then are further stages that a packet meets one after the other, each with
	// the keys of an impairment.
	Then []impair.Impairment `yaml:"then,omitempty" json:"then,omitempty" jsonschema:"maxItems=7"`
}

// Workload is the application served.
type Workload struct {
	// Name: payload-echo, payload-recv, static-reply, hello-world, sleep or burn; or
	// a message broker, mosquitto (MQTT) or rabbitmq (AMQP 0-9-1).
	Name string `yaml:"name" json:"name" jsonschema:"enum=payload-echo,enum=payload-recv,enum=static-reply,enum=hello-world,enum=sleep,enum=burn,enum=mosquitto,enum=rabbitmq,enum=listener"`
	// Size of the request's body, for payload-echo and payload-recv, or of a broker's
	// message; a list is a factor.
	Size List[quantity.Size] `yaml:"size,omitempty" json:"size,omitempty"`
	// Time that sleep sleeps or burn computes per request; a list is a factor.
	Time List[quantity.Duration] `yaml:"time,omitempty" json:"time,omitempty"`
	// Memory that burn touches per request.
	Memory quantity.Size `yaml:"memory,omitempty" json:"memory,omitempty"`
}

// Load drives a workload in a closed loop with iterations, in one of some duration
// with a ratio, or in an open one with rate and duration. Every list is a factor.
type Load struct {
	// Tool that sends the requests: skerry (default), ab, hey, jmeter, k6 or wrk.
	Tool List[string] `yaml:"tool,omitempty" json:"tool,omitempty"`
	// Protocol: http/1.1 (default), http/2 (without TLS), or as plain bytes, for
	// payload-echo alone, tcp or udp (one datagram each way). Brokers have their own.
	Protocol List[string] `yaml:"protocol,omitempty" json:"protocol,omitempty"`
	// Threads that request at the same time, 1 to 1024; 1 by default. In an open
	// loop they bound the requests in flight.
	Threads List[int] `yaml:"threads,omitempty" json:"threads,omitempty"`
	// Ratio in place of threads: how many of them request at each of the topology's
	// entries, in their order, such as "32:2:1:1"; 0 is possible. With it the loop is a
	// closed one that goes on for duration.
	Ratio List[string] `yaml:"ratio,omitempty" json:"ratio,omitempty"`
	// Iterations: requests per thread that count.
	Iterations int `yaml:"iterations,omitempty" json:"iterations,omitempty" jsonschema:"minimum=1,maximum=10000000"`
	// Rate at which requests are due, answered or not: an open loop.
	Rate List[quantity.Frequency] `yaml:"rate,omitempty" json:"rate,omitempty"`
	// Arrivals of an open loop: constant (default) or poisson.
	Arrivals string `yaml:"arrivals,omitempty" json:"arrivals,omitempty" jsonschema:"enum=constant,enum=poisson"`
	// Duration of an open loop, from its start to its last arrival; with a ratio how long
	// threads begin requests.
	Duration quantity.Duration `yaml:"duration,omitempty" json:"duration,omitempty"`
	// Rotate is after what time each thread of a ratio calls the next entry, again and
	// again, with connection new.
	Rotate quantity.Duration `yaml:"rotate,omitempty" json:"rotate,omitempty"`
	// Settle is how long threads of a ratio request before duration begins; what they ask
	// then is recorded but marked as warm-up.
	Settle quantity.Duration `yaml:"settle,omitempty" json:"settle,omitempty"`
	// Warmup requests per thread that are recorded but marked as warm-up.
	Warmup int `yaml:"warmup,omitempty" json:"warmup,omitempty" jsonschema:"minimum=0,maximum=10000000"`
	// Think is the time between an answer and the next request of a thread.
	Think List[quantity.Duration] `yaml:"think,omitempty" json:"think,omitempty"`
	// Ramp is the span over which the threads start, evenly; by default at once.
	Ramp quantity.Duration `yaml:"ramp,omitempty" json:"ramp,omitempty"`
	// Connection: kept (default; one per thread) or new (one per request); with
	// udp a socket.
	Connection List[string] `yaml:"connection,omitempty" json:"connection,omitempty"`
	// Timeout of one request; by default 30s, with udp 1s, where it is how a lost
	// datagram is noticed.
	Timeout quantity.Duration `yaml:"timeout,omitempty" json:"timeout,omitempty"`
}

// Objective is a bound on a figure of every cell that it selects.
type Objective struct {
	// Metric: p50, p90, p99, mean, max (response time), first (request 1 of a
	// connection, median) or errors (share of requests).
	Metric string `yaml:"metric" json:"metric" jsonschema:"enum=p50,enum=p90,enum=p99,enum=mean,enum=max,enum=first,enum=errors"`
	// Below is the bound: a duration, or for errors a percentage.
	Below string `yaml:"below" json:"below"`
	// Systems that it holds for; absent means all.
	Systems []string `yaml:"systems,omitempty" json:"systems,omitempty" jsonschema:"minItems=1"`
	// Scenarios that it holds for; absent means all.
	Scenarios []string `yaml:"scenarios,omitempty" json:"scenarios,omitempty" jsonschema:"minItems=1"`
	// Workloads that it holds for; absent means all.
	Workloads []string `yaml:"workloads,omitempty" json:"workloads,omitempty" jsonschema:"minItems=1"`
}

// List is a factor: it reads one value or a list of values.
type List[T any] []T

// OneOrMany marks the list for internal/strict.
func (List[T]) OneOrMany() {}

// OpenLoop is when the requests of a cell are due, answered or not. A Rate above
// 0 makes the loop open: Arrivals and Duration are set, Iterations is 0. Without one
// Duration is that of a closed loop by time, see Cell.Timed.
type OpenLoop struct {
	Rate     quantity.Frequency `json:"rate,omitempty"`
	Arrivals string             `json:"arrivals,omitempty"`
	Duration quantity.Duration  `json:"duration,omitempty"`
	// Rotate is after what time, in a closed one with a ratio, each thread calls the next
	// of the topology's entries, again and again; 0 is never.
	Rotate quantity.Duration `json:"rotate,omitempty"`
	// Settle is how long the load of one with a ratio goes on before Duration begins.
	Settle quantity.Duration `json:"settle,omitempty"`
}

// Sender is who sends the requests of a cell, how they speak and where they enter.
type Sender struct {
	// Tool that sends the requests, empty for Skerry's own load.
	Tool string `json:"tool,omitempty"`
	// Protocol of the load, empty for http/1.1.
	Protocol string `json:"protocol,omitempty"`
	// Ratio of the threads at the topology's entries, empty where they call one address.
	Ratio string `json:"ratio,omitempty"`
}

// Cell is one combination of factors: what one repetition runs.
type Cell struct {
	Scenario Scenario `json:"scenario"`
	System   string   `json:"system"`
	Workload string   `json:"workload"`
	Sender
	// Size of the request's body in bytes; 0 where the workload takes none.
	Size quantity.Size `json:"size"`
	// Time that sleep sleeps or burn computes.
	Time quantity.Duration `json:"time,omitempty"`
	// Memory that burn touches.
	Memory     quantity.Size     `json:"memory,omitempty"`
	Threads    int               `json:"threads"`
	Iterations int               `json:"iterations"`
	Warmup     int               `json:"warmup,omitempty"`
	Think      quantity.Duration `json:"think,omitempty"`
	Ramp       quantity.Duration `json:"ramp,omitempty"`
	Connection string            `json:"connection"`
	Timeout    quantity.Duration `json:"timeout"`
	OpenLoop
}
