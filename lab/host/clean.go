package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/cgroup"
)

// ErrBusy says that another process holds the lab.
var ErrBusy = errors.New("another skerry process is at work on it")

const (
	lockSuffix = ".lock"
	// lockPatience outlasts a Clean that looks at the lab; one that is held for
	// longer is held by a run.
	lockPatience = 200 * time.Millisecond
	lockPause    = 5 * time.Millisecond
)

// awaitLab is lockLab, once more while another process looks at the lab.
func awaitLab(name string) (*os.File, error) {
	for range lockPatience / lockPause {
		lock, err := lockLab(name)
		if !errors.Is(err, ErrBusy) {
			return lock, err
		}
		time.Sleep(lockPause)
	}
	return lockLab(name)
}

// lockLab takes the lab's name for this process; the kernel gives it back when
// the process ends, however that happens.
func lockLab(name string) (*os.File, error) {
	path := filepath.Join(root, name+lockSuffix)
	for {
		if err := os.MkdirAll(root, 0o755); err != nil {
			return nil, fmt.Errorf("lock lab %s: %w", name, err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if errors.Is(err, fs.ErrNotExist) {
			continue // root was removed by another process that cleaned up
		}
		if err != nil {
			return nil, fmt.Errorf("lock lab %s: %w", name, err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return nil, errors.Join(fmt.Errorf("lab %s: %w", name, ErrBusy), f.Close())
		}
		if isCurrent(f, path) {
			return f, nil
		}
		_ = f.Close() // its holder removed the file before we had the lock
	}
}

func isCurrent(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(ours, now)
}

// unlock gives the name back and removes what is empty.
func (l *Lab) unlock() error {
	if l.lock == nil {
		return nil
	}
	err := errors.Join(os.Remove(l.lock.Name()), l.lock.Close())
	l.lock = nil
	_ = os.Remove(root) // stays while another lab is in it
	if tree, findErr := cgroup.FindHere(); findErr == nil {
		tree.Group(groupRoot).RemoveEmpty()
	}
	return err
}

// Clean removes what killed labs left: labs bound to a process that has ended,
// labs whose parts have ended, and control groups without a lab. It tells the
// names of those that it removed, and leaves alone labs that are up, or that may be:
// those it tells as errors.
func Clean(ctx context.Context) ([]string, error) {
	tree, err := findGroups()
	if err != nil {
		return nil, err
	}
	names, err := leftovers(tree)
	if err != nil {
		return nil, err
	}
	var removed []string
	var problems error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		gone, err := cleanLab(ctx, tree, name)
		problems = errors.Join(problems, err)
		if gone {
			removed = append(removed, name)
		}
	}
	tree.Group(groupRoot).RemoveEmpty()
	return removed, problems
}

// leftovers names every lab that has a state, a lock or a control group.
func leftovers(tree cgroup.Tree) ([]string, error) {
	names, err := tree.Group(groupRoot).Children()
	if err != nil {
		return nil, err
	}
	top, err := tree.Group("").Children()
	if err != nil {
		return nil, err
	}
	for _, group := range top {
		if name, idle := strings.CutPrefix(group, idlePrefix); idle {
			names = append(names, name)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), lockSuffix))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !labName.MatchString(name) })
	slices.Sort(names)
	return slices.Compact(names), nil
}

func cleanLab(ctx context.Context, tree cgroup.Tree, name string) (removed bool, err error) {
	lock, err := lockLab(name)
	if errors.Is(err, ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l := &Lab{state: state{Name: name}, group: tree.Group(groupRoot).Child(name), lock: lock}
	up, err := isUp(ctx, name)
	if up || err != nil {
		return false, errors.Join(err, l.unlock())
	}
	if !l.left() {
		return false, l.unlock() // its run went down while we looked
	}
	return true, l.Down()
}

// isUp says whether a lab that no process holds is one that somebody works in. The error
// is of one that may be: a machine at its limit, or a signal to us, proves no lab dead.
func isUp(ctx context.Context, name string) (bool, error) {
	l, err := Open(name)
	if errors.Is(err, ErrNoLab) || err == nil && l.Bound {
		return false, nil
	}
	if err == nil {
		err = l.Check(ctx)
	}
	switch {
	case errors.Is(err, errNotAlive):
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return err == nil, err
}

// left says whether there is a state or a control group of the lab.
func (l *Lab) left() bool {
	_, err := os.Stat(l.Dir())
	return err == nil || l.group.Exists() || l.idle().Exists()
}
