package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	churnCycles, churnKills = 20, 5
	churnLab                = "churn"
	// churnFile is a lab of two clusters of two nodes.
	churnFile = `name: churn
substrate: kubernetes
topology:
  clusters:
    - {name: c1, nodes: [head, worker]}
    - {name: c2, nodes: [head, worker]}
  service: c1/worker
  client: c2/worker
scenarios: [{name: lcl}]
systems: [direct]
workloads: [{name: hello-world}]
load: {iterations: 1}
repetitions: 1
`
)

// churn takes clusters up and down by the program that a user does it by, some of
// them killed on their way up, and holds that the machine is as it was before.
func (b *bench) churn(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "skerry-show-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "churn.yaml")
	if err := os.WriteFile(file, []byte(churnFile), 0o600); err != nil {
		return err
	}
	before, err := machineState(ctx)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 1))
	for cycle := range churnCycles {
		killAfter := time.Duration(0)
		if cycle%(churnCycles/churnKills) == 0 {
			const longest = 9 * time.Second
			killAfter = time.Duration(random.Int64N(int64(longest)))
		}
		if err := b.churnOnce(ctx, file, killAfter); err != nil {
			return err
		}
	}
	after, err := machineState(ctx)
	if err != nil {
		return err
	}
	changed := differing(before, after)
	b.print(line{
		what:  fmt.Sprintf("%d times up and down, %d of them killed by kill -9 on the way up: namespaces, mounts, control groups, processes, sysctls and rules of the machine", churnCycles, churnKills),
		seen:  fmt.Sprintf("%d of %d entries differ%s", len(changed), len(before), firstOf(changed)),
		bound: "as before", pass: len(changed) == 0, command: kubernetesCommand,
	})
	return nil
}

// churnOnce takes a lab up and down; one that is killed is cleaned up.
func (b *bench) churnOnce(ctx context.Context, file string, killAfter time.Duration) error {
	skerry := filepath.Join(filepath.Dir(b.agent), "skerry")
	cmd := exec.CommandContext(ctx, skerry, "up", file, "--name", churnLab)
	if killAfter == 0 {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("up: %w: %s", err, lastPart(string(out)))
		}
	} else {
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := pause(ctx, killAfter); err != nil {
			return errors.Join(err, cmd.Process.Kill())
		}
		_, _ = cmd.Process.Kill(), cmd.Wait() // it may have ended by itself
	}
	// A lab that was killed on its way up is not up, or up: either is taken away.
	down, err := exec.CommandContext(ctx, skerry, "down", churnLab).CombinedOutput()
	if err == nil || killAfter == 0 {
		return wrapped("down", down, err)
	}
	cleaned, err := exec.CommandContext(ctx, skerry, "doctor", "--clean").CombinedOutput()
	return wrapped("doctor --clean", cleaned, err)
}

func wrapped(what string, said []byte, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w: %s", what, err, lastPart(string(said)))
	}
	return nil
}

// machineState lists what of the machine a lab could leave behind or change, sorted.
func machineState(ctx context.Context) (state []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			state = append(state, "mount "+fields[4])
		}
	}
	for _, pattern := range []string{"/run/*", "/run/skerry/*", "/opt/*", "/usr/libexec/*", "/var/lib/*", "/sys/fs/cgroup/skerry*", "/sys/fs/cgroup/*/skerry*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		state = append(state, found...)
	}
	rules, err := exec.CommandContext(ctx, "nft", "list", "ruleset").Output()
	if err != nil {
		return nil, fmt.Errorf("nft: %w", err)
	}
	for line := range strings.Lines(string(rules)) {
		state = append(state, "rule "+strings.TrimSpace(line))
	}
	sysctls, err := sysctlState()
	state = append(append(state, processState()...), sysctls...)
	slices.Sort(state)
	return slices.Compact(state), err
}

// processState lists the namespaces that processes are in, and the names of those
// that clusters are made of.
func processState() (state []string) {
	processes, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, p := range processes {
		for _, kind := range []string{"net", "mnt", "uts"} {
			if ns, err := os.Readlink(filepath.Join(p, "ns", kind)); err == nil {
				state = append(state, "namespace "+ns)
			}
		}
		// One that has ended has no namespaces and no memory, until it is reaped.
		memory, _ := os.ReadFile(filepath.Join(p, "statm"))
		if strings.HasPrefix(string(memory), "0 ") {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(p, "comm"))
		for _, ours := range []string{"kubernetes", "containerd", "etcd", "coredns", "runc", "skerry-agent"} {
			if strings.HasPrefix(string(name), ours) {
				state = append(state, "process "+p+" "+strings.TrimSpace(string(name)))
			}
		}
	}
	return state
}

// sysctlState reads the sysctls that programs of a cluster set; those of the network
// are of the machine's own namespace.
func sysctlState() (state []string, err error) {
	for _, root := range []string{"/proc/sys/vm", "/proc/sys/kernel", "/proc/sys/net"} {
		err = errors.Join(err, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || moving(path) {
				return nil //nolint:nilerr // some may not be looked at
			}
			if text, err := os.ReadFile(path); err == nil {
				state = append(state, path+" "+strings.TrimSpace(string(text)))
			}
			return nil
		}))
	}
	return state, err
}

// moving says that a sysctl is a count, which changes by itself.
func moving(path string) bool {
	for _, part := range []string{"/random/", "ns_last_pid", "/pty/nr", "conntrack_count", "numa_stat", "/sched_domain/", "hung_task_detect_count"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// differing are the entries that one of two sorted lists has alone.
func differing(before, after []string) (changed []string) {
	for _, s := range before {
		if _, there := slices.BinarySearch(after, s); !there {
			changed = append(changed, "- "+s)
		}
	}
	for _, s := range after {
		if _, there := slices.BinarySearch(before, s); !there {
			changed = append(changed, "+ "+s)
		}
	}
	return changed
}

func firstOf(changed []string) string {
	const most = 5
	if len(changed) == 0 {
		return ""
	}
	return ": " + strings.Join(changed[:min(most, len(changed))], "; ")
}
