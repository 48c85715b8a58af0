package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/lab/experiment"
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
		for _, p := range turn.Cell.Scenario.Phases() {
			for _, d := range p.Directions {
				tests += proof.Tests(d.Stages()...)
			}
		}
	}
	return proof.Alpha(tests)
}

// evidence is what is seen of the links while a repetition runs.
type evidence struct {
	// phases of the scenario, and the counters of those that an event has ended.
	phases []experiment.Phase
	ended  []map[string]impair.Counters
	// before and after the load, by the flows of the first phase and the last.
	before, after [][]proof.Timed
	// first and last are the counters just before and just after the load.
	first, last emulator.Status
	steal       time.Duration
	gaps        uint64
	// tookNs is the time that the first probe took.
	tookNs int64
}

// gather begins with what is asked of the links. It is called before they are, and before
// they and what is started read their files: the error may be a *ChangedFileError or a
// *ChangedError.
func (r *runner) gather(turn Turn) (*evidence, error) {
	record, err := r.store.record()
	if err == nil {
		err = record.unchanged()
	}
	if err == nil {
		err = r.sameSystem(turn.Cell.System, record)
	}
	if err == nil {
		err = r.samePrograms()
	}
	if err != nil {
		return nil, err
	}
	steal, err := host.Steal()
	return &evidence{phases: turn.Cell.Scenario.Phases(), steal: steal}, err
}

// now is the number of the phase that is in force.
func (e *evidence) now() int { return len(e.ended) }

// loadBegins probes the links and then reads their counters.
func (r *runner) loadBegins(ctx context.Context, e *evidence) error {
	began := clock.Mono()
	defer func() { e.tookNs = clock.Mono() - began }()
	status, err := r.lab.LinkStatus(ctx)
	if err != nil {
		return err
	}
	e.gaps = gaps(status).Count
	flows, _ := flowsIn(&r.Experiment.Topology, e.phases[0])
	if e.before, err = r.prober.probe(ctx, flows); err != nil {
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
	last, index := flowsIn(&r.Experiment.Topology, e.phases[e.now()])
	var err error
	if e.after, err = r.prober.probe(ctx, last); err != nil {
		return proof.Proof{}, err
	}
	status, err := r.lab.LinkStatus(ctx)
	steal, stealErr := host.Steal()
	if err := errors.Join(err, stealErr); err != nil {
		return proof.Proof{}, err
	}
	var p proof.Proof
	now := gaps(status)
	p.Host = proof.Host{StealNs: int64(steal - e.steal), GapMaxNs: now.MaxNs, Gaps: now.Count}
	if now.Count >= e.gaps { // else the links were set anew
		p.Host.Gaps -= e.gaps
	}
	byPhase := e.directions(status.Backend)
	first, firstIndex := flowsIn(&r.Experiment.Topology, e.phases[0])
	for i, f := range first {
		byPhase[0][firstIndex[i]].Before = proof.Measure(f.asked, r.prober.plain[f.ends], e.before[i])
	}
	for i, f := range last {
		byPhase[e.now()][index[i]].After = proof.Measure(f.asked, r.prober.plain[f.ends], e.after[i])
	}
	for _, d := range slices.Concat(byPhase...) {
		if d.Acts() {
			p.Directions = append(p.Directions, d)
		}
	}
	p.Reasons = proof.Judge(p, r.alpha)
	p.TookNs = e.tookNs + clock.Mono() - began
	return p, nil
}

// directions are those of every phase that has been in force, with what each has
// counted in it.
func (e *evidence) directions(backend string) [][]proof.Direction {
	byPhase := make([][]proof.Direction, e.now()+1)
	before := e.first.Counters
	for i := range byPhase {
		after := e.last.Counters
		if i < len(e.ended) {
			after = e.ended[i]
		}
		for _, d := range e.phases[i].Directions {
			seen, forward := after[d.Name()].Minus(before[d.Name()])
			byPhase[i] = append(byPhase[i], proof.Direction{
				Name: d.Name(), FromNs: int64(e.phases[i].At), Unit: d.Unit, Asked: d.Impairment, Then: d.Then,
				Seen: seen, Reset: !forward,
				// netem does not stop for a change, so the packets of that moment are of either phase.
				LossUnknown:   backend == emulator.Netem && (d.Unit == impair.UnitSuperpacket || len(byPhase) > 1),
				CopiesUnknown: backend == emulator.Netem,
			})
		}
		before = after
	}
	return byPhase
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
