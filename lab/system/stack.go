package system

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	Start(host.Command) (Daemon, error)
	Run(context.Context, host.Command) error
	Dial(ctx context.Context, node topology.Ref, address string) (net.Conn, error)
}

// Daemon is a process that a step started and that is to stay.
type Daemon interface {
	// Done is closed when it has ended; Err then says how.
	Done() <-chan struct{}
	Err() error
	// Stop ends it and tells what it used.
	Stop(grace time.Duration) (host.Use, error)
}

// Stack is a system that is up in a lab.
type Stack struct {
	plugin  *Plugin
	lab     Runner
	values  Values
	daemons []daemon
}

type daemon struct {
	name string
	Daemon
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
		if err := writeFile(filepath.Join(v.Dir, name), text); err != nil {
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

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
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
		return s.start(place.Node, step.Daemon, text)
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
		if ended := s.Ended(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", address, err)
		case <-time.After(probePause):
		}
	}
}

// errQuietly is how a daemon ends that gives no reason.
var errQuietly = errors.New("exit status 0")

// Ended tells of a daemon that did not stay; nil while all are there.
func (s *Stack) Ended() error {
	for _, d := range s.daemons {
		select {
		case <-d.Done():
			return fmt.Errorf("%s has ended (%w): %s", d.name, cmp.Or(d.Err(), errQuietly), readTelling(s.log(d.name)))
		default:
		}
	}
	return nil
}

func (s *Stack) log(daemon string) string {
	return filepath.Join(s.values.Dir, daemon+".log")
}

func (s *Stack) start(node topology.Ref, name, text string) error {
	log, err := os.Create(s.log(name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process, err := s.lab.Start(host.Command{
		Node: node, Name: name, Args: shell(text), Dir: s.values.Dir, Stdout: log, Stderr: log,
	})
	if err == nil {
		s.daemons = append(s.daemons, daemon{name, process})
	}
	return err
}

func (s *Stack) run(ctx context.Context, node topology.Ref, text, capture string) error {
	var out, problems bytes.Buffer
	err := s.lab.Run(ctx, host.Command{
		Node: node, Name: "step", Args: shell(text), Dir: s.values.Dir, Stdout: &out, Stderr: &problems,
	})
	if errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%q leaves a process behind that holds its output; make it a daemon", text)
	}
	if err != nil {
		said := problems.String()
		if said == "" {
			said = out.String()
		}
		return fmt.Errorf("%q: %w: %s", text, err, telling(said))
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

func readTelling(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return telling(string(text))
}

var complaint = regexp.MustCompile(`(?i)\b(alert|cannot|error|failed|fatal|panic)\b`)

// telling is the line of a program's output that says why it ended: the first
// that complains, else the last.
func telling(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "it said nothing"
	}
	lines := strings.Split(text, "\n")
	for _, line := range lines {
		if complaint.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
