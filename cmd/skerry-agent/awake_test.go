package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// One that keeps cores awake takes time that nobody wants, and ends with its input.
func TestAwake(t *testing.T) {
	cmd := exec.Command("skerry-agent", "awake")
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); idleThreads(t, cmd.Process.Pid) != cores.Count(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d threads compute in idle time, want one a core", idleThreads(t, cmd.Process.Pid))
		}
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Error("it goes on without its input")
	}
}

// idleThreads counts those of a process that take only time which nobody else wants.
func idleThreads(t *testing.T, pid int) (n int) {
	t.Helper()
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		if now, err := unix.SchedGetAttr(id, 0); err == nil && now.Policy == unix.SCHED_IDLE {
			n++
		}
	}
	return n
}
