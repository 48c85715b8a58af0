package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What gives way is idle as a group, whatever else there is; what is to end is no more.
func TestGiveWay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: groups are made, and what is idle is raised")
	}
	tree, err := FindHere()
	if err != nil {
		t.Skip(err)
	}
	g := tree.Group(fmt.Sprintf("skerry-give-way-test-%d", os.Getpid()))
	cmd := exec.Command("sleep", "60")
	if err := errors.Join(g.Make(), cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}()
	pid := cmd.Process.Pid
	if err := g.GiveWay(pid); errors.Is(err, ErrNoIdle) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	dir, file := g.idle()
	inside, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(inside)) != fmt.Sprint(pid) {
		t.Errorf("in the group are %q, %v", inside, err)
	}
	for _, want := range []string{"1", "0"} {
		if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s says %q, %v, want %s", file, got, err, want)
		}
		g.hasten(pid)
	}
}

func TestHasten(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: what runs in idle time is raised")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pid := cmd.Process.Pid
	if err := unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
		t.Fatal(err)
	}
	Tree{cpu: t.TempDir(), v2: true}.Group("none").hasten(pid)
	if now, err := unix.SchedGetAttr(pid, 0); err != nil || now.Policy != unix.SCHED_NORMAL {
		t.Errorf("its policy is %+v, %v", now, err)
	}
}
