// Package usage reads what the pods of this node use from their control groups, of
// version 1 or 2: CPU time, how many cores they may use, and what of their memory. It
// wants nothing of the kubelet or of an API server, and takes some tens of microseconds a
// pod. Start at Reader.
package usage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
	root  string
	cores float64 // of the machine, for pods without a limit
	ram   float64
	found map[string]*group // by UID
	next  time.Duration     // when those that were not found are looked for again
}

// group is a pod's control group.
type group struct {
	path   string // below the root, or with version 1 below the controller's
	cores  float64
	node   float64       // cores of what it is in,
	shared string        // the group that has these
	ram    float64       // limit in bytes
	limits time.Duration // when these two are read again
}

// limitsEvery is how often limits are read: they change when somebody resizes a pod.
const limitsEvery = time.Second

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
	r := &Reader{root: root, cores: float64(cores), found: map[string]*group{}}
	if _, err := os.Stat(r.searched()); err != nil {
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

// v2 says whether the groups are of version 2.
func (r *Reader) v2() bool {
	_, err := os.Stat(filepath.Join(r.root, "cgroup.controllers"))
	return err == nil
}

// searched is the folder that has a folder for each group.
func (r *Reader) searched() string {
	if r.v2() {
		return r.root
	}
	return filepath.Join(r.root, "cpuacct")
}

// Read is what a pod uses; now is the time since any one moment.
func (r *Reader) Read(uid string, now time.Duration) (Sample, error) {
	g, err := r.group(uid, now)
	if err != nil {
		return Sample{}, err
	}
	work, used, limits := r.worked1, r.used1, r.limits1
	if r.v2() {
		work, used, limits = r.worked2, r.used2, r.limits2
	}
	worked, err := work(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		delete(r.found, uid)
		return Sample{}, fmt.Errorf("%w: %s", ErrNoPod, uid)
	}
	if err != nil {
		return Sample{}, fmt.Errorf("read control group %s: %w", g.path, err)
	}
	if now >= g.limits {
		r.limit(g, limits)
		g.limits = now + limitsEvery
	}
	s := Sample{Worked: worked, Cores: g.cores, Node: Node{Cores: g.node}, RAM: share(used(g.path), g.ram)}
	if all, err := work(g.shared); err == nil { // else it is not known
		s.Node.Worked = all
	}
	return s, nil
}

// limit takes the least of a group's limits and of those that it is in: a pod has no more
// than what all pods of its node have.
func (r *Reader) limit(g *group, limits func(path string) (cores, ram float64)) {
	g.cores, g.node, g.shared, g.ram = r.cores, r.cores, ".", r.ram
	for path := g.path; path != "." && path != "/"; path = filepath.Dir(path) {
		cores, ram := limits(path)
		if cores > 0 {
			g.cores = min(g.cores, cores)
			if path != g.path && cores < g.node {
				g.node, g.shared = cores, path
			}
		}
		if ram > 0 && (g.ram == 0 || ram < g.ram) {
			g.ram = ram
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
	top := r.searched()
	seen := 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
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
			if below, err := filepath.Rel(top, path); err == nil && r.found[pod] == nil {
				r.found[pod] = &group{path: below}
			}
			return fs.SkipDir
		}
		return nil
	})
	if g, ok := r.found[uid]; ok {
		return g, err
	}
	r.next = now + searchEvery
	return nil, errors.Join(fmt.Errorf("%w: %s", ErrNoPod, uid), err)
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

// worked2 is the CPU time of a group of version 2, used2 its memory.
func (r *Reader) worked2(path string) (time.Duration, error) {
	stat, err := os.ReadFile(filepath.Join(r.root, path, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(stat) {
		if rest, ok := bytes.CutPrefix(line, []byte("usage_usec ")); ok {
			us, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, errNoTime
}

func (r *Reader) used2(path string) float64 {
	return numberIn(filepath.Join(r.root, path), "memory.current")
}

var errNoTime = errors.New("it has no CPU time")

// limits2 are those of a group of version 2; 0 is none.
func (r *Reader) limits2(path string) (cores, ram float64) {
	dir := filepath.Join(r.root, path)
	if most, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err == nil {
		if f := strings.Fields(string(most)); len(f) == 2 {
			cores = quotient(number(f[0]), number(f[1]))
		}
	}
	return cores, numberIn(dir, "memory.max")
}

// worked1 is the CPU time of a group of version 1, used1 its memory.
func (r *Reader) worked1(path string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "cpuacct", path, "cpuacct.usage"))
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Duration(ns), err
}

func (r *Reader) used1(path string) float64 {
	return numberIn(filepath.Join(r.root, "memory", path), "memory.usage_in_bytes")
}

// limits1 are those of groups of version 1; 0 is none.
func (r *Reader) limits1(path string) (cores, ram float64) {
	cpu := filepath.Join(r.root, "cpu", path)
	cores = quotient(numberIn(cpu, "cpu.cfs_quota_us"), numberIn(cpu, "cpu.cfs_period_us"))
	return cores, numberIn(filepath.Join(r.root, "memory", path), "memory.limit_in_bytes")
}

// quotient of a quota and its period; 0 where either says that there is none.
func quotient(quota, period float64) float64 {
	if quota <= 0 || period <= 0 {
		return 0
	}
	return quota / period
}

// numberIn a file of a group; 0 where there is none.
func numberIn(dir, file string) float64 {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	return number(strings.TrimSpace(string(text)))
}

// number is 0 where a file says max.
func number(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return f
}
