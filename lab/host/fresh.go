package host

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
)

// Root is the folder that holds the files of every lab.
func Root() string { return root }

// RequireRoot is the error of a lab that is taken up without the rights for it.
func RequireRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("cannot make, enter or remove network namespaces: %w", ErrNotRoot)
	}
	return nil
}

// Fresh runs f on a thread in network and mount namespaces of their own, which end
// with it: what f tries there leaves nothing, nor do programs that it starts and
// waits for.
func Fresh(f func() error) error {
	return inThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("make namespaces: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make mounts private: %w", err)
		}
		return f()
	})
}

// probeGroup is a control group of a name that nobody else tries at the same time.
func probeGroup(tree cgroup.Tree) cgroup.Group {
	return tree.Group(groupRoot).Child("probe-" + rand.Text())
}

// LackingControllers names those of the controllers that no control group of a lab can
// have. It makes a group where that shows, and removes it.
func LackingControllers(controllers ...string) (lacking []string, err error) {
	tree, err := cgroup.FindHere()
	if err != nil {
		return nil, err
	}
	defer removeEmptyRoot(tree)
	group := probeGroup(tree)
	defer func() { err = errors.Join(err, group.Remove()) }()
	return group.Lacks(controllers...)
}
