// Package thread runs functions on OS threads of their own, for what the kernel keeps of
// each thread: its namespaces, control groups and priority.
package thread

import (
	"fmt"
	"runtime"

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
