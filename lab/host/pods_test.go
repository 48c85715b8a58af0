package host_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry.dev/skerry/lab/host"
)

// contain starts a container of a node as a runtime does: in a network namespace of
// its own, and in a control group below that of the node's pods.
func contain(t *testing.T, group, id string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("unshare", "--net", "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	for range 500 { // until it has left the machine's namespace
		comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "comm"))
		if err == nil && string(comm) == "sleep\n" {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	roots, err := filepath.Glob("/sys/fs/cgroup/*" + group)
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range append(roots, "/sys/fs/cgroup"+group) {
		if _, err := os.Stat(root); err != nil || strings.Contains(root, "cpuset") {
			continue // cpuset's takes none before it has CPUs, and the lab reads others
		}
		dir := filepath.Join(root, "kubepods", id)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	return cmd
}

// A fault of a node befalls its pods, though their networks are their own; one of a
// program befalls that container alone.
func TestFaultsReachPods(t *testing.T) {
	lab := up(t, "pods", square())
	node, err := lab.Topology.Node("c1/worker")
	if err != nil {
		t.Fatal(err)
	}
	group, err := lab.Delegate(host.PodGroup(node))
	if err != nil {
		t.Fatal(err)
	}
	one, two := contain(t, group, "0123456789abcdef"), contain(t, group, "fedcba9876543210")
	running, err := lab.Running()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(running, func(r host.Running) bool { return r.Name == "pods-c1-worker/0123456789ab" })
	if i < 0 || running[i].Node != "c1/worker" || !slices.Equal(running[i].Pids, []int{one.Process.Pid}) || !slices.Contains(running[i].Programs, "sleep") {
		t.Fatalf("running are %+v", running)
	}
	frozen := inject(t, lab, host.Fault{Kind: host.Freeze, Node: "c1/worker"})
	for _, name := range []string{"pods-c1-worker/0123456789ab", "pods-c1-worker/fedcba987654"} {
		if got := states(t, lab, name); got != "T" {
			t.Errorf("%s of a frozen node is %q", name, got)
		}
	}
	undo(t, lab, frozen)
	inject(t, lab, host.Fault{Kind: host.Kill, Node: "c1/worker", Process: "pods-c1-worker/fedcba987654"})
	wantKilled(t, two)
	if got := states(t, lab, "pods-c1-worker/0123456789ab"); got != "S" && got != "R" {
		t.Errorf("the container beside it is %q", got)
	}
	inject(t, lab, host.Fault{Kind: host.Kill, Node: "c1/worker"})
	wantKilled(t, one)
	if err := lab.Vacate(host.PodGroup(node)); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob("/sys/fs/cgroup/*" + group + "/kubepods")
	if _, _, gone := lab.Delegated(host.PodGroup(node)); err != nil || len(left) > 0 || gone != nil {
		t.Errorf("below the group are %v, %v, and of itself %v", left, err, gone)
	}
}

func wantKilled(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	_ = cmd.Wait() // says how it ended
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("%v has ended by %v", cmd.Args, cmd.ProcessState)
	}
}

// A control plane that is stopped is some processes of its node, and what others start
// to undo that is done before the fault counts as undone.
func TestStopPlane(t *testing.T) {
	lab := up(t, "plane", square())
	plane, beside := start(t, lab, "c1/head", "api-c1-head"), start(t, lab, "c1/head", "kubelet-c1-head")
	f := inject(t, lab, host.Fault{Kind: host.StopPlane, Node: "c1/head", Plane: []string{"api-c1-head"}})
	if f.Target() != "c1" {
		t.Errorf("it befalls %q", f.Target())
	}
	select {
	case <-plane.Done():
	case <-time.After(patience):
		t.Fatal("it lives")
	}
	if got := states(t, lab, beside.Name); got != "SS" {
		t.Errorf("what is beside the plane is %q", got)
	}
	refused := lab.UndoWith(t.Context(), f.ID, func(context.Context, host.Fault) error { return os.ErrPermission })
	if again, err := host.Open(lab.Name); !errors.Is(refused, os.ErrPermission) || err != nil || len(again.Faults) != 1 {
		t.Errorf("after an undo that failed by %v there are %v, %v", refused, again.Faults, err)
	}
	undo(t, lab, f)
	if again, err := host.Open(lab.Name); err != nil || len(again.Faults) != 0 {
		t.Errorf("recorded are %v, %v", again.Faults, err)
	}
}
