// Package thread runs functions on OS threads of their own, for what the kernel keeps of
// each thread: its namespaces, control groups and how it is scheduled.
package thread

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Do runs f on a thread that ends afterwards: f may change its namespaces, control groups
// and priority, and what it starts inherits them. The main thread cannot end, so it only
// lends its goroutine's place while another thread does the work.
func Do(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked after f, so that the thread ends
		if unix.Gettid() != unix.Getpid() {
			result <- f()
			return
		}
		err := Do(f)
		runtime.UnlockOSThread()
		result <- err
	}()
	return <-result
}

// InFreshNet runs f as Do does, in a network namespace that ends with it.
func InFreshNet(f func() error) error {
	return Do(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
		return f()
	})
}

// InNet runs f as Do does, in the network namespace of a descriptor.
func InNet(fd int, f func() error) error {
	return Do(func() error {
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// Batch has all threads of this process, and those that they begin, interrupt nobody when they wake
// (SCHED_BATCH, sched(7)): where no core is idle they wait for their turn, and find more to do then.
// Their priority stays what it is.
func Batch() error {
	done := map[string]bool{}
	for before := -1; before < len(done); { // one that was not yet asked may have begun others
		before = len(done)
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list threads: %w", err)
		}
		for _, t := range threads {
			if done[t.Name()] {
				continue
			}
			done[t.Name()] = true
			id, err := strconv.Atoi(t.Name())
			if err == nil {
				err = batch(id)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) { // that has ended
				return fmt.Errorf("schedule thread %s as SCHED_BATCH: %w", t.Name(), err)
			}
		}
	}
	return nil
}

func batch(id int) error {
	is, err := unix.SchedGetAttr(id, 0)
	if err != nil {
		return err
	}
	return unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: is.Nice}, 0)
}
