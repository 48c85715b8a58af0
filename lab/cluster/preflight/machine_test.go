package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Instances of inotify are those of this user that are left.
func TestFreeWatchers(t *testing.T) {
	proc := t.TempDir()
	limit := filepath.Join(proc, "sys/fs/inotify/max_user_instances")
	for _, dir := range []string{filepath.Dir(limit), filepath.Join(proc, "1/fd"), filepath.Join(proc, "self/fd")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := freeWatchers(proc); err == nil {
		t.Error("without a limit there is an answer")
	}
	if err := os.WriteFile(limit, []byte("3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, to := range []string{"anon_inode:inotify", "anon_inode:[eventfd]", "anon_inode:inotify"} {
		if err := os.Symlink(to, filepath.Join(proc, fmt.Sprintf("1/fd/%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if free, err := freeWatchers(proc); free != 1 || err != nil {
		t.Errorf("of 3 with 2 in use %d are free, %v", free, err)
	}
	if err := os.WriteFile(limit, []byte("many"), 0o600); err != nil {
		t.Fatal(err)
	}
	if free, err := freeWatchers(proc); err == nil {
		t.Errorf("of many %d are free", free)
	}
	// Here: one that this process makes is one less.
	before, err := freeWatchers("/proc")
	if err != nil {
		t.Skipf("this kernel has no inotify: %v", err)
	}
	var made []int
	for range 5 { // others may give theirs back meanwhile
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			t.Skipf("no instances of inotify are left to this user: %v", err)
		}
		made = append(made, fd)
	}
	after, err := freeWatchers("/proc")
	for _, fd := range made {
		_ = unix.Close(fd)
	}
	if err != nil || after >= before {
		t.Errorf("with 5 more in use %d are free, %d before, %v", after, before, err)
	}
}
