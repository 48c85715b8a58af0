package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/workload"
	"skerry.dev/skerry/lab/workload/broker"
)

// ErrSpec is returned for a Spec that cannot be run.
var ErrSpec = errors.New("bad load")

// How a thread uses connections.
const (
	// Kept is one connection per thread, opened again only when it ends.
	Kept = "kept"
	// New is one connection per request, closed after the answer.
	New = "new"
)

// How the requests of an open loop arrive.
const (
	// Constant is one every 1/rate, the first at once.
	Constant = "constant"
	// Poisson has independent, exponential times between arrivals.
	Poisson = "poisson"
)

// Bounds of a load.
const (
	samplesMax     = 2e7
	threadsMax     = 10_000
	targetsMax     = 16
	rateMax        = 1e6     // requests a second
	arrivalsMax    = 1e7     // on average: Poisson arrivals stay below samplesMax
	poissonMin     = 20      // on average: of 20 there is none in 2 loads of 10⁹
	buffersMax     = 2 << 30 // bytes, all threads together
	specMax        = 1 << 20 // bytes of JSON
	timeoutDefault = quantity.Duration(30 * time.Second)
)

// OpenLoop says when requests are due, answered or not.
type OpenLoop struct {
	// Rate at which requests are due makes the loop open: Threads then bounds
	// the requests in flight, and Iterations, Warmup, Think and Ramp stay 0.
	Rate quantity.Frequency `json:"rate,omitempty"`
	// Arrivals are Constant (also where empty) or Poisson.
	Arrivals string `json:"arrivals,omitempty"`
	// Duration from the start to the last arrival; of a load with Targets, which has no
	// rate, how long its threads begin requests.
	Duration quantity.Duration `json:"duration,omitempty"`
	// Rotate has each thread of such a load ask the next of the Targets, in their order,
	// after that time and again after each; 0 has it stay. Connections are then New.
	Rotate quantity.Duration `json:"rotate,omitempty"`
	// Settle is how long such a load requests before Duration begins: those are warm-up.
	Settle quantity.Duration `json:"settle,omitempty"`
}

// Work is what a request has the service do.
type Work struct {
	// Time that sleep sleeps or burn computes.
	Time quantity.Duration `json:"time,omitempty"`
	// Memory that burn touches.
	Memory quantity.Size `json:"memory,omitempty"`
}

// Target is one of several that a load asks at the same time.
type Target struct {
	// Target is HOST:PORT, as that of a Spec.
	Target string `json:"target"`
	// Threads that ask it, 1 or more; of a load that rotates, that ask it first, or none.
	Threads int `json:"threads"`
}

// Spec says what to request, how often and in which way.
type Spec struct {
	// Target is HOST:PORT. A name is looked up once, before the first request.
	Target string `json:"target"`
	// Targets stand in place of Target and Threads, in a closed loop by Iterations or by
	// Duration. Threads are numbered through them in order.
	Targets []Target `json:"targets,omitempty"`
	// Workload that the target serves: a name of package workload, or a broker.
	Workload string `json:"workload"`
	// Protocol by which it is asked: one of package workload, of a broker its own;
	// empty is HTTP/1.1.
	Protocol string `json:"protocol,omitempty"`
	// Size of the request's body, for payload-echo, payload-recv and brokers.
	Size quantity.Size `json:"size,omitempty"`
	Work
	// Threads that request at the same time; 0 is 1.
	Threads int `json:"threads,omitempty"`
	// Iterations are the requests per thread that count, in a closed loop.
	Iterations int `json:"iterations,omitempty"`
	// Warmup requests per thread come first, on the same connections.
	Warmup int `json:"warmup,omitempty"`
	// Think time of a thread between an answer and its next request.
	Think quantity.Duration `json:"think,omitempty"`
	// Ramp is the span over which the threads start, evenly; 0 starts all at once.
	Ramp quantity.Duration `json:"ramp,omitempty"`
	// Timeout of one request, its dial included; 0 is 30s.
	Timeout quantity.Duration `json:"timeout,omitempty"`
	// Connection is Kept (also where empty) or New.
	Connection string `json:"connection,omitempty"`
	// Seed of the body's random bytes and of Poisson arrivals.
	Seed uint64 `json:"seed,omitempty"`
	OpenLoop
}

// ReadSpec reads one Spec as JSON and checks it. Unknown keys are errors.
func ReadSpec(r io.Reader) (Spec, error) {
	d := json.NewDecoder(io.LimitReader(r, specMax))
	d.DisallowUnknownFields()
	var s Spec
	if err := d.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Spec{}, fmt.Errorf("%w: more than one JSON object", ErrSpec)
	}
	return s, s.Check()
}

// Check says what is wrong with the spec; the error is ErrSpec.
func (s Spec) Check() error {
	loop := s.checkClosed
	if s.open() {
		loop = s.checkOpen
	}
	for _, err := range []error{s.checkWorkload(), s.checkProtocol(), s.checkTargets(), loop(), s.checkConnections()} {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSpec, err)
		}
	}
	return nil
}

func (s Spec) checkWorkload() error {
	payload := s.Workload == workload.PayloadEcho || s.Workload == workload.PayloadRecv || s.brokered()
	names := slices.Concat(workload.Names(), broker.Names())
	switch {
	case !slices.Contains(names, s.Workload):
		return fmt.Errorf("workload %q is none of %s", s.Workload, strings.Join(names, ", "))
	case s.Size < 0 || s.Size > workload.BodyMax:
		return fmt.Errorf("size %s lies outside 0B to %s", s.Size, quantity.Size(workload.BodyMax))
	case s.Size > 0 && !payload:
		return fmt.Errorf("size %s: %s takes no body", s.Size, s.Workload)
	case s.Time > 0 && s.Workload != workload.Sleep && s.Workload != workload.Burn:
		return fmt.Errorf("time %s: only sleep and burn take one", s.Time)
	case s.Workload == workload.Sleep && s.Time.Std() > workload.SleepMax:
		return fmt.Errorf("time %s is over the bound of %s", s.Time, workload.SleepMax)
	case s.Workload == workload.Burn && s.Time.Std() > workload.BurnMax:
		return fmt.Errorf("time %s is over the bound of %s", s.Time, workload.BurnMax)
	case s.Memory > 0 && s.Workload != workload.Burn:
		return fmt.Errorf("memory %s: only burn takes one", s.Memory)
	case s.Time < 0 || s.Memory < 0 || s.Memory > workload.MemoryMax:
		return fmt.Errorf("time %s or memory %s is out of range", s.Time, s.Memory)
	}
	return nil
}

// brokered reports a load whose workload is a broker.
func (s Spec) brokered() bool { return broker.Protocol(s.Workload) != "" }

func (s Spec) checkProtocol() error {
	raw := s.Protocol == workload.TCP || s.Protocol == workload.UDP
	switch {
	case s.brokered() && s.Protocol != broker.Protocol(s.Workload):
		return fmt.Errorf("protocol %q: %s speaks %s", s.Protocol, s.Workload, broker.Protocol(s.Workload))
	case s.brokered() && s.Size < 1:
		return fmt.Errorf("size %s: a message has at least 1 byte", s.Size)
	case s.brokered():
		return nil
	case s.Protocol != "" && !slices.Contains(workload.Protocols(), s.Protocol):
		return fmt.Errorf("protocol %q is none of %s", s.Protocol, strings.Join(workload.Protocols(), ", "))
	case raw && s.Workload != workload.PayloadEcho:
		return fmt.Errorf("%s is not served over %s: %s alone is", s.Workload, s.Protocol, workload.PayloadEcho)
	case raw && s.Size < 1:
		return fmt.Errorf("size %s: over %s an echo has at least 1 byte", s.Size, s.Protocol)
	case s.Protocol == workload.UDP && s.Size > workload.DatagramMax:
		return fmt.Errorf("size %s: a datagram has at most %d bytes", s.Size, workload.DatagramMax)
	}
	return nil
}

func (s Spec) checkTargets() error {
	switch {
	case len(s.Targets) == 0:
		return nil
	case s.Target != "" || s.Threads != 0:
		return errors.New("targets stand in place of target and threads")
	case len(s.Targets) > targetsMax:
		return fmt.Errorf("%d targets are over the bound of %d", len(s.Targets), targetsMax)
	case s.Rate != 0:
		return errors.New("a load with a rate has one target")
	}
	least := 1
	if s.Rotate > 0 {
		least = 0
	}
	for _, t := range s.Targets {
		if t.Threads < least || t.Threads > threadsMax {
			return fmt.Errorf("target %q: %d threads lie outside %d to %d", t.Target, t.Threads, least, threadsMax)
		}
	}
	if s.threads() == 0 {
		return errors.New("the targets have no threads")
	}
	return nil
}

func (s Spec) checkClosed() error {
	switch {
	case s.Arrivals != "":
		return fmt.Errorf("arrivals %q: only a load with a rate has them", s.Arrivals)
	case s.Duration < 0:
		return fmt.Errorf("duration %s is negative", s.Duration)
	case s.Rotate < 0:
		return fmt.Errorf("rotate %s is negative", s.Rotate)
	case s.Rotate > 0 && (!s.timed() || s.Connection != New):
		return errors.New("a load that rotates has targets, a duration and new connections")
	case s.Settle < 0:
		return fmt.Errorf("settle %s is negative", s.Settle)
	case s.Settle > 0 && (!s.timed() || s.Warmup != 0):
		return errors.New("a load that settles has targets and a duration, and no warmup")
	case s.timed() && s.Iterations != 0:
		return errors.New("a load with targets has either iterations or a duration")
	case s.timed() && s.Ramp >= s.Duration:
		return fmt.Errorf("ramp %s is not below the duration of %s", s.Ramp, s.Duration)
	case !s.timed() && (s.Iterations < 1 || s.Iterations > samplesMax):
		return fmt.Errorf("%d iterations lie outside 1 to %d", s.Iterations, int(samplesMax))
	case s.Warmup < 0 || s.Warmup > samplesMax:
		return fmt.Errorf("warmup %d lies outside 0 to %d", s.Warmup, int(samplesMax))
	case s.threads() <= threadsMax && s.total() > samplesMax:
		return fmt.Errorf("%d requests are over the bound of %d", s.total(), int(samplesMax))
	case s.Think < 0 || s.Ramp < 0:
		return fmt.Errorf("think %s and ramp %s cannot be negative", s.Think, s.Ramp)
	}
	return nil
}

func (s Spec) checkOpen() error {
	arrivals := float64(s.Rate) * s.Duration.Std().Seconds()
	switch {
	case s.Iterations != 0 || s.Warmup != 0 || s.Think != 0 || s.Ramp != 0:
		return errors.New("a load with a rate takes no iterations, warmup, think or ramp")
	case !(s.Rate > 0 && s.Rate <= rateMax):
		return fmt.Errorf("rate %s lies outside 0/s (excluded) to %s", s.Rate, quantity.Frequency(rateMax))
	case s.Duration <= 0:
		return fmt.Errorf("a load with a rate needs a duration above 0s, not %s", s.Duration)
	case arrivals < 1 || arrivals > arrivalsMax:
		return fmt.Errorf("%s for %s: %.3g requests lie outside 1 to %d", s.Rate, s.Duration, arrivals, int(arrivalsMax))
	case s.Arrivals == Poisson && arrivals < poissonMin:
		return fmt.Errorf("%s for %s: %.3g requests are below %d, and of so few poisson may draw none", s.Rate, s.Duration, arrivals, poissonMin)
	case s.Rotate != 0 || s.Settle != 0:
		return errors.New("a load with a rate has one target, and neither rotates nor settles")
	case s.Arrivals != "" && s.Arrivals != Constant && s.Arrivals != Poisson:
		return fmt.Errorf("arrivals %q are neither %s nor %s", s.Arrivals, Constant, Poisson)
	}
	return nil
}

func (s Spec) checkConnections() error {
	switch {
	case s.Threads < 0:
		return fmt.Errorf("%d threads lie outside 1 to %d", s.Threads, threadsMax)
	case s.threads() > threadsMax:
		return fmt.Errorf("%d threads lie outside 1 to %d", s.threads(), threadsMax)
	case int64(s.threads())*int64(s.Size) > buffersMax:
		return fmt.Errorf("%d threads of %s need more than %s of buffers", s.threads(), s.Size, quantity.Size(buffersMax))
	case s.Timeout < 0:
		return fmt.Errorf("timeout %s is negative", s.Timeout)
	case s.Connection != "" && s.Connection != Kept && s.Connection != New:
		return fmt.Errorf("connection %q is neither %s nor %s", s.Connection, Kept, New)
	}
	return nil
}

// open reports an open loop; a rate of 0 with a duration is a mistake in one, but for
// the closed loop by time that several targets may have.
func (s Spec) open() bool { return s.Rate != 0 || s.Duration != 0 && len(s.Targets) == 0 }

// timed reports a closed loop by time.
func (s Spec) timed() bool { return s.Duration != 0 && !s.open() }

// targets are whom the threads ask, in the order of their numbers.
func (s Spec) targets() []Target {
	if len(s.Targets) > 0 {
		return s.Targets
	}
	return []Target{{s.Target, max(s.Threads, 1)}}
}

func (s Spec) threads() (n int) {
	for _, t := range s.targets() {
		n += t.Threads
	}
	return n
}

func (s Spec) perThread() int { return s.Iterations + s.Warmup }

// total is how many requests a closed loop makes, by time at most.
func (s Spec) total() int {
	if s.timed() {
		return samplesMax
	}
	return s.threads() * s.perThread()
}

func (s Spec) timeout() time.Duration {
	if s.Timeout == 0 {
		return timeoutDefault.Std()
	}
	return s.Timeout.Std()
}
