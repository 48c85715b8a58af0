package host

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/internal/thread"
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
	return thread.Do(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("make namespaces: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make mounts private: %w", err)
		}
		return f()
	})
}

// LackingControllers names those of the controllers that no control group of a lab can
// have. It makes a group where that shows, and removes it.
func LackingControllers(controllers ...string) (lacking []string, err error) {
	err = probing(func(_ cgroup.Tree, group cgroup.Group) error {
		lacking, err = group.Lacks(controllers...)
		return err
	})
	return lacking, err
}

// probing tries something with a control group as a lab has one, and removes it. Its name nobody
// else tries at the same time, and it is locked as that of a lab is: no Clean takes it for one
// that a killed run has left.
func probing(try func(cgroup.Tree, cgroup.Group) error) error {
	if err := RequireRoot(); err != nil {
		return err
	}
	tree, err := cgroup.FindHere()
	if err != nil {
		return err
	}
	name := "probe-" + strings.ToLower(rand.Text())
	lock, err := lockLab(name)
	if err != nil {
		return err
	}
	probe := &Lab{state: state{Name: name}, group: tree.Group(groupRoot).Child(name), lock: lock}
	err = try(tree, probe.group)
	return errors.Join(err, probe.group.Remove(), probe.unlock())
}
