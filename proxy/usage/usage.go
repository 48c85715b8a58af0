// Package usage reads what the pods of this node use from their control groups, of
// version 1 or 2: CPU time, how many cores they may use, and what of their memory. It
// wants nothing of the kubelet or of an API server, and takes some microseconds a
// pod. Start at Reader.
package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// foldersMost bounds a search for a pod's control group.
	foldersMost = 100_000
	// searchEvery is how often a pod that was not found is looked for again.
	searchEvery = 5 * time.Second
)

// A Reader finds control groups below a folder, and remembers where. It is not for
// concurrent use.
type Reader struct {
	layout
	cores  float64 // of the machine, for pods without a limit
	ram    float64
	found  map[string]*group // by UID
	next   time.Duration     // when those that were not found are looked for again
	buffer [4096]byte        // for texts, of which the first line counts
}

// group is a pod's control group. Its files stay open: to open one takes ten times as long
// as to read it.
type group struct {
	path   string        // below the root, or with version 1 below the controller's
	cores  float64       // its limit
	node   float64       // cores of what it is in, which has used all
	ram    float64       // limit in bytes
	freed  float64       // of what is used, bytes that are freed first
	worked int           // descriptors of CPU time,
	all    int           // of that of what it is in, -1 where that is not known,
	used   int           // and of memory
	fresh  time.Duration // until when all this counts
}

// freshFor is how long files stay open, and limits are taken to be what they were: they
// change when somebody resizes a pod, of which the kubelet takes some seconds as well. So is
// what the kernel could free, which takes it long to add up.
const freshFor = 5 * time.Second

// A Sample is what a pod uses.
type Sample struct {
	Worked time.Duration // CPU time since the pod began
	Cores  float64       // that it may use: its limit, or the node's
	RAM    float64       // the share of its limit, or of the machine's, that it has
	Node   Node
}

// A Node is what a pod shares with others: the machine, or what all pods have of it.
type Node struct {
	Cores  float64
	Worked time.Duration // CPU time of all; 0 is not known
}

// ErrNoGroups is of a folder without control groups.
var ErrNoGroups = errors.New("no control groups with CPU time")

// ErrNoPod is of a pod that has no control group, or none yet.
var ErrNoPod = errors.New("the pod has no control group here")

// New reads below a folder: /sys/fs/cgroup, or where a container has that of its node.
func New(root string, cores int) (*Reader, error) {
	r := &Reader{layout: layoutOf(root), cores: float64(cores), found: map[string]*group{}}
	if _, err := os.Stat(r.groups); err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrNoGroups, root, err)
	}
	r.ram = memory()
	return r, nil
}

// memory is the machine's, in bytes; 0 is not known.
func memory() float64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib * 1024
		}
	}
	return 0
}

// Read is what a pod uses; now is the time since any one moment.
func (r *Reader) Read(uid string, now time.Duration) (Sample, error) {
	g, err := r.group(uid, now)
	if err != nil {
		return Sample{}, err
	}
	if now >= g.fresh {
		if err = r.refresh(g); err == nil {
			g.fresh = now + freshFor
		}
	}
	var worked time.Duration
	if err == nil {
		worked, err = r.worked(r.text(g.worked))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV):
		g.close()
		delete(r.found, uid)
		return Sample{}, fmt.Errorf("%w: %s", ErrNoPod, uid)
	case err != nil:
		return Sample{}, fmt.Errorf("read control group %s: %w", g.path, err)
	}
	used, _ := r.text(g.used)
	s := Sample{Worked: worked, Cores: g.cores, Node: Node{Cores: g.node}, RAM: share(max(0, number(used)-g.freed), g.ram)}
	if all, err := r.worked(r.text(g.all)); err == nil { // else it is not known
		s.Node.Worked = all
	}
	return s, nil
}

// Close gives back what is open.
func (r *Reader) Close() {
	for _, g := range r.found {
		g.close()
	}
	clear(r.found)
}

// text is that of an open file, until the next is read. The kernel has it in memory, so that Go's
// scheduler need not know of the call (docs/adr/0047-userspace-plane.md).
func (r *Reader) text(fd int) ([]byte, error) {
	if fd < 0 {
		return nil, fs.ErrNotExist
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&r.buffer)), unsafe.Sizeof(r.buffer), 0, 0, 0) //nolint:gosec // pread fills it
	if errno != 0 {
		return nil, errno
	}
	return r.buffer[:n], nil
}

// refresh opens a group's files, and takes the least of its limits and of those that it is
// in: a pod has no more than what all pods of its node have.
func (r *Reader) refresh(g *group) (err error) {
	g.close()
	g.cores, g.node, g.ram = r.cores, r.cores, r.ram
	shared := "."
	for path := g.path; path != "." && path != "/"; path = filepath.Dir(path) {
		cores, ram := r.limits(path)
		if cores > 0 {
			g.cores = min(g.cores, cores)
			if path != g.path && cores < g.node {
				g.node, shared = cores, path
			}
		}
		if ram > 0 && (g.ram == 0 || ram < g.ram) {
			g.ram = ram
		}
	}
	if g.worked, err = open(r.work, g.path); err != nil {
		return err
	}
	g.all, _ = open(r.work, shared)
	g.used, _ = open(r.memory, g.path)
	g.freed = r.freeable(g.path)
	return nil
}

// open opens a group's file; the descriptor is -1 where there is none.
func open(file file, group string) (fd int, err error) {
	return unix.Open(filepath.Join(file.folder, group, file.name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// close closes a group's files.
func (g *group) close() {
	for _, fd := range []*int{&g.worked, &g.all, &g.used} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
			*fd = -1
		}
	}
}

// share is what part of a limit is used; 0 where there is none.
func share(used, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return used / limit
}

// group finds a pod's, as the kubelet names it by the driver cgroupfs, podUID, or by
// systemd, kubepods-…-podUID.slice with underscores.
func (r *Reader) group(uid string, now time.Duration) (*group, error) {
	if g, ok := r.found[uid]; ok {
		return g, nil
	}
	if now < r.next {
		return nil, fmt.Errorf("%w: %s", ErrNoPod, uid)
	}
	r.keep(r.search())
	if g, ok := r.found[uid]; ok {
		return g, nil
	}
	r.next = now + searchEvery
	return nil, fmt.Errorf("%w: %s", ErrNoPod, uid)
}

// search is where the control groups of pods are, by UID.
func (r *Reader) search() map[string]string {
	found, seen := map[string]string{}, 0
	_ = filepath.WalkDir(r.groups, func(path string, d fs.DirEntry, err error) error { // what cannot be read is not found
		switch {
		case err != nil:
			return nil //nolint:nilerr // one that has gone meanwhile
		case !d.IsDir():
			return nil
		case seen == foldersMost:
			return fs.SkipAll
		}
		seen++
		if pod, ok := podOf(d.Name()); ok {
			if below, err := filepath.Rel(r.groups, path); err == nil && found[pod] == "" {
				found[pod] = below
			}
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// keep has the groups that were found, and closes those that are gone: of a pod that ends
// nobody asks any more.
func (r *Reader) keep(found map[string]string) {
	maps.DeleteFunc(r.found, func(pod string, g *group) bool {
		gone := found[pod] == ""
		if gone {
			g.close()
		}
		return gone
	})
	for pod, path := range found {
		if r.found[pod] == nil {
			r.found[pod] = &group{path: path, worked: -1, all: -1, used: -1}
		}
	}
}

// podOf a group's name is the UID of the pod that it is of: 36 characters, or of a pod
// that is no object of the API server 32.
func podOf(name string) (uid string, ok bool) {
	if at := strings.LastIndex(name, "-pod"); at >= 0 && strings.HasSuffix(name, ".slice") {
		name = strings.ReplaceAll(strings.TrimSuffix(name[at+1:], ".slice"), "_", "-")
	}
	uid, ok = strings.CutPrefix(name, "pod")
	return uid, ok && (len(uid) == 36 || len(uid) == 32)
}
