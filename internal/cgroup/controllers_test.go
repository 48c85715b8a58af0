package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// write makes a file of a tree in a folder of the test.
func write(t *testing.T, text string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A controller that is mounted nowhere, or that the root of v2 has not, is named.
func TestLacks(t *testing.T) {
	v1 := Tree{cpu: t.TempDir(), memory: t.TempDir(), others: []string{t.TempDir()}}
	write(t, "1024", v1.others[0], "lab", "cpu.shares")
	write(t, "", v1.cpu, "lab", "cpu.stat")
	write(t, "", v1.memory, "lab", "memory.limit_in_bytes")
	v2 := Tree{cpu: t.TempDir(), v2: true}
	v2.memory = v2.cpu
	write(t, "cpuset cpu io memory\n", v2.cpu, "cgroup.controllers")
	for name, tree := range map[string]Tree{"v1": v1, "v2": v2} {
		got, err := tree.Group("lab").Lacks("cpu", "memory", "pids")
		if err != nil || !slices.Equal(got, []string{"pids"}) {
			t.Errorf("%s lacks %v, %v", name, got, err)
		}
	}
	if err := os.Remove(filepath.Join(v1.others[0], "lab", "cpu.shares")); err != nil {
		t.Fatal(err)
	}
	if got, err := v1.Group("lab").Lacks("cpu"); err != nil || !slices.Equal(got, []string{"cpu"}) {
		t.Errorf("without the controller cpu: %v, %v", got, err)
	}
	if err := os.Remove(filepath.Join(v2.cpu, "cgroup.controllers")); err != nil {
		t.Fatal(err)
	}
	if got, err := v2.Group("lab").Lacks("cpu"); err == nil {
		t.Errorf("a root that tells nothing lacks %v", got)
	}
}
