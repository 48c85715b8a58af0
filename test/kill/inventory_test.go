package kill_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
)

const (
	stateRoot = "/run/skerry"
	groupRoot = "/sys/fs/cgroup"
	// settleTime bounds how long the kernel may take to let go of namespaces
	// and control groups.
	settleTime = 10 * time.Second
)

// inventory is all that a lab may leave on the machine, one line a thing. Of
// control groups, states and processes it has those of this test alone: other
// labs may come and go meanwhile.
type inventory []string

// take lists what is there. Processes are those that inherited the mark; labs
// are those named.
func take(t *testing.T, mark string, labs []string) inventory {
	t.Helper()
	var found inventory
	found = append(found, processes(t, mark)...)
	found = append(found, states(t, labs)...)
	found = append(found, groups(t, labs)...)
	found = append(found, machine(t)...)
	slices.Sort(found)
	return slices.Compact(found)
}

// processes lists marked processes and the network namespaces that they are in.
func processes(t *testing.T, mark string) (found []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), mark) {
			continue // ended, or not ours
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, fmt.Sprintf("process %s: %s", filepath.Base(dir), bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		if namespace, err := os.Readlink(filepath.Join(dir, "ns/net")); err == nil {
			found = append(found, "network namespace "+namespace)
		}
	}
	return found
}

// states lists the files of labs in /run/skerry, and an empty /run/skerry.
func states(t *testing.T, labs []string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(stateRoot)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err == nil && len(entries) == 0 {
		found = append(found, "empty "+stateRoot)
	}
	for _, e := range entries {
		if slices.Contains(labs, strings.TrimSuffix(e.Name(), ".lock")) {
			found = append(found, "state "+e.Name())
		}
	}
	return found
}

// groups lists the control groups of labs, and a group "skerry" without any.
func groups(t *testing.T, labs []string) (found []string) {
	t.Helper()
	var roots []string
	for _, pattern := range []string{groupRoot + "/skerry", groupRoot + "/*/skerry"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, more...)
	}
	for _, root := range roots {
		entries, _ := os.ReadDir(root)
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() })
		if len(entries) == 0 {
			found = append(found, "empty control group "+root)
		}
		for _, e := range entries {
			if slices.Contains(labs, e.Name()) {
				found = append(found, "control group "+filepath.Join(root, e.Name()))
			}
		}
	}
	return found
}

// machine lists what no lab may touch: interfaces, nftables and mounts of the
// machine itself.
func machine(t *testing.T) (found []string) {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		found = append(found, "interface "+i.Name)
	}
	tables, err := new(nftables.Conn).ListTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		found = append(found, fmt.Sprintf("nft table %d %s", table.Family, table.Name))
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		found = append(found, "mount "+strings.TrimSpace(line))
	}
	return found
}

// await waits until exactly the inventory from before is there.
func (before inventory) await(t *testing.T, mark string, labs []string) {
	t.Helper()
	var now inventory
	for end := time.Now().Add(settleTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if now = take(t, mark, labs); slices.Equal(before, now) {
			return
		}
	}
	for _, item := range now {
		if !slices.Contains(before, item) {
			t.Errorf("left: %s", item)
		}
	}
	for _, item := range before {
		if !slices.Contains(now, item) {
			t.Errorf("gone: %s", item)
		}
	}
}
