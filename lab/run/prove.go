package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/emulator"
	"skerry.dev/skerry/lab/impair/proof"
)

// triesMax is how often a repetition is tried before it stays rejected.
const triesMax = 3

// alpha is the level of each test of a link in a run of these turns.
func alpha(turns []Turn) float64 {
	var tests int
	for _, turn := range turns {
		for _, d := range turn.Cell.Scenario.Directions() {
			tests += proof.Tests(d.Impairment)
		}
	}
	return proof.Alpha(tests)
}

// evidence is what is seen of the links while a repetition runs.
type evidence struct {
	directions []proof.Direction
	// flows that are probed, and the index of the direction of each.
	flows []flow
	index []int
	// before and after the load, by flow.
	before, after [][]proof.Timed
	// first and last are the counters just before and just after the load.
	first, last emulator.Status
	steal       time.Duration
	gaps        uint64
	// tookNs is the time that the first probe took.
	tookNs int64
}

// gather begins with what is asked of the links. It is called before they are.
func (r *runner) gather(turn Turn) (*evidence, error) {
	e := &evidence{}
	scenario := turn.Cell.Scenario
	for _, d := range scenario.Directions() {
		if d.IsZero() {
			continue
		}
		if f, ok := flowOf(&r.Experiment.Topology, scenario, d); ok {
			e.flows = append(e.flows, f)
			e.index = append(e.index, len(e.directions))
		}
		e.directions = append(e.directions, proof.Direction{Name: d.Name(), Unit: d.Unit, Asked: d.Impairment})
	}
	var err error
	e.steal, err = host.Steal()
	return e, err
}

// loadBegins probes the links and then reads their counters.
func (r *runner) loadBegins(ctx context.Context, e *evidence) error {
	began := clock.Mono()
	defer func() { e.tookNs = clock.Mono() - began }()
	status, err := r.lab.LinkStatus(ctx)
	if err != nil {
		return err
	}
	e.gaps = gaps(status).Count
	if e.before, err = r.prober.probe(ctx, e.flows); err != nil {
		return err
	}
	e.first, err = r.lab.LinkStatus(ctx)
	return err
}

// loadEnded reads the counters. The second probe comes after the system has been
// taken down, when nothing else is on the links.
func (r *runner) loadEnded(ctx context.Context, e *evidence) (err error) {
	e.last, err = r.lab.LinkStatus(ctx)
	return err
}

// prove probes the links again and judges them.
func (r *runner) prove(ctx context.Context, e *evidence) (proof.Proof, error) {
	began := clock.Mono()
	var err error
	if e.after, err = r.prober.probe(ctx, e.flows); err != nil {
		return proof.Proof{}, err
	}
	status, err := r.lab.LinkStatus(ctx)
	steal, stealErr := host.Steal()
	if err := errors.Join(err, stealErr); err != nil {
		return proof.Proof{}, err
	}
	p := proof.Proof{Directions: e.directions}
	now := gaps(status)
	p.Host = proof.Host{StealNs: int64(steal - e.steal), GapMaxNs: now.MaxNs, Gaps: now.Count}
	if now.Count >= e.gaps { // else the links were set anew
		p.Host.Gaps -= e.gaps
	}
	for i, f := range e.flows {
		d, plain := &p.Directions[e.index[i]], r.prober.plain[f.ends]
		d.Before = proof.Measure(f.asked, plain, e.before[i])
		d.After = proof.Measure(f.asked, plain, e.after[i])
	}
	for i := range p.Directions {
		d := &p.Directions[i]
		seen, forward := e.last.Counters[d.Name].Minus(e.first.Counters[d.Name])
		d.Seen, d.Reset = seen, !forward
		d.LossUnknown = status.Backend == emulator.Netem && d.Unit == impair.UnitSuperpacket
	}
	p.Reasons = proof.Judge(p, r.alpha)
	p.TookNs = e.tookNs + clock.Mono() - began
	return p, nil
}

// gaps of an emulator; none where it cannot tell.
func gaps(s emulator.Status) impair.Gaps {
	if s.Gaps == nil {
		return impair.Gaps{}
	}
	return *s.Gaps
}

// rejection says on one line why a try does not count.
func rejection(turn Turn, try int, reasons []string) string {
	text := fmt.Sprintf("rejected: %s, repetition %d, try %d of %d: %s", turn.Cell, turn.Repetition, try, triesMax, reasons[0])
	if more := len(reasons) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}
