package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry.dev/skerry/lab/adapter"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/load/oneway"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/lab/workload"
)

const (
	// workloadPort is where the workload listens, at every node that serves it.
	workloadPort = 8080
	// readyTimeout bounds how long the workload and the system may take until
	// a request through them is answered.
	readyTimeout = 20 * time.Second
	readyPause   = 2 * time.Millisecond
	stopGrace    = time.Second
)

// Told is what the load says beside its samples.
type Told struct {
	// Command is the environment and the command line of the load's tool, where it
	// is not Skerry's own.
	Command []string `json:"command,omitempty"`
	// Total is that tool's own, where it keeps no requests, or not when each began.
	Total *sample.Summary `json:"total,omitempty"`
	// Heard is of timed packets.
	Heard *oneway.Counts `json:"heard,omitempty"`
}

// Repetition is what one repetition of a cell leaves beside its samples.
type Repetition struct {
	Cell       experiment.Cell `json:"cell"`
	Repetition int             `json:"repetition"`
	// Try counts from 1: the tries before were rejected.
	Try   int       `json:"try"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Told
	// Path is the nodes that a request visited, Within what it crossed inside of them
	// on kubernetes.
	Path   []topology.Ref            `json:"path"`
	Within map[topology.Ref][]string `json:"within,omitempty"`
	// Changes are the events of the scenario's timeline that happened.
	Changes []Change `json:"changes,omitempty"`
	// Scale of a workload that was autoscaled.
	Scale []Scale `json:"scale,omitempty"`
	// Links are what every impaired direction counted while the load ran.
	Links map[string]impair.Counters `json:"links"`
	// Deaths of what ended while the load ran.
	Deaths []Death `json:"deaths,omitempty"`
	// Uses is what every process of the repetition consumed.
	Uses []host.Use `json:"uses"`
	// Proof of the links: where it has reasons, the repetition does not count.
	Proof proof.Proof `json:"proof"`
}

// repetition tries a turn once: it counts if its links are proven. Tries of a
// run that was resumed count.
func (r *runner) repetition(ctx context.Context, turn Turn, index uint64) error {
	tries, err := r.store.tries(turn)
	if err != nil {
		return err
	}
	number := nextTry(tries)
	result, err := r.try(ctx, turn, number, r.Seed+index<<16+uint64(number-1)<<8)
	if err != nil {
		return err
	}
	if !result.Proof.Rejected() {
		return r.store.complete(turn, result)
	}
	if err := r.store.reject(turn, result); err != nil {
		return err
	}
	r.Progress.Note(rejection(turn, number, result.Proof.Reasons))
	return nil
}

// nextTry numbers the try that follows others: the folder of one that was damaged may
// have been removed, and two are not to have the same.
func nextTry(tries []Repetition) int {
	if len(tries) == 0 {
		return 1
	}
	return tries[len(tries)-1].Try + 1
}

// attempt is one try of a repetition under way.
type attempt struct {
	Turn
	dir    string
	result Repetition
	seed   uint64
	seen   *evidence
	// load is the pod that sends the requests; nil where a process does.
	load *podLoad
	// faults of the timeline, from the beginning of the load.
	faults *breaker
}

// try runs one cell once: links set anew, fresh processes and connections, and
// everything ended afterwards.
func (r *runner) try(ctx context.Context, turn Turn, number int, seed uint64) (Repetition, error) {
	dir, err := r.store.begin(turn)
	if err != nil {
		return Repetition{}, err
	}
	a := &attempt{Turn: turn, dir: dir, seed: seed}
	a.result = Repetition{Cell: turn.Cell, Repetition: turn.Repetition, Try: number, Began: r.Now()}
	if a.seen, err = r.gather(turn); err != nil {
		return Repetition{}, err
	}
	if err := r.lab.SetLinks(ctx, links(a.seen.phases[0].Directions), seed); err != nil {
		return Repetition{}, err
	}
	if a.result.Uses, err = r.through(ctx, a); err != nil {
		return Repetition{}, err
	}
	if a.result.Proof, err = r.prove(ctx, a.seen); err != nil {
		return Repetition{}, err
	}
	a.result.Links = map[string]impair.Counters{}
	for _, d := range a.result.Proof.Directions {
		a.result.Links[d.Name] = a.result.Links[d.Name].Plus(d.Seen)
	}
	a.result.Ended = r.Now()
	// The last try counts all the same: on a host that is never quiet its figures say
	// what they are worth.
	if robbed := a.result.Proof.Host.Robbed(a.result.Ended.Sub(a.result.Began), runtime.NumCPU()); robbed != "" && number < triesMax {
		a.result.Proof.Reasons = append(a.result.Proof.Reasons, robbed)
	}
	return a.result, nil
}

// through takes the system up around the workload, drives the load through both
// and ends them. What gives nodes their addresses comes before the workload, which
// listens at one of them; what carries requests to it comes after.
func (r *runner) through(ctx context.Context, a *attempt) (uses []host.Use, err error) {
	values, err := system.ValuesFor(&r.Experiment.Topology, a.dir, r.servicePort())
	if err != nil {
		return nil, err
	}
	stack := r.Stacks[a.Cell.System]
	a.result.Path, a.result.Within = stack.Path(values), stack.Within(values, a.Cell)
	running, err := stack.Start(ctx, inLab{r.lab, r.clusters}, values)
	if err != nil {
		return nil, err
	}
	serving, err := r.bringUp(ctx, a, stack, running)
	defer func() {
		stopped, stopErr := a.load.stopWith(running, serving)
		uses, err = append(uses, stopped...), errors.Join(err, stopErr)
	}()
	if err != nil {
		return nil, err
	}
	if uses, err = r.measure(ctx, a, running); err != nil {
		return nil, err
	}
	if err := r.tellDeaths(ctx, a, running, serving); err != nil {
		return nil, err
	}
	return uses, nil
}

// bringUp has the workload serve and the system carry requests to it. A balancer knows its
// pods from their cluster, so that neither waits for the other; the load's pod starts beside
// both. What is returned is to be stopped after an error, too.
func (r *runner) bringUp(ctx context.Context, a *attempt, stack *system.Stack, running *system.Running) (serving served, err error) {
	if err := r.launchLoad(ctx, a); err != nil {
		return nil, err
	}
	values := running.Values()
	if stack.Balances() {
		both, ctx := errgroup.WithContext(ctx)
		both.Go(func() error { return running.Connect(ctx) })
		both.Go(func() (err error) { serving, err = r.serve(ctx, a, values); return err })
		err = both.Wait()
		return serving, err
	}
	if serving, err = r.serve(ctx, a, values); err != nil {
		return serving, err
	}
	running.Serve(serving.pods())
	return serving, running.Connect(ctx)
}

// measure drives the load through a system that is up.
func (r *runner) measure(ctx context.Context, a *attempt, running *system.Running) ([]host.Use, error) {
	addresses, err := running.Addresses()
	if err != nil {
		return nil, err
	}
	if err := r.awaitAnswers(ctx, a, running, addresses); err != nil {
		return nil, err
	}
	if err := a.load.await(ctx); err != nil {
		return nil, err
	}
	if err := r.loadBegins(ctx, a.seen); err != nil {
		return nil, err
	}
	timeline, loading := r.follow(ctx, a)
	scaler := r.followScale(ctx, a)
	uses, err := r.drive(loading, a, running, addresses)
	scale, scaleErr := scaler.end()
	broken := timeline.finish(ctx)
	if broken != nil && errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil // that is why the load was ended
	}
	if err := errors.Join(err, broken, scaleErr); err != nil {
		return nil, err
	}
	a.result.Scale = scale
	a.result.Changes, a.seen.ended = timeline.made, timeline.ended
	if why := timeline.missed(a.Turn); why != "" && a.Repetition == 1 {
		r.Progress.Note(why)
	}
	if err := r.loadEnded(ctx, a.seen); err != nil {
		return nil, err
	}
	return uses, r.awaitWhole(ctx, a.faults)
}

// awaitAnswers asks at every address that the cell calls until an answer comes; timed
// packets have none.
func (r *runner) awaitAnswers(ctx context.Context, a *attempt, running *system.Running, addresses []string) error {
	if a.Cell.OneWay() {
		return nil
	}
	ask, resetting := r.question(r.Experiment.Topology.Client, a.Cell.Protocol), resetting(r.Experiment.Topology, addresses)
	for _, address := range called(a.Cell, addresses) {
		ask := ask
		if slices.Contains(resetting, address) {
			ask = ask.orReset
		}
		if err := awaitAnswer(ctx, running, address, ask); err != nil {
			return err
		}
	}
	return nil
}

// inLab is the lab as the steps of a system see it, with its clusters by name.
type inLab struct {
	*host.Lab
	clusters map[string]*cluster.Cluster
}

// Start starts a daemon.
func (l inLab) Start(c host.Command) (system.Daemon, error) {
	p, err := l.Lab.Start(c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func links(directions []experiment.Direction) []host.Link {
	var all []host.Link
	for _, d := range directions {
		all = append(all, host.Link{From: d.From, To: d.To, Unit: d.Unit, Does: d.Impairment, Then: d.Then})
	}
	return all
}

// said is what a Skerry program left in its log as it ended.
func said(log string, ended error) error {
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	return agentError(string(text), ended)
}

// awaitAnswer asks until the workload answers through the system.
func awaitAnswer(ctx context.Context, running *system.Running, address string, ask question) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := ask(ctx, address)
		if err == nil {
			return nil
		}
		if ended := running.Ended(); ended != nil {
			return fmt.Errorf("no answer from %s: %w", address, ended)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s within %s: %w", address, readyTimeout, err)
		case <-time.After(readyPause):
		}
	}
}

// drive runs the load of the cell, and tells what it has used.
func (r *runner) drive(ctx context.Context, a *attempt, running *system.Running, addresses []string) ([]host.Use, error) {
	if a.Cell.OneWay() {
		return r.driveOneWay(ctx, a, running, addresses[0])
	}
	use, err := r.request(ctx, a, addresses)
	return []host.Use{use}, err
}

// request runs what sends requests in the client's node, or in the pod that waits for it
// there.
func (r *runner) request(ctx context.Context, a *attempt, addresses []string) (host.Use, error) {
	// Repetitions differ in their Poisson arrivals; the cells of one share them.
	job := adapter.Job{Cell: a.Cell, Target: addresses[0], Targets: addresses, Seed: r.Seed + uint64(a.Repetition)}
	if a.Cell.Tool != "" {
		return r.driveTool(ctx, a, job)
	}
	spec, err := json.Marshal(job.Spec())
	if err != nil {
		return host.Use{}, fmt.Errorf("describe load: %w", err)
	}
	if a.load != nil {
		return a.load.send(ctx, spec)
	}
	var problems bytes.Buffer
	use, ended, err := r.toItsEnd(ctx, host.Command{
		Node: r.Experiment.Topology.Client, Name: loadName, Dir: a.dir,
		Args:  append([]string{r.Agent, "load", "--spec", "-"}, outputs(a.Cell, a.dir)...),
		Stdin: bytes.NewReader(spec), Stderr: &problems,
	})
	if ended != nil {
		err = fmt.Errorf("load: %w", agentError(problems.String(), ended))
	}
	return use, err
}

// toItsEnd runs a program until it ends, and says how, where that is no success; or until
// the context does, which ends it.
func (r *runner) toItsEnd(ctx context.Context, command host.Command) (use host.Use, ended, err error) {
	process, err := r.lab.Start(command)
	if err != nil {
		return host.Use{}, nil, err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
	}
	use, err = process.Stop(stopGrace)
	if ctx.Err() == nil {
		ended = process.Err()
	}
	return use, ended, errors.Join(err, ctx.Err())
}

// outputs are the load's flags for what it is to write.
func outputs(c experiment.Cell, dir string) []string {
	flags := []string{"--out", filepath.Join(dir, samplesFile), "--hdr", filepath.Join(dir, histogramFile)}
	if c.Protocol == experiment.ProtocolUDP && c.Size >= workload.DatagramHeader {
		flags = append(flags, "--there", filepath.Join(dir, thereFile), "--back", filepath.Join(dir, backFile))
	}
	return flags
}

// AgentError is what skerry-agent said in a node as it failed.
type AgentError struct {
	Message string
	// Hint is what to do about it; it may be empty.
	Hint string
}

// Error is the agent's message, without its name.
func (e *AgentError) Error() string { return e.Message }

// agentError reads what the agent wrote to stderr; an agent that said nothing
// of the kind was ended from outside.
func agentError(text string, ended error) error {
	e := &AgentError{Message: fmt.Sprintf("skerry-agent has ended: %v", ended)}
	for line := range strings.Lines(text) {
		if _, message, ok := strings.Cut(line, "skerry-agent: error: "); ok {
			e.Message = strings.TrimSpace(message)
		}
		if _, advice, ok := strings.Cut(line, "skerry-agent: hint: "); ok {
			e.Hint = strings.TrimSpace(advice)
		}
	}
	return e
}
