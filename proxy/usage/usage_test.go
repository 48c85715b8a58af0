package usage_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/proxy/usage"
)

// uid is a pod's.
const uid = "3f1e2d3c-0b1a-4c5d-8e9f-001122334455"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestVersion2(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cgroup.controllers"), "cpu memory\n")
	pod := filepath.Join(root, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod3f1e2d3c_0b1a_4c5d_8e9f_001122334455.slice")
	write(t, filepath.Join(pod, "cpu.stat"), "usage_usec 1500000\nuser_usec 1\n")
	write(t, filepath.Join(pod, "cpu.max"), "20000 10000\n")
	write(t, filepath.Join(pod, "memory.current"), "2097152\n")
	write(t, filepath.Join(pod, "memory.stat"), "anon 1\ninactive_file 1048576\n")
	write(t, filepath.Join(pod, "memory.max"), "4194304\n")
	r, err := usage.New(root, 8)
	if err != nil {
		t.Fatal(err)
	}
	want := usage.Sample{Worked: 1500 * time.Millisecond, Cores: 2, Node: usage.Node{Cores: 8}, RAM: 0.25}
	if got, err := r.Read(uid, 0); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	write(t, filepath.Join(pod, "cpu.max"), "max 10000\n")
	if got, err := r.Read(uid, 4*time.Second); err != nil || got.Cores != 2 {
		t.Errorf("limits are read again after 4 seconds: %+v, %v", got, err)
	}
	if got, err := r.Read(uid, 5*time.Second); err != nil || got.Cores != 8 {
		t.Errorf("without a limit %+v, %v", got, err)
	}
	// What it is in has one.
	write(t, filepath.Join(root, "kubepods.slice/cpu.max"), "5000 10000\n")
	write(t, filepath.Join(root, "kubepods.slice/cpu.stat"), "usage_usec 2500000\n")
	if got, err := r.Read(uid, 10*time.Second); err != nil || got.Cores != 0.5 || got.Node != (usage.Node{Cores: 0.5, Worked: 2500 * time.Millisecond}) {
		t.Errorf("below a limit of all pods %+v, %v", got, err)
	}
}

// systemd has a folder of two controllers, and a link to it for each.
func TestLinkedController(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cpu,cpuacct/kubepods/pod"+uid+"/cpuacct.usage"), "2000000000\n")
	for _, name := range []string{"cpu", "cpuacct"} {
		if err := os.Symlink("cpu,cpuacct", filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := usage.New(root, 8)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(uid, 0); err != nil || got.Worked != 2*time.Second {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestVersion1(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"cpuacct/lab/pods/kubepods/besteffort/pod" + uid + "/cpuacct.usage": "2000000000\n",
		"cpuacct/cpuacct.usage": "9000000000\n",
		"cpu/lab/pods/kubepods/besteffort/pod" + uid + "/cpu.cfs_quota_us":         "1000\n",
		"cpu/lab/pods/kubepods/besteffort/pod" + uid + "/cpu.cfs_period_us":        "5000\n",
		"memory/lab/pods/kubepods/besteffort/pod" + uid + "/memory.usage_in_bytes": "1572864\n",
		"memory/lab/pods/kubepods/besteffort/pod" + uid + "/memory.stat":           "inactive_file 7\ntotal_inactive_file 524288\n",
		"memory/lab/pods/kubepods/besteffort/pod" + uid + "/memory.limit_in_bytes": "2097152\n",
	} {
		write(t, filepath.Join(root, file), text)
	}
	r, err := usage.New(root, 8)
	if err != nil {
		t.Fatal(err)
	}
	want := usage.Sample{Worked: 2 * time.Second, Cores: 0.2, Node: usage.Node{Cores: 8, Worked: 9 * time.Second}, RAM: 0.5}
	if got, err := r.Read(uid, 0); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// A pod that is not there is looked for again after a while, one that has gone as well.
func TestComesAndGoes(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cpuacct/other"), "")
	r, err := usage.New(root, 1)
	if err != nil {
		t.Fatal(err)
	}
	is := func(now time.Duration, want error) {
		t.Helper()
		if _, err := r.Read(uid, now); !errors.Is(err, want) {
			t.Errorf("at %v: %v", now, err)
		}
	}
	is(0, usage.ErrNoPod)
	pod := filepath.Join(root, "cpuacct/kubepods/pod"+uid)
	write(t, filepath.Join(pod, "cpuacct.usage"), "5\n")
	is(time.Second, usage.ErrNoPod) // it was looked for a moment ago
	is(6*time.Second, nil)
	if err := os.RemoveAll(pod); err != nil {
		t.Fatal(err)
	}
	is(11*time.Second, usage.ErrNoPod)
	write(t, filepath.Join(pod, "cpuacct.usage"), "nonsense\n")
	if _, err := r.Read(uid, 20*time.Second); err == nil || errors.Is(err, usage.ErrNoPod) {
		t.Errorf("of nonsense: %v", err)
	}
}

func TestNoGroups(t *testing.T) {
	if _, err := usage.New(t.TempDir(), 1); !errors.Is(err, usage.ErrNoGroups) {
		t.Error(err)
	}
}

// machine is this machine's control groups, of version 1 or 2, with one of the pod.
func machine(t testing.TB) (r *usage.Reader, remove func()) {
	const root = "/sys/fs/cgroup"
	parent := filepath.Join(root, "cpuacct")
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		parent = root
	}
	group := filepath.Join(parent, fmt.Sprintf("skerry-test-%d", os.Getpid()), "pod"+uid)
	remove = func() { _, _ = os.Remove(group), os.Remove(filepath.Dir(group)) }
	t.Cleanup(remove)
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Skip("no control group can be made: ", err)
	}
	r, err := usage.New(root, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, remove
}

// A pod that goes has its control group's files open.
func TestGoesWhileOpen(t *testing.T) {
	r, remove := machine(t)
	if _, err := r.Read(uid, 0); err != nil {
		t.Fatal(err)
	}
	remove()
	for range 2 {
		if _, err := r.Read(uid, 0); !errors.Is(err, usage.ErrNoPod) {
			t.Error(err)
		}
	}
}

// Of a pod that ends nobody asks any more: its files are closed when another begins.
func TestEndedPodsAreClosed(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "cpuacct/other"), "")
	r, err := usage.New(root, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for i := range 10 {
		pod := fmt.Sprintf("%s%02d", uid[:34], i)
		group := filepath.Join(root, "cpuacct/kubepods/pod"+pod)
		write(t, filepath.Join(group, "cpuacct.usage"), "5\n")
		if _, err := r.Read(pod, 0); err != nil {
			t.Fatal(err)
		}
		if open := openBelow(t, root); open != 1 {
			t.Fatalf("%d files are open after pod %d", open, i)
		}
		if err := os.RemoveAll(group); err != nil {
			t.Fatal(err)
		}
	}
}

// openBelow is how many files below a folder this process has open.
func openBelow(t *testing.T, folder string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if path, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(path, folder) {
			n++
		}
	}
	return n
}

// BenchmarkRead is one of a pod ten times a second.
func BenchmarkRead(b *testing.B) {
	r, _ := machine(b)
	var now time.Duration
	for b.Loop() {
		if _, err := r.Read(uid, now); err != nil {
			b.Fatal(err)
		}
		now += 100 * time.Millisecond
	}
}
