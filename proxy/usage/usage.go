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
	found map[string]string // by UID: the folder, below the controller's with version 1
	next  time.Duration     // when those that were not found are looked for again
}

// A Sample is what a pod uses.
type Sample struct {
	Worked time.Duration // CPU time since the pod began
	Cores  float64       // that it may use: its limit, or the machine's
	RAM    float64       // the share of its limit, or of the machine's, that it has
}

// ErrNoGroups is of a folder without control groups.
var ErrNoGroups = errors.New("no control groups with CPU time")

// ErrNoPod is of a pod that has no control group, or none yet.
var ErrNoPod = errors.New("the pod has no control group here")

// New reads below a folder: /sys/fs/cgroup, or where a container has that of its node.
func New(root string, cores int) (*Reader, error) {
	r := &Reader{root: root, cores: float64(cores), found: map[string]string{}}
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
	group, err := r.group(uid, now)
	if err != nil {
		return Sample{}, err
	}
	read := r.read1
	if r.v2() {
		read = r.read2
	}
	s, err := read(group)
	if errors.Is(err, fs.ErrNotExist) {
		delete(r.found, uid)
		return Sample{}, fmt.Errorf("%w: %s", ErrNoPod, uid)
	}
	return s, err
}

// group finds a pod's, as the kubelet names it by the driver cgroupfs, podUID, or by
// systemd, kubepods-…-podUID.slice with underscores.
func (r *Reader) group(uid string, now time.Duration) (string, error) {
	if g, ok := r.found[uid]; ok {
		return g, nil
	}
	if now < r.next {
		return "", fmt.Errorf("%w: %s", ErrNoPod, uid)
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
			below, _ := filepath.Rel(top, path) // it is below
			r.found[pod] = below
			return fs.SkipDir
		}
		return nil
	})
	if g, ok := r.found[uid]; ok {
		return g, err
	}
	r.next = now + searchEvery
	return "", errors.Join(fmt.Errorf("%w: %s", ErrNoPod, uid), err)
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

// read2 reads a group of version 2.
func (r *Reader) read2(group string) (Sample, error) {
	dir := filepath.Join(r.root, group)
	s := Sample{Cores: r.cores}
	stat, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return s, err
	}
	for line := range bytes.Lines(stat) {
		if rest, ok := bytes.CutPrefix(line, []byte("usage_usec ")); ok {
			us, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			if err != nil {
				return s, fmt.Errorf("read %s: %w", dir, err)
			}
			s.Worked = time.Duration(us) * time.Microsecond
		}
	}
	if most, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err == nil {
		if f := strings.Fields(string(most)); len(f) == 2 {
			s.limit(number(f[0]), number(f[1]))
		}
	}
	s.RAM = r.share(numberIn(dir, "memory.current"), numberIn(dir, "memory.max"))
	return s, nil
}

// read1 reads groups of version 1.
func (r *Reader) read1(group string) (Sample, error) {
	s := Sample{Cores: r.cores}
	text, err := os.ReadFile(filepath.Join(r.root, "cpuacct", group, "cpuacct.usage"))
	if err != nil {
		return s, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return s, fmt.Errorf("read %s: %w", group, err)
	}
	s.Worked = time.Duration(ns)
	cpu := filepath.Join(r.root, "cpu", group)
	s.limit(numberIn(cpu, "cpu.cfs_quota_us"), numberIn(cpu, "cpu.cfs_period_us"))
	ram := filepath.Join(r.root, "memory", group)
	s.RAM = r.share(numberIn(ram, "memory.usage_in_bytes"), numberIn(ram, "memory.limit_in_bytes"))
	return s, nil
}

// limit takes a quota in a period, both in the same unit; none is without a limit.
func (s *Sample) limit(quota, period float64) {
	if quota > 0 && period > 0 {
		s.Cores = quota / period
	}
}

// share is what part of a limit, or of the machine's memory, is used.
func (r *Reader) share(used, limit float64) float64 {
	if limit <= 0 || r.ram > 0 && limit > r.ram {
		limit = r.ram
	}
	if limit <= 0 {
		return 0
	}
	return used / limit
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
