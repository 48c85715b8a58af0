package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/topology"
)

// podsPrefix begins the name of the control group that a node's pods are below.
const podsPrefix = "pods-"

// PodGroup names the control group of a lab that the pods of a node are below, each
// container in a group of its own: what befalls the node befalls them.
func PodGroup(n topology.Node) string { return podsPrefix + n.Host() }

// shortID is how much of a container's ID tells it from others.
const shortID = 12

// Running is a process that was started in a node, with its children, or a container
// of a pod there.
type Running struct {
	// Name that it was started by, unique in the lab; of a container, PodGroup and
	// the beginning of its ID.
	Name string       `json:"name"`
	Node topology.Ref `json:"node"`
	// Pids of it and its children, and the names of their programs (comm).
	Pids     []int    `json:"pids"`
	Programs []string `json:"programs"`
}

// Running lists the processes in all nodes, by name.
func (l *Lab) Running() ([]Running, error) {
	nodes := map[string]topology.Ref{}
	for ref, h := range l.Nodes {
		home, err := netOf(strconv.Itoa(h.Pid))
		if err != nil {
			return nil, fmt.Errorf("look into node %s: %w", ref, err)
		}
		nodes[home] = ref
	}
	outside, err := netOf("self")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	names, err := l.group.Children()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []Running
	for _, name := range names {
		if name == holdersGroup || name == linksGroup {
			continue
		}
		if strings.HasPrefix(name, podsPrefix) {
			continue // below
		}
		pids, err := l.group.Child(name).Processes()
		if err != nil {
			return nil, err
		}
		r := Running{Name: name}
		for _, pid := range pids {
			r.add(pid, nodes, outside)
		}
		if r.Node != "" {
			all = append(all, r)
		}
	}
	containers, err := l.containers(outside)
	return append(all, containers...), err
}

// containers lists what runs in the nodes' pods. Their network namespaces are their
// own, so that it is the group that tells the node.
func (l *Lab) containers(outside string) (all []Running, err error) {
	for _, n := range l.Topology.Nodes() {
		leaves, err := l.group.Child(PodGroup(n)).Leaves()
		if err != nil {
			return nil, err
		}
		for _, leaf := range leaves {
			pids, err := leaf.Processes()
			if err != nil {
				return nil, err
			}
			id := filepath.Base(leaf.Path())
			r := Running{Name: PodGroup(n) + "/" + id[:min(len(id), shortID)], Node: n.Ref()}
			for _, pid := range pids {
				r.add(pid, nil, outside)
			}
			if len(r.Pids) > 0 {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// add takes a process in, unless it has ended or is of the machine itself: where
// control groups are version 1, a skerry passes through those it starts in.
func (r *Running) add(pid int, nodes map[string]topology.Ref, outside string) {
	home, err := netOf(strconv.Itoa(pid))
	if err != nil || home == outside {
		return
	}
	program, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return
	}
	if ref, ok := nodes[home]; ok {
		r.Node = ref
	}
	r.Pids = append(r.Pids, pid)
	if name := strings.TrimSpace(string(program)); !slices.Contains(r.Programs, name) {
		r.Programs = append(r.Programs, name)
	}
}

// netOf names the network namespace of a process; the link cannot be read of one
// that has ended.
func netOf(pid string) (string, error) {
	return os.Readlink(filepath.Join("/proc", pid, "ns/net"))
}

// befalls says whether a fault of a node or a process befalls this one.
func (f Fault) befalls(r Running) bool {
	switch {
	case f.Node != r.Node:
		return false
	case len(f.Plane) > 0:
		return slices.Contains(f.Plane, r.Name)
	}
	return f.Process == "" || f.Process == r.Name || slices.Contains(r.Programs, f.Process)
}

// InPod says that it is a container of a pod.
func (r Running) InPod() bool { return strings.HasPrefix(r.Name, podsPrefix) }

// Befallen lists what a fault of a node or a process befalls.
func (l *Lab) Befallen(f Fault) ([]Running, error) {
	running, err := l.Running()
	return slices.DeleteFunc(running, func(r Running) bool { return !f.befalls(r) }), err
}

// victims are the processes that a fault befalls.
func (l *Lab) victims(f Fault) (pids []int, err error) {
	befallen, err := l.Befallen(f)
	for _, r := range befallen {
		pids = append(pids, r.Pids...)
	}
	return pids, err
}

// signalTurns bounds signal: a process that is stuck in the kernel is an error.
const (
	signalTurns = 1000
	signalPause = 2 * time.Millisecond
)

// signal stops or ends all that a fault befalls. It looks again until there is
// none left to be signalled: one may have forked in between, which those that are
// stopped or have ended do not.
func (l *Lab) signal(f Fault, s unix.Signal) error {
	for turn := range signalTurns {
		pids, err := l.victims(f)
		if err != nil {
			return err
		}
		if turn == 0 && len(pids) == 0 {
			return fmt.Errorf("%s: %w", f.Target(), ErrNoProcess)
		}
		left := 0
		for _, pid := range pids {
			if has(pid, s) {
				continue
			}
			left++
			if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("%s %s: %w", f.Kind, f.Target(), err)
			}
		}
		if left == 0 {
			return nil
		}
		time.Sleep(signalPause)
	}
	return fmt.Errorf("%s %s: a process does not take the signal: it is stuck in the kernel", f.Kind, f.Target())
}

// thaw has all that a fault had stopped go on, but for what another freeze holds.
func (l *Lab) thaw(f Fault) error {
	pids, err := l.victims(f)
	if err != nil {
		return err
	}
	for _, other := range l.Faults {
		if other.Kind != Freeze {
			continue
		}
		held, err := l.victims(other)
		if err != nil {
			return err
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(held, pid) })
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGCONT); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("undo %s of %s: %w", f.Kind, f.Target(), err)
		}
	}
	return nil
}

// has says whether a process has taken a signal: it has ended, or is stopped where
// it was to be.
func has(pid int, s unix.Signal) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	// The command's name, in parentheses, may hold anything.
	rest := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(rest) == 0 {
		return false
	}
	const ended, stopped = "ZX", "Tt"
	return strings.IndexByte(ended, rest[0]) >= 0 ||
		s == unix.SIGSTOP && strings.IndexByte(stopped, rest[0]) >= 0
}
