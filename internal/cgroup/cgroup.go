// Package cgroup puts processes into control groups, accounts their CPU time
// and memory, and ends them together: v2, and v1 where the controllers are
// mounted there. It sets one limit, LimitCPU. Start at Find, then Tree.Group.
//
// The field's libraries do the same and much more (systemd, device programs,
// limits) at the price of five further modules; docs/adr/0004 weighs them.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrMissing says that no usable control group hierarchy is mounted.
var ErrMissing = errors.New("no control groups with cpu and memory accounting are mounted")

// Tree is the hierarchy, or in v1 the hierarchies, that groups are made in.
type Tree struct {
	// roots by v1 controller; in v2 the one root is that of every controller.
	cpu, memory string
	// others are the roots of v1's other controllers, and of v2 beside them, which
	// only Delegate uses.
	others []string
	v2     bool
}

// Usage is what a group has consumed since it was made.
type Usage struct {
	CPU time.Duration `json:"cpu_ns"`
	// MemoryPeak is in bytes; where the kernel keeps no peak, the present use.
	MemoryPeak int64 `json:"memory_peak_bytes"`
}

// Find reads a mountinfo file (proc(5)) and chooses v1 where its controllers
// cpuacct and memory are mounted, else v2.
func Find(mountinfo io.Reader) (Tree, error) {
	var t Tree
	unified := ""
	for lines := bufio.NewScanner(mountinfo); lines.Scan(); {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		mount, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 5 || len(super) < 3 {
			continue
		}
		const mountPoint = 4
		switch options := strings.Split(super[2], ","); {
		case super[0] == "cgroup2":
			unified = mount[mountPoint]
		case super[0] != "cgroup":
		default:
			account, memory := slices.Contains(options, "cpuacct"), slices.Contains(options, "memory")
			if account {
				t.cpu = mount[mountPoint]
			}
			if memory {
				t.memory = mount[mountPoint]
			}
			if !account && !memory {
				t.others = append(t.others, mount[mountPoint])
			}
		}
	}
	switch {
	case t.cpu != "" && t.memory != "":
		if unified != "" {
			t.others = append(t.others, unified)
		}
		return t, nil
	case unified != "":
		return Tree{cpu: unified, memory: unified, v2: true}, nil
	}
	return Tree{}, ErrMissing
}

// FindHere is Find for this process.
func FindHere() (Tree, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Tree{}, fmt.Errorf("find control groups: %w", err)
	}
	defer func() { _ = f.Close() }()
	t, err := Find(f)
	if err != nil {
		return Tree{}, err
	}
	for _, root := range []string{t.cpu, t.memory} {
		if !isGroups(root) {
			return Tree{}, fmt.Errorf("%w: another mount hides %s", ErrMissing, root)
		}
	}
	return t, nil
}

// isGroups reports whether a path shows control groups: mountinfo also lists
// what a later mount hides.
func isGroups(path string) bool {
	var fs unix.Statfs_t
	err := unix.Statfs(path, &fs)
	return err == nil && (fs.Type == unix.CGROUP_SUPER_MAGIC || fs.Type == unix.CGROUP2_SUPER_MAGIC)
}

// Version is 1 or 2.
func (t Tree) Version() int {
	if t.v2 {
		return 2
	}
	return 1
}

// Group is one control group, which may not exist yet.
type Group struct {
	tree Tree
	path string
}

// Group names a group by its path below the root, such as "skerry/lab/node".
func (t Tree) Group(path string) Group { return Group{tree: t, path: path} }

// Child names a group below this one.
func (g Group) Child(name string) Group {
	return Group{tree: g.tree, path: filepath.Join(g.path, name)}
}

// Top names a group of the same tree directly below its root.
func (g Group) Top(name string) Group { return g.tree.Group(name) }

func (g Group) dirs() []string {
	dirs := []string{filepath.Join(g.tree.cpu, g.path)}
	if g.tree.memory != g.tree.cpu {
		dirs = append(dirs, filepath.Join(g.tree.memory, g.path))
	}
	return dirs
}

// Exists says whether the group is there, or in v1 a part of it.
func (g Group) Exists() bool {
	return slices.ContainsFunc(g.delegated(), func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	})
}

// Make creates the group and its ancestors; one that exists is kept.
func (g Group) Make() error {
	for _, dir := range g.dirs() {
		if err := makeDir(dir); err != nil {
			return fmt.Errorf("make control group: %w", err)
		}
	}
	if !g.tree.v2 {
		return nil
	}
	if err := g.passDown("+memory"); err != nil {
		return fmt.Errorf("account memory in control groups: %w", err)
	}
	return nil
}

// passDown has controllers in the group, from the root down: a group can only pass
// on what its parent gives it.
func (g Group) passDown(controllers string) error {
	parent := g.tree.memory
	for _, name := range strings.Split(g.path, "/") {
		control := filepath.Join(parent, "cgroup.subtree_control")
		if err := os.WriteFile(control, []byte(controllers), 0); err != nil {
			return err
		}
		parent = filepath.Join(parent, name)
	}
	return nil
}

// makeDir tries again while another process removes an ancestor that was empty.
func makeDir(dir string) error {
	var err error
	for range makeTurns {
		if err = os.MkdirAll(dir, 0o755); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// Place has the next process that the calling thread starts with attr begin its
// life in the group. The thread must be locked: in v1 it is itself in the group
// until the caller closes what Place returns.
func (g Group) Place(attr *syscall.SysProcAttr) (io.Closer, error) {
	if g.tree.v2 {
		dir, err := os.OpenFile(g.dirs()[0], unix.O_PATH, 0)
		if err != nil {
			return nil, fmt.Errorf("enter control group: %w", err)
		}
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
		return dir, nil
	}
	home, err := g.tree.ofThread()
	if err != nil {
		return nil, fmt.Errorf("enter control group: %w", err)
	}
	if err := joinThread(g.dirs()); err != nil {
		return nil, errors.Join(fmt.Errorf("enter control group: %w", err), home.Close())
	}
	return home, nil
}

// threadHome is the v1 groups that a thread goes back to.
type threadHome []string

// Close has the calling thread go back.
func (h threadHome) Close() error { return joinThread(h) }

func joinThread(dirs []string) error {
	thread := []byte(strconv.Itoa(unix.Gettid()))
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), thread, 0); err != nil {
			return err
		}
	}
	return nil
}

// ofThread finds the v1 groups of the calling thread.
func (t Tree) ofThread() (threadHome, error) {
	text, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return nil, err
	}
	var home threadHome
	for line := range strings.Lines(string(text)) {
		const controllersField, pathField, fields = 1, 2, 3
		parts := strings.SplitN(strings.TrimSpace(line), ":", fields)
		if len(parts) != fields {
			continue
		}
		controllers := strings.Split(parts[controllersField], ",")
		if slices.Contains(controllers, "cpuacct") {
			home = append(home, filepath.Join(t.cpu, parts[pathField]))
		}
		if slices.Contains(controllers, "memory") && t.memory != t.cpu {
			home = append(home, filepath.Join(t.memory, parts[pathField]))
		}
	}
	return home, nil
}

// Children names the groups directly below this one; none where it is missing.
func (g Group) Children() ([]string, error) {
	var names []string
	for _, dir := range g.dirs() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list control groups: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() && !slices.Contains(names, e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	return names, nil
}

// Leaves are the groups below this one that have none below themselves; the group
// itself where there are none.
func (g Group) Leaves() ([]Group, error) {
	names, err := g.Children()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return []Group{g}, nil
	}
	slices.Sort(names)
	var all []Group
	for _, name := range names {
		leaves, err := g.Child(name).Leaves()
		if err != nil {
			return nil, err
		}
		all = append(all, leaves...)
	}
	return all, nil
}

// Processes lists the processes of the group and of the groups below it.
func (g Group) Processes() ([]int, error) {
	var pids []int
	for _, dir := range g.dirs() {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || e.Name() != "cgroup.procs" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return ignoreGone(err)
			}
			for _, field := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil && !slices.Contains(pids, pid) {
					pids = append(pids, pid)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list processes of control group: %w", err)
		}
	}
	return pids, nil
}

// makeTurns bounds makeDir.
const makeTurns = 10

// killTimeout bounds Kill: a process that forks faster than it is ended, or one
// stuck in the kernel, is an error. Where the machine has much else to do, and gives
// memory back, an end takes seconds.
const (
	killTimeout = 10 * time.Second
	killPause   = 2 * time.Millisecond
)

// Kill ends every process of the group and below, and waits until they left. Of
// this process only threads on their way through Place are there, which leave
// by themselves.
func (g Group) Kill() error {
	for deadline := time.Now().Add(killTimeout); ; time.Sleep(killPause) {
		pids, err := g.Processes()
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of control group %s do not end", g.path)
		}
		for _, pid := range pids {
			if pid == os.Getpid() {
				continue
			}
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("end process %d: %w", pid, err)
			}
			g.hasten(pid)
		}
	}
}

// Remove deletes the group and those below it, which must hold no process.
func (g Group) Remove() error {
	for _, root := range g.delegated() {
		var dirs []string
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return ignoreGone(err)
		})
		if err != nil {
			return fmt.Errorf("remove control group: %w", err)
		}
		for _, dir := range slices.Backward(dirs) {
			if err := removeDir(dir); err != nil {
				return fmt.Errorf("remove control group: %w", err)
			}
		}
	}
	return nil
}

// RemoveEmpty deletes the group unless there is something in it: what another process has
// made below it meanwhile stays.
func (g Group) RemoveEmpty() {
	for _, dir := range g.delegated() {
		_ = unix.Rmdir(dir) // ENOTEMPTY and EBUSY are such others'
	}
}

// removeDir tries again while the kernel still lets go of ended processes.
func removeDir(dir string) error {
	for deadline := time.Now().Add(killTimeout); ; time.Sleep(killPause) {
		err := ignoreGone(unix.Rmdir(dir))
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		if time.Now().After(deadline) {
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		}
	}
}

// Usage reads what the group's processes have consumed.
func (g Group) Usage() (Usage, error) {
	cpu, err := g.cpuTime()
	if err != nil {
		return Usage{}, fmt.Errorf("read use of control group: %w", err)
	}
	dirs := g.dirs()
	names := []string{"memory.max_usage_in_bytes"}
	if g.tree.v2 {
		names = []string{"memory.peak", "memory.current"}
	}
	for _, name := range names {
		var n int64
		if n, err = readNumber(filepath.Join(dirs[len(dirs)-1], name)); err == nil {
			return Usage{CPU: cpu, MemoryPeak: n}, nil
		}
	}
	return Usage{}, fmt.Errorf("read use of control group: %w", err)
}

// Resident is the memory that the group's processes hold and that no file backs, in
// bytes: that which they would not give back.
func (g Group) Resident() (int64, error) {
	dirs, words := g.dirs(), []string{"total_rss ", "total_shmem "}
	if g.tree.v2 {
		words = []string{"anon ", "shmem "}
	}
	text, err := os.ReadFile(filepath.Join(dirs[len(dirs)-1], "memory.stat"))
	if err != nil {
		return 0, fmt.Errorf("read use of control group: %w", err)
	}
	var sum int64
	for line := range strings.Lines(string(text)) {
		for _, word := range words {
			if value, ok := strings.CutPrefix(line, word); ok {
				n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				if err != nil {
					return 0, fmt.Errorf("read use of control group: %w", err)
				}
				sum += n
			}
		}
	}
	return sum, nil
}

func (g Group) cpuTime() (time.Duration, error) {
	dir := g.dirs()[0]
	if !g.tree.v2 {
		ns, err := readNumber(filepath.Join(dir, "cpuacct.usage"))
		return time.Duration(ns), err
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "usage_usec "); ok {
			us, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("%s has no usage_usec", dir)
}

func readNumber(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
