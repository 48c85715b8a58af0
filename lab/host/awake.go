package host

import (
	"errors"
	"os"
	"strings"

	"skerry.dev/skerry/internal/cgroup"
)

// idleDriver names what lets CPUs sleep by degrees (Linux,
// Documentation/admin-guide/pm/cpuidle.rst).
const idleDriver = "/sys/devices/system/cpu/cpuidle/current_driver"

// sleepsRegardless says whether idle CPUs sleep whatever is asked of the kernel: without a
// driver, as on some virtual machines, nothing follows /dev/cpu_dma_latency.
func sleepsRegardless() bool {
	name, err := os.ReadFile(idleDriver)
	return err != nil || strings.TrimSpace(string(name)) == "none"
}

// idle is the group of what keeps the machine's cores awake.
func (l *Lab) idle() cgroup.Group { return l.group.Top(idlePrefix + l.Name) }

// StayAwake keeps cores from sleeping until it is stopped, while something is measured,
// where the kernel does not do so by itself, by the binary skerry-agent. Whoever wants a
// core has it at once.
func (l *Lab) StayAwake(agent string) (stop func() error, err error) {
	if !sleepsRegardless() {
		return func() error { return nil }, nil
	}
	theirs, ours, err := os.Pipe() // it ends when this process does
	if err != nil {
		return nil, err
	}
	p, err := l.Start(Command{Name: "awake", Args: []string{agent, "awake"}, Stdin: theirs, idle: true})
	if err := errors.Join(err, theirs.Close()); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	stop = func() error {
		_, err := p.Stop(0)
		return errors.Join(err, ours.Close())
	}
	if err := p.group.GiveWay(p.cmd.Process.Pid); err != nil && !errors.Is(err, cgroup.ErrNoIdle) {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}
