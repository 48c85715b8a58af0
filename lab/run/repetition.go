package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/load"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/lab/workload"
)

const (
	// workloadPort is where the workload listens, on the service's node.
	workloadPort = 8080
	// readyTimeout bounds how long the workload and the system may take until
	// a request through them is answered.
	readyTimeout = 20 * time.Second
	readyPause   = 2 * time.Millisecond
	stopGrace    = time.Second
	serviceLog   = "service.log"
)

// Repetition is what one repetition of a cell leaves beside its samples.
type Repetition struct {
	Cell       experiment.Cell `json:"cell"`
	Repetition int             `json:"repetition"`
	// Try counts from 1: the tries before were rejected.
	Try   int       `json:"try"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Path is the nodes that a request visited.
	Path []topology.Ref `json:"path"`
	// Links are what every impaired direction counted while the load ran.
	Links map[string]impair.Counters `json:"links"`
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
	number := len(tries) + 1
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

// attempt is one try of a repetition under way.
type attempt struct {
	Turn
	dir    string
	result Repetition
	seen   *evidence
}

// try runs one cell once: links set anew, fresh processes and connections, and
// everything ended afterwards.
func (r *runner) try(ctx context.Context, turn Turn, number int, seed uint64) (Repetition, error) {
	dir, err := r.store.begin(turn)
	if err != nil {
		return Repetition{}, err
	}
	a := &attempt{Turn: turn, dir: dir}
	a.result = Repetition{Cell: turn.Cell, Repetition: turn.Repetition, Try: number, Began: r.Now()}
	if a.seen, err = r.gather(turn); err != nil {
		return Repetition{}, err
	}
	if err := r.lab.SetLinks(ctx, links(turn.Cell.Scenario), seed); err != nil {
		return Repetition{}, err
	}
	service, err := r.serve(turn.Cell, dir)
	if err != nil {
		return Repetition{}, err
	}
	var uses []host.Use
	err = r.awaitReady(ctx, service, dir, turn.Cell.Protocol)
	if err == nil {
		uses, err = r.measure(ctx, a)
	}
	use, stopErr := service.Stop(stopGrace)
	if err := errors.Join(err, stopErr); err != nil {
		return Repetition{}, err
	}
	if a.result.Proof, err = r.prove(ctx, a.seen); err != nil {
		return Repetition{}, err
	}
	a.result.Links = map[string]impair.Counters{}
	for _, d := range a.result.Proof.Directions {
		a.result.Links[d.Name] = d.Seen
	}
	a.result.Uses = append(uses, use)
	a.result.Ended = r.Now()
	return a.result, nil
}

// measure takes the system up, drives the load through it and takes it down.
func (r *runner) measure(ctx context.Context, a *attempt) (uses []host.Use, err error) {
	values, err := system.ValuesFor(&r.Experiment.Topology, a.dir, workloadPort)
	if err != nil {
		return nil, err
	}
	plugin := r.Plugins[a.Cell.System]
	a.result.Path = plugin.Path(values)
	stack, err := plugin.Start(ctx, inLab{r.lab}, values)
	if err != nil {
		return nil, err
	}
	defer func() {
		stopped, stopErr := stack.Stop()
		uses, err = append(uses, stopped...), errors.Join(err, stopErr)
	}()
	address, err := stack.Address()
	if err != nil {
		return nil, err
	}
	if err := awaitAnswer(ctx, stack, address, r.question(r.Experiment.Topology.Client, a.Cell.Protocol)); err != nil {
		return nil, err
	}
	if err := r.loadBegins(ctx, a.seen); err != nil {
		return nil, err
	}
	use, err := r.drive(ctx, a.Turn, address, a.dir)
	if err != nil {
		return nil, err
	}
	if err := r.loadEnded(ctx, a.seen); err != nil {
		return nil, err
	}
	if ended := stack.Ended(); ended != nil {
		return nil, fmt.Errorf("system %s: %w", plugin.Name, ended)
	}
	return []host.Use{use}, nil
}

// inLab is the lab as the steps of a system see it.
type inLab struct{ *host.Lab }

// Start starts a daemon.
func (l inLab) Start(c host.Command) (system.Daemon, error) {
	p, err := l.Lab.Start(c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func links(s experiment.Scenario) []host.Link {
	var all []host.Link
	for _, d := range s.Directions() {
		all = append(all, host.Link{From: d.From, To: d.To, Unit: d.Unit, Does: d.Impairment})
	}
	return all
}

func (r *runner) serve(cell experiment.Cell, dir string) (*host.Process, error) {
	listen, err := r.listen()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, serviceLog))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	return r.lab.Start(host.Command{
		Node: r.Experiment.Topology.Service, Name: "service", Dir: dir, Stdout: log, Stderr: log,
		Args: []string{r.Agent, "serve", cell.Workload, "--protocol", cell.Speaks(), "--listen", listen},
	})
}

// awaitReady waits until the workload listens: what a system takes of its node
// afterwards, it takes knowingly.
func (r *runner) awaitReady(ctx context.Context, service *host.Process, dir, protocol string) error {
	listen, err := r.listen()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := r.listens(ctx, service.Node, listen, protocol)
		if err == nil {
			return nil
		}
		select {
		case <-service.Done():
			return fmt.Errorf("workload: %w", said(filepath.Join(dir, serviceLog), service.Err()))
		case <-ctx.Done():
			return fmt.Errorf("workload: not ready within %s: %w", readyTimeout, err)
		case <-time.After(readyPause):
		}
	}
}

// listen is the address of the workload.
func (r *runner) listen() (string, error) {
	node, err := r.Experiment.Topology.Node(r.Experiment.Topology.Service)
	return net.JoinHostPort(node.Data.Addr().String(), strconv.Itoa(workloadPort)), err
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
func awaitAnswer(ctx context.Context, stack *system.Stack, address string, ask question) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := ask(ctx, address)
		if err == nil {
			return nil
		}
		if ended := stack.Ended(); ended != nil {
			return fmt.Errorf("no answer from %s: %w", address, ended)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s within %s: %w", address, readyTimeout, err)
		case <-time.After(readyPause):
		}
	}
}

// drive runs the load in the client's node.
func (r *runner) drive(ctx context.Context, turn Turn, address, dir string) (host.Use, error) {
	c := turn.Cell
	spec, err := json.Marshal(load.Spec{
		Target: address, Protocol: c.Protocol, Workload: c.Workload, Size: c.Size, Time: c.Time, Memory: c.Memory,
		Threads: c.Threads, Iterations: c.Iterations, Warmup: c.Warmup,
		OpenLoop: load.OpenLoop(c.OpenLoop),
		Think:    c.Think, Ramp: c.Ramp, Timeout: c.Timeout, Connection: c.Connection,
		// Repetitions differ in their Poisson arrivals; the cells of one share them.
		Seed: r.Seed + uint64(turn.Repetition),
	})
	if err != nil {
		return host.Use{}, fmt.Errorf("describe load: %w", err)
	}
	var problems bytes.Buffer
	process, err := r.lab.Start(host.Command{
		Node: r.Experiment.Topology.Client, Name: "load", Dir: dir,
		Args:  append([]string{r.Agent, "load", "--spec", "-"}, outputs(c, dir)...),
		Stdin: bytes.NewReader(spec), Stderr: &problems,
	})
	if err != nil {
		return host.Use{}, err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
	}
	use, err := process.Stop(stopGrace)
	if process.Err() != nil && ctx.Err() == nil {
		return use, fmt.Errorf("load: %w", agentError(problems.String(), process.Err()))
	}
	return use, errors.Join(err, ctx.Err())
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
