package host_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/host"
)

// What is tried in fresh namespaces is seen nowhere else.
func TestFresh(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces are made")
	}
	dir := t.TempDir()
	err := host.Fresh(func() error {
		all, err := net.Interfaces()
		if err != nil || slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 }) {
			t.Errorf("it has the interfaces %v, %v", all, err)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "inside"), nil, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	told := errors.New("told")
	if err := host.Fresh(func() error { return told }); !errors.Is(err, told) {
		t.Errorf("got %v", err)
	}
}

// A controller that there is not is named, and the group that showed it is gone.
func TestLackingControllers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a control group is made")
	}
	got, err := host.LackingControllers("memory", "nonesuch")
	if err != nil || !slices.Equal(got, []string{"nonesuch"}) {
		t.Errorf("lacks %v, %v", got, err)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/skerry/probe-*", "/sys/fs/cgroup/*/skerry/probe-*"} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
	}
}
