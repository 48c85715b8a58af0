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
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/complaint"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// Bounds of a step.
const (
	stepTimeout = 60 * time.Second
	probePause  = 5 * time.Millisecond
	// probeTimeout is longer than the round trip of any link that is worth a probe.
	probeTimeout = 10 * time.Second
	stopGrace    = 200 * time.Millisecond
)

// reachPort is one that nobody listens at (tcpmux, RFC 1078): a node that is
// reached refuses it.
const reachPort = "1"

// step carries a step out at each node of its role. Its error begins with the
// role, or the node that it is.
func (p *part) step(ctx context.Context, s Step, ended func() error) error {
	for _, place := range p.values.places(s.At) {
		at := string(s.At)
		if s.At == Each {
			at = string(place.Node)
		}
		if err := p.stepAt(ctx, s, place, ended); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

func (p *part) stepAt(ctx context.Context, s Step, place Place, ended func() error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	text, err := p.expand(string(s.At), s.text(), p.values.atRole(s.At, place))
	if err != nil {
		return err
	}
	name := s.Daemon
	if s.At == Each {
		name += "-" + place.Host
	}
	switch {
	case s.TCP != "":
		return p.await(ctx, text, ended, func(ctx context.Context) error { return p.dial(ctx, place.Node, text) })
	case s.Reach != "":
		return p.await(ctx, text, ended, func(ctx context.Context) error {
			err := p.dial(ctx, place.Node, net.JoinHostPort(text, reachPort))
			if errors.Is(err, unix.ECONNREFUSED) {
				return nil
			}
			return err
		})
	case s.Install != "":
		return p.install(ctx, place.Node, s)
	case s.Pod != nil:
		return p.deploy(ctx, place.Node, s, text)
	case s.Daemon != "":
		return p.start(place.Node, name, text)
	}
	return p.run(ctx, place.Node, text, s.Capture)
}

func (p *part) dial(ctx context.Context, node topology.Ref, address string) error {
	conn, err := p.lab.Dial(ctx, node, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// await tries until it succeeds, or a daemon has ended.
func (p *part) await(ctx context.Context, address string, ended func() error, try func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, probeTimeout)
		err := try(once)
		cancel()
		if err == nil {
			return nil
		}
		if ended := ended(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", address, err)
		case <-time.After(probePause):
		}
	}
}

func (p *part) log(daemon string) string { return filepath.Join(p.values.Dir, daemon+".log") }

func (p *part) start(node topology.Ref, name, text string) error {
	log, err := os.Create(p.log(name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process, err := p.lab.Start(host.Command{
		Node: node, Name: name, Args: shell(text), Env: p.env(), Dir: p.values.Dir, Stdout: log, Stderr: log,
	})
	if err == nil {
		p.daemons = append(p.daemons, daemon{name, node, process})
	}
	return err
}

func (p *part) run(ctx context.Context, node topology.Ref, text, capture string) error {
	var out, problems bytes.Buffer
	err := p.lab.Run(ctx, host.Command{
		Node: node, Name: "step", Args: shell(text), Env: p.env(), Dir: p.values.Dir, Stdout: &out, Stderr: &problems,
	})
	if errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%q leaves a process behind that holds its output; make it a daemon", text)
	}
	if err != nil {
		said := problems.String()
		if said == "" {
			said = out.String()
		}
		return fmt.Errorf("%q: %w: %s", text, err, cmp.Or(complaint.First(said), complaint.Silence))
	}
	if capture != "" {
		p.values.Captured[capture] = strings.TrimSpace(out.String())
	}
	return nil
}

func shell(text string) []string { return []string{"/bin/sh", "-c", text} }
