package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// Bounds of a step.
const (
	stepTimeout  = 60 * time.Second
	probePause   = 5 * time.Millisecond
	probeTimeout = time.Second
	stopGrace    = 200 * time.Millisecond
)

// Runner is what a stack needs of the lab that it runs in.
type Runner interface {
	Start(host.Command) (*host.Process, error)
	Run(context.Context, host.Command) error
	Dial(ctx context.Context, node topology.Ref, address string) (net.Conn, error)
}

// Stack is a system that is up in a lab.
type Stack struct {
	plugin  *Plugin
	lab     Runner
	values  Values
	daemons []*host.Process
}

// Start brings a system up: its files are written to v.Dir, its steps carried
// out in order. When it fails, nothing of it runs on.
func (p *Plugin) Start(ctx context.Context, lab Runner, v Values) (*Stack, error) {
	if err := errors.Join(p.Missing()...); err != nil {
		return nil, err
	}
	files, err := p.Render(v)
	if err != nil {
		return nil, err
	}
	s := &Stack{plugin: p, lab: lab, values: v}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(v.Dir, name), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("system %s: %w", p.Name, err)
		}
	}
	for _, ph := range p.Hosts.startPhases() {
		for _, step := range ph.steps {
			if err := s.step(ctx, step); err != nil {
				_, stopErr := s.Stop()
				return nil, errors.Join(fmt.Errorf("system %s: %s at %s: %w", p.Name, ph.name, step.At, err), stopErr)
			}
		}
	}
	return s, nil
}

// Address that the client calls.
func (s *Stack) Address() (string, error) { return s.plugin.Address(s.values) }

func (s *Stack) step(ctx context.Context, step Step) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	text, err := s.plugin.expand(string(step.At), step.Run+step.TCP, s.values)
	if err != nil {
		return err
	}
	place, _ := s.values.Place(step.At)
	switch {
	case step.TCP != "":
		return s.probe(ctx, place.Node, text)
	case step.Daemon != "":
		return s.daemon(place.Node, step.Daemon, text)
	}
	return s.run(ctx, place.Node, text, step.Capture)
}

// probe dials until the address accepts, or a daemon has ended.
func (s *Stack) probe(ctx context.Context, node topology.Ref, address string) error {
	for {
		once, cancel := context.WithTimeout(ctx, probeTimeout)
		conn, err := s.lab.Dial(once, node, address)
		cancel()
		if err == nil {
			return conn.Close()
		}
		if ended := s.ended(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", address, err)
		case <-time.After(probePause):
		}
	}
}

// ended tells of a daemon that did not stay.
func (s *Stack) ended() error {
	for _, d := range s.daemons {
		select {
		case <-d.Done():
			return fmt.Errorf("%s has ended (%v): %s", d.Name, d.Err(), lastLine(s.log(d.Name)))
		default:
		}
	}
	return nil
}

func (s *Stack) log(daemon string) string {
	return filepath.Join(s.values.Dir, daemon+".log")
}

func (s *Stack) daemon(node topology.Ref, name, text string) error {
	log, err := os.Create(s.log(name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process, err := s.lab.Start(host.Command{
		Node: node, Name: name, Args: shell(text), Dir: s.values.Dir, Stdout: log, Stderr: log,
	})
	if err == nil {
		s.daemons = append(s.daemons, process)
	}
	return err
}

func (s *Stack) run(ctx context.Context, node topology.Ref, text, capture string) error {
	var out, problems bytes.Buffer
	err := s.lab.Run(ctx, host.Command{
		Node: node, Name: "step", Args: shell(text), Dir: s.values.Dir, Stdout: &out, Stderr: &problems,
	})
	if err != nil {
		return fmt.Errorf("%q: %w: %s", text, err, last(problems.String()))
	}
	if capture != "" {
		s.values.Captured[capture] = strings.TrimSpace(out.String())
	}
	return nil
}

// Stop carries out the stop steps, ends the daemons and tells what each used.
func (s *Stack) Stop() ([]host.Use, error) {
	var problems error
	for _, step := range s.plugin.Hosts.Stop {
		problems = errors.Join(problems, s.step(context.Background(), step))
	}
	var uses []host.Use
	for _, d := range s.daemons {
		use, err := d.Stop(stopGrace)
		problems = errors.Join(problems, err)
		uses = append(uses, use)
	}
	s.daemons = nil
	return uses, problems
}

func shell(text string) []string { return []string{"/bin/sh", "-c", text} }

func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return last(string(text))
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
