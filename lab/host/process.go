package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/topology"
)

// Command is a program to start in a node.
type Command struct {
	// Node to run in; empty for the machine itself, outside of every node.
	Node topology.Ref
	// Name of the process: its control group, unique in the lab.
	Name string
	// Args of the program, its path first.
	Args []string
	// Env is added to the environment of this process.
	Env []string
	// Dir is the working directory.
	Dir            string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Files that the program inherits, from descriptor 3 on.
	Files []*os.File
	// Foreground leaves the program in the terminal's session.
	Foreground bool
	// idle has it be in the one group of the lab that gives way to all others.
	idle bool
	// Enter, where it is set, is called on the thread that starts the program, in the
	// node's namespaces: it may go on into others, such as a pod's.
	Enter func() error
}

// foregroundGrace is what a program in the foreground has after Ctrl-C.
const foregroundGrace = time.Second

// outputWait bounds how long a program's output is read after its end, where
// its children keep it open.
const outputWait = time.Second

// Process is a program that runs in a node, alone in its control group.
type Process struct {
	Name  string
	Node  topology.Ref
	cmd   *exec.Cmd
	group cgroup.Group
	done  chan struct{}
	err   error
}

// Start starts a program in a node.
func (l *Lab) Start(c Command) (*Process, error) {
	h, ok := l.Nodes[c.Node]
	if !ok && c.Node != "" {
		return nil, fmt.Errorf("start %s: no node %q", c.Name, c.Node)
	}
	return l.start(h, c)
}

func (l *Lab) start(h holder, c Command) (*Process, error) {
	p := &Process{Name: c.Name, Node: c.Node, done: make(chan struct{})}
	p.group = l.group.Child(filepath.Base(c.Name))
	if c.idle {
		p.group = l.idle()
	}
	if err := p.group.Make(); err != nil {
		return nil, err
	}
	p.cmd = exec.Command(c.Args[0], c.Args[1:]...)
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = c.Dir, c.Stdin, c.Stdout, c.Stderr
	p.cmd.ExtraFiles = c.Files
	p.cmd.Env = append(p.cmd.Environ(), c.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !c.Foreground}
	p.cmd.WaitDelay = outputWait
	err := inNode(h, func() error {
		if l.EmulatorCore != 0 && !c.idle {
			if err := keepTo(l.EmulatorCore, c.Name == linksGroup); err != nil {
				return err
			}
		}
		if c.Enter != nil {
			if err := c.Enter(); err != nil {
				return err
			}
		}
		if err := findDir(c.Dir); err != nil {
			return err
		}
		return startIn(p.group, p.cmd)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Name, err), p.group.Remove())
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// findDir looks for a program's working directory where the calling thread is: nodes may
// have folders of their own in the place of the machine's, and the kernel's error would
// speak of the program.
func findDir(dir string) error {
	if dir == "" {
		return nil
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDir, err)
	}
	return nil
}

// Run starts a program in a node and waits until it ends; a context that ends
// before ends the program. One in the foreground has had the terminal's signal
// itself, so it may end in its own way first.
func (l *Lab) Run(ctx context.Context, c Command) error {
	p, err := l.Start(c)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	if c.Foreground {
		select {
		case <-p.done:
		case <-time.After(foregroundGrace):
		}
	}
	_, stopErr := p.Stop(0)
	if ctx.Err() != nil && !c.Foreground {
		return ctx.Err()
	}
	return errors.Join(p.err, stopErr)
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the program ended; valid after Done.
func (p *Process) Err() error { return p.err }

// Use is what a process and its children have consumed.
type Use struct {
	Name string       `json:"name"`
	Node topology.Ref `json:"node"`
	cgroup.Usage
}

// Stop asks the program to end by SIGTERM, ends it and its children after the
// grace time, and tells what they consumed.
func (p *Process) Stop(grace time.Duration) (Use, error) {
	if grace > 0 {
		// A process that has ended already cannot be asked.
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	killErr := p.group.Kill()
	<-p.done
	if killErr != nil {
		killErr = p.group.Kill() // what took its time may have ended with the program
	}
	usage, err := p.group.Usage()
	use := Use{Name: p.Name, Node: p.Node, Usage: usage}
	return use, errors.Join(killErr, err, p.group.Remove())
}

// Within runs f on a thread in a node's namespaces: the sockets that f opens
// there are the node's, from wherever they are used afterwards.
func (l *Lab) Within(node topology.Ref, f func() error) error {
	h, ok := l.Nodes[node]
	if !ok {
		return fmt.Errorf("enter node: no node %q", node)
	}
	return inNode(h, f)
}

// Dial connects by TCP from a node to HOST:PORT, where HOST is an address.
func (l *Lab) Dial(ctx context.Context, node topology.Ref, address string) (conn net.Conn, err error) {
	network := "tcp4"
	if to, err := netip.ParseAddrPort(address); err == nil && to.Addr().Is6() {
		network = "tcp6"
	}
	err = inNode(l.Nodes[node], func() error {
		// One address: the dialer makes its socket on this thread.
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Delegate makes a control group of the lab for a program that makes groups of its
// own below it, and gives its path below the root of each hierarchy. It ends with
// the lab.
func (l *Lab) Delegate(name string) (string, error) {
	group := l.group.Child(name)
	return group.Path(), group.Delegate()
}

// LimitCPU bounds the CPU time of a control group that was delegated, in thousandths
// of a core.
func (l *Lab) LimitCPU(group string, milli int64) error { return l.group.Child(group).LimitCPU(milli) }

// AccountsAsRoot gives, by the files of the machine's accounts, those of a control
// group that was delegated.
func (l *Lab) AccountsAsRoot(group string) map[string]string {
	return l.group.Child(group).AccountsAsRoot()
}

// Vacate removes the control groups below one that was delegated, in which nothing may
// run; it stays itself.
func (l *Lab) Vacate(group string) error {
	g := l.group.Child(group)
	names, err := g.Children()
	for _, name := range names {
		err = errors.Join(err, g.Child(name).Remove())
	}
	return err
}

// Delegated tells the processes of a control group that was delegated, or of one
// below it, and what they have consumed.
func (l *Lab) Delegated(group string) (pids []int, use cgroup.Usage, err error) {
	g := l.group.Child(group)
	if pids, err = g.Processes(); err == nil {
		use, err = g.Usage()
	}
	return pids, use, err
}

// Held is the memory that a control group that was delegated, or one below it, holds
// now, in bytes.
func (l *Lab) Held(group string) (int64, error) { return l.group.Child(group).Resident() }

// Usage is what all of the lab has consumed since it was made, and the memory that
// it holds now, in bytes.
func (l *Lab) Usage() (use cgroup.Usage, resident int64, err error) {
	if use, err = l.group.Usage(); err == nil {
		resident, err = l.group.Resident()
	}
	return use, resident, err
}
