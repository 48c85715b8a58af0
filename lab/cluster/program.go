package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/complaint"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// logSuffix ends the names of programs' logs.
const logSuffix = ".log"

// program is one that is to stay as long as the lab, as it is started.
type program struct {
	Node topology.Ref `json:"node"`
	// Name of the program, unique at its node, and of its log.
	Name string   `json:"name"`
	Args []string `json:"args"`
	// Listens are addresses of the machine, not of the node, at which it is given a
	// listener each.
	Listens []string `json:"listens,omitempty"`
}

// started is a program that was started.
type started struct {
	*host.Process
	program program
	log     string
}

// quickToNotice has clients of the API server leave a connection on which nothing
// comes back for four seconds: TCP would try again ever more rarely, and so go on long
// after a link has healed.
var quickToNotice = []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=2", "HTTP2_PING_TIMEOUT_SECONDS=2"}

// threads has a cluster's programs use no more of them than its share of the machine's
// cores: threads that look for work cost a fifth of what an idle cluster takes.
func threads(clusters int) string {
	return fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.NumCPU()/clusters))
}

// timerSlack is how late a timer of a cluster's own programs may be, so that those of a
// moment wake them once (PR_SET_TIMERSLACK): they have some hundred timers a second, which
// took a quarter of what an idle cluster takes. Pods' timers stay as they are.
const timerSlack = 20 * time.Millisecond

// coalesce has the thread that starts a program give it the slack.
func coalesce() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) }

// noProxy keeps the way by which the user fetches modules from being taken for the
// way to an API server.
var noProxy = []string{"NO_PROXY=*", "no_proxy=*"}

// run starts one of Kubernetes' own programs at a node.
func (c *Cluster) run(m member, name string, args []string) error {
	return c.startProgram(m, name, append([]string{c.options.Programs["kubernetes"]}, args...))
}

// startProgram starts a program that stays, with a log of its name beside its
// node's files, to which it adds.
func (c *Cluster) startProgram(m member, name string, args []string, inherited ...*os.File) error {
	kept := program{Node: m.Ref(), Name: name, Args: args}
	for _, file := range inherited {
		listener, err := net.FileListener(file)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		kept.Listens = append(kept.Listens, listener.Addr().String())
		_ = listener.Close() // a duplicate
	}
	log, err := os.OpenFile(filepath.Join(c.dirOf(m), name+logSuffix), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	path := filepath.Dir(c.options.Programs["containerd-shim-runc-v2"]) + ":" + os.Getenv("PATH")
	enter := coalesce
	if name == "containerd" { // pods are its children, and would inherit it
		enter = nil
	}
	p, err := c.lab.Start(host.Command{
		Enter: enter, Node: m.Ref(), Name: m.process(name), Args: args, Dir: c.plane.dir, Files: inherited,
		Env: slices.Concat(quickToNotice, noProxy, []string{threads(len(c.lab.Topology.Clusters)), "PATH=" + path}), Stdout: log, Stderr: log,
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs = append(c.programs, started{p, kept, log.Name()})
	return nil
}

// errQuietly is how a program ends that gives no reason.
var errQuietly = errors.New("exit status 0")

// Ended tells of a program of the cluster that did not stay; nil while all are there.
func (c *Cluster) Ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.programs {
		select {
		case <-p.Done():
			return fmt.Errorf("%s has ended (%w): %s", p.Name, cmp.Or(p.Err(), errQuietly), complaint.InFile(p.log, complaint.Last))
		default:
		}
	}
	return nil
}
