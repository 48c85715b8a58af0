package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNoIdle is of kernels before 5.15, and of v1 without the controller cpu.
var ErrNoIdle = errors.New("the kernel has no control groups that are idle")

// GiveWay has a process of the group run in time alone that nobody on the machine wants, and
// leave a core at once to who does. The group is directly below the root. That a thread is
// idle itself (SCHED_IDLE, sched(7)) does not do that: where two are in different groups of
// tasks the kernel compares those, and sessions are such groups too (CONFIG_SCHED_AUTOGROUP).
func (g Group) GiveWay(pid int) error {
	if err := g.Delegate(); err != nil {
		return err
	}
	dir, file := g.idle()
	if dir == "" {
		return ErrNoIdle
	}
	err := os.WriteFile(file, []byte("1"), 0)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	}
	if err != nil {
		return fmt.Errorf("have process %d give way: %w", pid, err)
	}
	return nil
}

// idle is the folder of the group that has the file by which it is idle, and the file; empty
// where no hierarchy has one.
func (g Group) idle() (dir, file string) {
	for _, dir := range g.delegated() {
		if file := filepath.Join(dir, "cpu.idle"); isFile(file) {
			return dir, file
		}
	}
	return "", ""
}

// hasten has the threads of a process that is to end take cores as others do: those that
// compute in time which nobody else wants get none to end in on a busy machine.
func (g Group) hasten(pid int) {
	if _, file := g.idle(); file != "" {
		_ = os.WriteFile(file, []byte("0"), 0) // or it is gone
	}
	threads, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task")) // none of one that has ended
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0) // or it has ended
		}
	}
}
