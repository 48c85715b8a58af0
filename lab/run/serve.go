package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/lab/workload/broker"
)

// serviceName is that of the workload's process, and with its node's host name
// behind it of each replica's; loadName that of the load.
const (
	serviceName = "service"
	loadName    = "load"
)

// nameAt is the name of the workload at one of its places.
func nameAt(v system.Values, node topology.Ref) string {
	for _, replica := range v.Replicas {
		if replica.Node == node {
			return serviceName + "-" + replica.Host
		}
	}
	return serviceName
}

// brokerPause lies between two looks whether a broker answers: RabbitMQ takes
// seconds to start, and looking takes of its cores.
const brokerPause = 20 * time.Millisecond

// server is the workload at one node.
type server struct {
	*host.Process
	listen, log string
	// start bounds how long it may take until it answers, pause lies between two
	// looks; grace is what it may take to end.
	start, pause, grace time.Duration
	// broker is what it is, where it is one, and data the folder that is removed
	// after it.
	broker, data string
}

// servers are the workload at the service's node and at its replicas.
type servers []server

// serve starts the workload at every node that serves it, and waits until all of
// them answer: what a system takes of its node afterwards, it takes knowingly.
// The servers are to be stopped after an error, too.
func (r *runner) serve(ctx context.Context, a *attempt, v system.Values) (served, error) {
	if a.Cell.OneWay() {
		return servers{}, nil // the listener starts with the talkers
	}
	if r.onKubernetes() {
		return r.deploy(ctx, a, v)
	}
	return r.serveOnHosts(ctx, a, v)
}

func (r *runner) serveOnHosts(ctx context.Context, a *attempt, v system.Values) (all servers, err error) {
	start := r.serveAt
	if broker.Protocol(a.Cell.Workload) != "" {
		start = r.brokerAt
	}
	one, err := start(a, v.Service, serviceName)
	if err != nil {
		return all, err
	}
	all = servers{one}
	for _, replica := range v.Replicas {
		if one, err = start(a, replica, nameAt(v, replica.Node)); err != nil {
			return all, err
		}
		all = append(all, one)
	}
	for _, s := range all {
		if err := r.awaitReady(ctx, s, a.Cell.Protocol); err != nil {
			return all, fmt.Errorf("workload at %s: %w", s.Node, err)
		}
	}
	return all, nil
}

// serveAt has Skerry's own program serve.
func (r *runner) serveAt(a *attempt, place system.Place, name string) (server, error) {
	s := server{listen: net.JoinHostPort(place.IP, strconv.Itoa(place.Port)), start: readyTimeout, pause: readyPause, grace: stopGrace}
	return r.launch(s, a.dir, host.Command{
		Node: place.Node, Name: name, Dir: a.dir,
		Args: append([]string{r.Agent}, r.serves(a, s.listen, place.Host)...),
	})
}

// serves is what skerry-agent is told at a node.
func (r *runner) serves(a *attempt, listen, host string) []string {
	args := []string{"serve", a.Cell.Workload, "--protocol", a.Cell.Speaks(), "--listen", listen}
	for _, ref := range r.Experiment.Topology.Broken {
		args = append(args, "--broken", ref.Host())
	}
	if len(r.Experiment.Topology.Broken) > 0 {
		args = append(args, "--node", host)
	}
	return args
}

// brokerAt has a message broker serve, from a folder of its own.
func (r *runner) brokerAt(a *attempt, place system.Place, name string) (server, error) {
	program, found := r.Brokers[a.Cell.Workload]
	if !found {
		return server{}, fmt.Errorf("workload %s: %w", a.Cell.Workload, errGone)
	}
	at := broker.Place{IP: place.IP, Port: place.Port, Dir: filepath.Join(a.dir, name)}
	plan := program.Plan(at)
	if err := os.MkdirAll(at.Data(), 0o755); err != nil {
		return server{}, err
	}
	for file, text := range plan.Files {
		if err := os.WriteFile(filepath.Join(at.Dir, file), []byte(text), 0o644); err != nil {
			return server{}, err
		}
	}
	s := server{
		listen: net.JoinHostPort(place.IP, strconv.Itoa(place.Port)), start: plan.Start, pause: brokerPause, grace: plan.Grace,
		broker: program.Name, data: at.Data(),
	}
	return r.launch(s, a.dir, host.Command{Node: place.Node, Name: name, Dir: at.Dir, Args: plan.Args, Env: plan.Env})
}

// launch starts the process of a server, with a log of its name.
func (r *runner) launch(s server, dir string, c host.Command) (server, error) {
	s.log = filepath.Join(dir, c.Name+".log")
	log, err := os.Create(s.log)
	if err != nil {
		return s, err
	}
	defer func() { _ = log.Close() }()
	c.Stdout, c.Stderr = log, log
	s.Process, err = r.lab.Start(c)
	return s, err
}

// awaitReady waits until the workload answers at its own node, or has ended.
func (r *runner) awaitReady(ctx context.Context, s server, protocol string) error {
	ctx, cancel := context.WithTimeout(ctx, s.start)
	defer cancel()
	for {
		err := r.listens(ctx, s.Node, s.listen, protocol)
		if err == nil {
			return nil
		}
		select {
		case <-s.Done():
			return s.said()
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", s.start, err)
		case <-time.After(s.pause):
		}
	}
}

// said is what a server left in its log as it ended.
func (s server) said() error {
	if s.broker == "" {
		return said(s.log, s.Err())
	}
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err
	}
	return &BrokerError{Broker: s.broker, Err: s.Err(), Said: lastLines(string(text))}
}

// BrokerError says that a broker ended before it answered.
type BrokerError struct {
	Broker string
	// Err is how it ended; nil for a success.
	Err error
	// Said are the last lines of its log; there may be none.
	Said string
}

// Error names the broker, how it ended and what it said.
func (e *BrokerError) Error() string {
	text := e.Broker + " has ended"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Said != "" {
		text += ": " + e.Said
	}
	return text
}

// Unwrap gives how it ended.
func (e *BrokerError) Unwrap() error { return e.Err }

// Death is the end of a workload while the load ran, or of a daemon that a fault of the
// timeline has ended. The repetition counts, with the errors that the load saw: what
// becomes of clients may be what was asked.
type Death struct {
	Name string       `json:"name"`
	Node topology.Ref `json:"node"`
	// How it ended.
	How string `json:"how"`
	// By is the fault of the timeline that ended it, in the words of the file; empty
	// where it ended by itself.
	By string `json:"by,omitempty"`
}

// String is a sentence.
func (d Death) String() string {
	text := fmt.Sprintf("%s at %s ended while the load ran: %s", d.Name, d.Node, d.How)
	if d.By != "" {
		text += ", by " + d.By
	}
	return text
}

// pods are none: they listen at their nodes.
func (all servers) pods() map[topology.Ref]string { return nil }

// deaths are of those that have ended by themselves.
func (all servers) deaths(context.Context) (deaths []Death, _ error) {
	for _, s := range all {
		select {
		case <-s.Done():
			how := "exit status 0"
			if err := s.Err(); err != nil {
				how = err.Error()
			}
			deaths = append(deaths, Death{Name: s.Name, Node: s.Node, How: how})
		default:
		}
	}
	return deaths, nil
}

// stop ends them all and tells what they have used.
func (all servers) stop() (uses []host.Use, err error) {
	for _, s := range all {
		use, stopErr := s.Stop(s.grace)
		uses, err = append(uses, use), errors.Join(err, stopErr)
		if s.data != "" {
			err = errors.Join(err, os.RemoveAll(s.data))
		}
	}
	return uses, err
}
