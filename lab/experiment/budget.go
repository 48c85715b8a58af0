package experiment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/topology"
)

// setUp is an allowance for what a repetition does besides its requests: start
// the processes and wait until they are ready.
const setUp = 500 * time.Millisecond

// podsStart is what the pods of a repetition take on kubernetes beside setUp, until
// they are ready and until they are gone: a kubelet looks at them once a second.
const podsStart = 4 * time.Second

// toolStart is what a tool takes before its first request and after its last:
// JMeter has a virtual machine to start, k6 a script to compile and a metric
// engine to stop.
func toolStart(tool string) time.Duration {
	switch tool {
	case ToolJMeter:
		return 2 * time.Second
	case ToolK6:
		return 500 * time.Millisecond
	}
	return 0
}

// workloadStart is what a workload takes until it answers, beside setUp: RabbitMQ
// has an Erlang machine to start, and to stop.
func workloadStart(name string) time.Duration {
	if name == "rabbitmq" {
		return 8 * time.Second
	}
	return 0
}

// Estimate is how long one repetition of a cell takes on a perfect host: every
// request crosses the links of its path once there and back (a new connection
// more often), waits for the workload, and shares the slowest rate with the other
// threads; a thread thinks between its requests; the links are proven before and
// after. Without a path it goes from the client straight to the service. It knows
// nothing of the system's own work, of slow start or of retransmission, so the
// truth is longer.
func (e *Experiment) Estimate(c Cell, path ...topology.Ref) time.Duration {
	if len(path) == 0 {
		path = []topology.Ref{e.Topology.Client, e.Topology.Service}
	}
	there := c.Scenario.along(path)
	path = slices.Clone(path)
	slices.Reverse(path)
	back := c.Scenario.along(path)
	trips := 1.0
	if c.Connection == ConnectionNew {
		trips += float64(c.Dial())
	}
	_, answer := c.Bodies()
	request := trips*seconds(there.Delay+back.Delay) + seconds(c.Time) +
		float64(c.Threads)*(serialise(c.Size, there.Rate)+serialise(answer, back.Rate))
	requests := c.Iterations + c.Warmup
	total := request*float64(requests) + seconds(c.Think)*float64(max(requests-1, 0)) + seconds(c.Ramp)
	if c.Duration > 0 {
		total = seconds(c.Settle+c.Duration) + request // the last begins when that is over
	}
	if e.Substrate == SubstrateKubernetes {
		total += podsStart.Seconds()
	}
	total += (setUp + toolStart(c.Tool) + workloadStart(c.Workload) + c.Scenario.proofs()).Seconds()
	if total >= float64(math.MaxInt64)/1e9 {
		return math.MaxInt64
	}
	return time.Duration(total * 1e9)
}

const (
	// probePause lies between the parts of a probe.
	probePause = time.Millisecond
	// probeSilence is how long a probe waits for packets that were lost.
	probeSilence = 3 * time.Millisecond
)

// proofs is how long the links of a scenario are probed: those of its first phase
// before the load, those of its last after it.
func (s Scenario) proofs() time.Duration {
	phases := s.Phases()
	return probe(phases[0].Directions) + probe(phases[len(phases)-1].Directions)
}

// probe is how long the packets of a probe take: those that time delays are on all
// directions at once, then each direction has its bursts. A link that replays a
// trace is not probed.
func probe(directions []Direction) time.Duration {
	var delays, bursts, crossing, silence time.Duration
	for _, d := range directions {
		stages := d.Stages()
		if stages.IsZero() || stages.Replays() {
			continue
		}
		packets := proof.Delays(stages...)
		delays = max(delays, packets[len(packets)-1].At+probePause)
		_, span := proof.Bursts(stages...)
		bursts += span
		all := stages.Together()
		crossing = max(crossing, (all.Delay + stages.Reach()).Std())
		if all.MeanLoss() > 0 || all.Corrupt > 0 {
			silence = probeSilence
		}
	}
	return delays + bursts + crossing + silence
}

// along is the delay of all links of a path, and the rate of the slowest.
func (s Scenario) along(path []topology.Ref) (all impair.Impairment) {
	for _, h := range s.HopMap(path).Hops {
		link := h.Link.Together()
		all.Delay += link.Delay
		if all.Rate == 0 || link.Rate > 0 && link.Rate < all.Rate {
			all.Rate = link.Rate
		}
	}
	return all
}

// Bodies are the bytes that a request of the cell carries there, and those that
// its answer carries back, without heads.
func (c Cell) Bodies() (request, answer quantity.Size) {
	kind, _ := workloadKind(c.Workload)
	if kind.echoes {
		return c.Size, c.Size
	}
	return c.Size, kind.answer
}

func seconds(d quantity.Duration) float64 { return d.Std().Seconds() }

// serialise is how long a body takes onto the wire, in seconds.
func serialise(s quantity.Size, r quantity.Rate) float64 {
	if r == 0 {
		return 0
	}
	return 8 * float64(s) / float64(r)
}

// ErrNotRunnable is wrapped where the host has too few cores for a cell.
var ErrNotRunnable = errors.New("not runnable here")

// Need is what a part of a cell takes: BusyLoops never sleep and take a core
// each; Processes share what is left.
type Need struct {
	BusyLoops int `json:"busy_loops"`
	Processes int `json:"processes"`
}

// CoreBudget is what a cell needs, by who needs it.
type CoreBudget struct {
	// Emulator of the links in user space: one busy loop, where a link does anything.
	Emulator Need `json:"emulator"`
	Load     Need `json:"load"`
	Service  Need `json:"service"`
	System   Need `json:"system"`
}

// CoreBudget adds what the system needs to what the lab needs for the cell.
func (c Cell) CoreBudget(system Need) CoreBudget {
	b := CoreBudget{Load: Need{Processes: 1}, Service: Need{Processes: 1}, System: system}
	for _, p := range c.Scenario.Phases() {
		for _, d := range p.Directions {
			if !d.IsZero() {
				b.Emulator = Need{BusyLoops: 1, Processes: 1}
			}
		}
	}
	return b
}

// Total sums the parts.
func (b CoreBudget) Total() Need {
	var sum Need
	for _, n := range []Need{b.Emulator, b.Load, b.Service, b.System} {
		sum.BusyLoops += n.BusyLoops
		sum.Processes += n.Processes
	}
	return sum
}

// NotRunnable says what a host with that many cores lacks; nil where it lacks
// nothing. Every busy loop takes a core, and one core is for the rest of the
// lab; processes that sleep between requests do not count.
func (b CoreBudget) NotRunnable(cores int) error {
	loops := b.Total().BusyLoops
	if loops == 0 || loops <= cores-1 {
		return nil
	}
	return fmt.Errorf("%w: %d busy loops (%d of the link emulator, %d of the system) and the rest of the lab need %d cores, this host has %d",
		ErrNotRunnable, loops, b.Emulator.BusyLoops, b.System.BusyLoops, loops+1, cores)
}
