package cgroup

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestShare(t *testing.T) {
	for _, c := range []struct{ milli, quota, period int64 }{
		{1, 1000, 1_000_000}, {150, 1050, 7000}, {199, 1194, 6000}, {200, 1000, 5000}, {500, 2500, 5000}, {2000, 10_000, 5000},
	} {
		quota, period := share(c.milli)
		if quota != c.quota || period != c.period {
			t.Errorf("%d thousandths of a core are %d in %d us, want %d in %d", c.milli, quota, period, c.quota, c.period)
		}
	}
	for milli := int64(1); milli <= 4000; milli++ {
		if quota, period := share(milli); quota < quotaLeast || period < periodLeast || period > 1_000_000 || quota*1000 != milli*period {
			t.Errorf("%d thousandths of a core are %d in %d us", milli, quota, period)
		}
	}
}

// What runs in a group with a limit uses as much as it may, and no more.
func TestLimitCPU(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups are made")
	}
	tree, err := FindHere()
	if err != nil {
		t.Skip(err)
	}
	parent := tree.Group("skerry-limit-test")
	t.Cleanup(func() {
		if err := parent.Kill(); err != nil {
			t.Error(err)
		}
		if err := parent.Remove(); err != nil {
			t.Error(err)
		}
	})
	limited := parent.Child("limited")
	if err := limited.Delegate(); err != nil {
		t.Fatal(err)
	}
	if err := limited.LimitCPU(250); err != nil {
		t.Fatal(err)
	}
	g := limited.Child("leaf")
	if err := g.Delegate(); err != nil {
		t.Fatal(err)
	}
	cmd := place(t, g, "while :; do :; done")
	// Place knows the groups that account; the quota of v1 is in another hierarchy.
	for _, dir := range g.delegated() {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil && !tree.v2 {
			t.Fatal(err)
		}
	}
	most := 0.0
	for range 20 { // one second is enough on a machine that is its own
		if most = max(most, used(t, g)); most > 0.2 {
			break
		}
	}
	if most < 0.2 || most > 0.28 {
		t.Errorf("it used %.3f of a core, and may use 0.25", most)
	}
	if _, err := os.Stat("/sys/fs/cgroup/cpuacct/cpuacct.usage"); err == nil && len(limited.AccountsAsRoot()) < 4 {
		t.Errorf("its accounts are %v", limited.AccountsAsRoot())
	}
}

// used is the share of a core that a group uses for a second.
func used(t *testing.T, g Group) float64 {
	t.Helper()
	before, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	time.Sleep(time.Second)
	after, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return (after.CPU - before.CPU).Seconds() / time.Since(began).Seconds()
}

// In v2 a limit is one file, and what the root lacks is not covered.
func TestLimitV2(t *testing.T) {
	root := t.TempDir()
	g := Tree{cpu: root, memory: root, v2: true}.Group("lab/pods")
	dir := filepath.Join(root, "lab/pods")
	if err := g.LimitCPU(500); err == nil {
		t.Error("a group that is not there has a limit")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"cpu.stat", "memory.stat", "lab/pods/cpu.stat", "lab/pods/cpu.max", "lab/pods/memory.stat", "lab/pods/memory.current"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.LimitCPU(500); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err != nil || string(text) != "2500 5000" {
		t.Errorf("cpu.max has %q, %v", text, err)
	}
	accounts := g.AccountsAsRoot()
	if got, want := slices.Sorted(maps.Keys(accounts)), []string{filepath.Join(root, "cpu.stat"), filepath.Join(root, "memory.stat")}; !slices.Equal(got, want) {
		t.Errorf("covered are %v, want %v", got, want)
	}
	for over, from := range accounts {
		if !strings.HasPrefix(from, dir) || filepath.Base(over) != filepath.Base(from) {
			t.Errorf("%s is covered by %s", over, from)
		}
	}
}

// A kernel without quotas is told by what it lacks.
func TestLimitWithoutQuota(t *testing.T) {
	root := t.TempDir()
	g := Tree{cpu: root, memory: root}.Group("lab")
	if err := g.LimitCPU(500); err == nil || !strings.Contains(err.Error(), "CFS_BANDWIDTH") {
		t.Errorf("got %v", err)
	}
}
