package usage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// file is where every group has one of its files: in the group's folder below this one.
type file struct{ folder, name string }

// layout is where a version of control groups has what.
type layout struct {
	groups       string // the folder that has a folder for each group
	work, memory file
	// freed is what a group's memory.stat calls that which the kernel frees before it wants for
	// memory: what Kubernetes does not count either (its working set).
	freed string
	// worked reads the text of work.
	worked func(text []byte, err error) (time.Duration, error)
	// limits of a group; 0 is none.
	limits func(group string) (cores, ram float64)
}

// layoutOf is that of the groups below a folder.
func layoutOf(root string) layout {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return layout{
			groups: root, work: file{root, "cpu.stat"}, memory: file{root, "memory.current"}, freed: "inactive_file", worked: worked2,
			limits: func(group string) (cores, ram float64) { return limits2(filepath.Join(root, group)) },
		}
	}
	cpu, memory := filepath.Join(root, "cpu"), filepath.Join(root, "memory")
	accounts := filepath.Join(root, "cpuacct")
	if at, err := filepath.EvalSymlinks(accounts); err == nil {
		accounts = at // systemd has cpuacct lead to cpu,cpuacct, and nobody walks through such a link
	}
	return layout{
		groups: accounts, work: file{accounts, "cpuacct.usage"}, memory: file{memory, "memory.usage_in_bytes"}, freed: "total_inactive_file", worked: worked1,
		limits: func(group string) (cores, ram float64) {
			return limits1(filepath.Join(cpu, group)), numberIn(filepath.Join(memory, group), "memory.limit_in_bytes")
		},
	}
}

// freeable is what a group has that is freed first, in bytes; 0 where it does not tell.
func (l layout) freeable(group string) float64 {
	text, err := os.ReadFile(filepath.Join(l.memory.folder, group, "memory.stat"))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(l.freed+" ")); ok {
			return number(rest)
		}
	}
	return 0
}

var errNoTime = errors.New("it has no CPU time")

// worked2 is the CPU time that a group of version 2 tells.
func worked2(text []byte, err error) (time.Duration, error) {
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("usage_usec ")); ok {
			us, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, errNoTime
}

// worked1 is that of version 1.
func worked1(text []byte, err error) (time.Duration, error) {
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return time.Duration(ns), err
}

func limits2(dir string) (cores, ram float64) {
	if most, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err == nil {
		if f := bytes.Fields(most); len(f) == 2 {
			cores = quotient(number(f[0]), number(f[1]))
		}
	}
	return cores, numberIn(dir, "memory.max")
}

func limits1(dir string) (cores float64) {
	return quotient(numberIn(dir, "cpu.cfs_quota_us"), numberIn(dir, "cpu.cfs_period_us"))
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
	return number(text)
}

// number is 0 where a file says max, or nothing.
func number(text []byte) float64 {
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
	if err != nil {
		return 0
	}
	return f
}
