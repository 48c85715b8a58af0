package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/internal/thread"
)

// holder is the process that keeps a node's namespaces alive. It does nothing:
// when it ends, the kernel removes the namespaces and all that is in them.
type holder struct {
	Pid int `json:"pid"`
	// Start is the process's start time in clock ticks since boot (proc(5),
	// field 22), which tells it from a later process with the same pid.
	Start uint64 `json:"start"`
}

// hold makes a network, mount and UTS namespace with a host name and hosts
// file, and starts the holder in it.
func hold(agent, hostname, hostsFile string, group cgroup.Group) (holder, error) {
	var h holder
	err := thread.Do(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("cannot create network namespaces: %w", err)
		}
		if err := prepareMounts(hostsFile); err != nil {
			return err
		}
		if err := unix.Sethostname([]byte(hostname)); err != nil {
			return fmt.Errorf("set host name: %w", err)
		}
		cmd := exec.Command(agent, "hold")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := startIn(group, cmd); err != nil {
			return err
		}
		h.Pid = cmd.Process.Pid
		var err error
		h.Start, err = startTime(h.Pid) // there until it is reaped
		go func() { _ = cmd.Wait() }()  // reaps it when Down ends it
		return err
	})
	if err != nil {
		return holder{}, fmt.Errorf("make node %s: %w", hostname, err)
	}
	return h, nil
}

// prepareMounts gives the thread's new mount namespace a /sys that shows its
// own network namespace, with the control groups still in it, and a hosts file.
func prepareMounts(hostsFile string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	const groups = "/sys/fs/cgroup"
	tree, err := unix.OpenTree(unix.AT_FDCWD, groups, unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("keep %s: %w", groups, err)
	}
	defer func() { _ = unix.Close(tree) }()
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, groups, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("move %s: %w", groups, err)
	}
	if err := unix.Mount(hostsFile, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount /etc/hosts: %w", err)
	}
	return nil
}

// errGone says that a node's holder has ended, and its namespaces with it.
var errGone = errors.New("enter node: its namespaces are gone; take the lab down and up again")

// enter has the calling thread join the holder's namespaces.
func (h holder) enter() error {
	err := h.join()
	if err != nil && !h.alive() {
		return errGone
	}
	return err
}

func (h holder) join() error {
	fd, err := unix.PidfdOpen(h.Pid, 0)
	if err != nil {
		return fmt.Errorf("enter node: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !h.alive() { // another process has the pid by now
		return errGone
	}
	// A thread that shares its root and working directory cannot change mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter node: %w", err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET|unix.CLONE_NEWNS|unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("enter node: %w", err)
	}
	return nil
}

// inNode runs f on a thread in a holder's namespaces; the zero holder stands
// for the machine itself.
func inNode(h holder, f func() error) error {
	return thread.Do(func() error {
		if h.Pid != 0 {
			if err := h.enter(); err != nil {
				return err
			}
		}
		return f()
	})
}

func (h holder) alive() bool {
	start, err := startTime(h.Pid)
	return err == nil && start == h.Start
}

// openNet opens the holder's network namespace.
func (h holder) openNet() (*os.File, error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(h.Pid), "ns/net"))
	if errors.Is(err, os.ErrNotExist) || err != nil && !h.alive() { // of a process that ends its namespaces go first
		return nil, errGone
	}
	return f, err
}

func startTime(pid int) (uint64, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("look for process: %w", err)
	}
	// The command's name, in parentheses, may hold anything.
	const startField = 22 - 3
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= startField {
		return 0, fmt.Errorf("look for process %d: unknown format of /proc/PID/stat", pid)
	}
	return strconv.ParseUint(fields[startField], 10, 64)
}

// startIn starts a command as a member of a control group. The calling thread
// must be one of thread.Do.
func startIn(group cgroup.Group, cmd *exec.Cmd) error {
	placed, err := group.Place(cmd.SysProcAttr)
	if err != nil {
		return err
	}
	return errors.Join(cmd.Start(), placed.Close())
}
