package guest_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
)

// busyEnv has this binary compute until it is ended.
const busyEnv = "SKERRY_GUEST_BUSY"

// testGroups holds internal/cgroup against version 2, which hosts with version 1
// cannot.
func testGroups(t *testing.T) {
	if err := unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""); err != nil {
		t.Fatal(err)
	}
	tree, err := cgroup.FindHere()
	if err != nil || tree.Version() != 2 {
		t.Fatalf("found version %d, %v", tree.Version(), err)
	}
	parent := tree.Group("skerry").Child("lab")
	group := parent.Child("node")
	if err := group.Make(); err != nil {
		t.Fatal(err)
	}
	cmd, err := startBusy(group)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		u, err := group.Usage()
		if err != nil {
			t.Fatal(err)
		}
		if u.CPU > 10*time.Millisecond && u.MemoryPeak > 0 {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the process ended by itself: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	pids, err := parent.Processes()
	if err != nil || !slices.Contains(pids, cmd.Process.Pid) || slices.Contains(pids, os.Getpid()) {
		t.Errorf("processes %v, %v; want %d and not %d", pids, err, cmd.Process.Pid, os.Getpid())
	}
	testLimit(t, parent)
	if err := errors.Join(parent.Kill(), parent.Remove()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || parent.Exists() {
		t.Errorf("after Kill and Remove the process ended by %v, and the group is there: %v", err, parent.Exists())
	}
}

// testLimit wants a process of a limited group to have its share and no more, beside
// another that computes.
func testLimit(t *testing.T, parent cgroup.Group) {
	limited := parent.Child("limited")
	if err := errors.Join(limited.Delegate(), limited.LimitCPU(200)); err != nil {
		t.Fatal(err)
	}
	group := limited.Child("leaf")
	if err := group.Make(); err != nil {
		t.Fatal(err)
	}
	cmd, err := startBusy(group)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	before, err := group.Usage()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	time.Sleep(time.Second)
	after, err := group.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if share := (after.CPU - before.CPU).Seconds() / time.Since(began).Seconds(); share < 0.17 || share > 0.22 {
		t.Errorf("a group that may use 0.2 of a core used %.3f", share)
	}
}

// startBusy starts this binary in a group.
func startBusy(group cgroup.Group) (*exec.Cmd, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{busyEnv + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	placed, err := group.Place(cmd.SysProcAttr)
	if err != nil {
		return nil, err
	}
	return cmd, errors.Join(cmd.Start(), placed.Close())
}

func computeForever() {
	for n := uint64(0); ; n++ {
		runtime.KeepAlive(n)
	}
}
