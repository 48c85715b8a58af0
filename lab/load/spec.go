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

// Bounds of a load.
const (
	samplesMax     = 2e7
	threadsMax     = 10_000
	buffersMax     = 2 << 30 // bytes, all threads together
	specMax        = 1 << 20 // bytes of JSON
	timeoutDefault = quantity.Duration(30 * time.Second)
)

// Spec says what to request, how often and in which way.
type Spec struct {
	// Target is HOST:PORT. A name is looked up once, before the first request.
	Target string `json:"target"`
	// Workload that the target serves: a name of package workload.
	Workload string `json:"workload"`
	// Size of the request's body, for payload-echo and payload-recv.
	Size quantity.Size `json:"size,omitempty"`
	// Time that sleep sleeps or burn computes.
	Time quantity.Duration `json:"time,omitempty"`
	// Memory that burn touches.
	Memory quantity.Size `json:"memory,omitempty"`
	// Threads that request at the same time; 0 is 1.
	Threads int `json:"threads,omitempty"`
	// Iterations are the requests per thread that count.
	Iterations int `json:"iterations"`
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
	// Seed of the body's random bytes.
	Seed uint64 `json:"seed,omitempty"`
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
	for _, err := range []error{s.checkWorkload(), s.checkLoop()} {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSpec, err)
		}
	}
	return nil
}

func (s Spec) checkWorkload() error {
	payload := s.Workload == workload.PayloadEcho || s.Workload == workload.PayloadRecv
	switch {
	case !slices.Contains(workload.Names(), s.Workload):
		return fmt.Errorf("workload %q is none of %s", s.Workload, strings.Join(workload.Names(), ", "))
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

func (s Spec) checkLoop() error {
	switch {
	case s.Threads < 0 || s.Threads > threadsMax:
		return fmt.Errorf("%d threads lie outside 1 to %d", s.Threads, threadsMax)
	case s.Iterations < 1 || s.Iterations > samplesMax:
		return fmt.Errorf("%d iterations lie outside 1 to %d", s.Iterations, int(samplesMax))
	case s.Warmup < 0 || s.Warmup > samplesMax:
		return fmt.Errorf("warmup %d lies outside 0 to %d", s.Warmup, int(samplesMax))
	case s.total() > samplesMax:
		return fmt.Errorf("%d requests are over the bound of %d", s.total(), int(samplesMax))
	case int64(s.threads())*int64(s.Size) > buffersMax:
		return fmt.Errorf("%d threads of %s need more than %s of buffers", s.threads(), s.Size, quantity.Size(buffersMax))
	case s.Think < 0 || s.Ramp < 0 || s.Timeout < 0:
		return fmt.Errorf("think %s, ramp %s and timeout %s cannot be negative", s.Think, s.Ramp, s.Timeout)
	case s.Connection != "" && s.Connection != Kept && s.Connection != New:
		return fmt.Errorf("connection %q is neither %s nor %s", s.Connection, Kept, New)
	}
	return nil
}

func (s Spec) threads() int   { return max(s.Threads, 1) }
func (s Spec) perThread() int { return s.Iterations + s.Warmup }
func (s Spec) total() int     { return s.threads() * s.perThread() }

func (s Spec) timeout() time.Duration {
	if s.Timeout == 0 {
		return timeoutDefault.Std()
	}
	return s.Timeout.Std()
}
