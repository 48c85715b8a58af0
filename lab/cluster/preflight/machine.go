package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// look finds out what decides about clusters whose files are to be in a folder, which
// need not be there yet.
func look(dir string, now time.Time) (machine, error) {
	m := machine{now: now, dir: dir}
	var err error
	if m.built, err = built(); err != nil {
		return machine{}, err
	}
	if m.memory, err = FreeMemory(); err != nil {
		return machine{}, err
	}
	if m.cores, m.total, err = size(); err != nil {
		return machine{}, err
	}
	if m.disk, err = freeAt(dir); err != nil {
		return machine{}, fmt.Errorf("look at the disk: %w", err)
	}
	if m.watchers, err = freeWatchers("/proc"); err != nil {
		return machine{}, fmt.Errorf("look at inotify: %w", err)
	}
	m.subnets, err = subnets()
	return m, err
}

// size is what the machine lets this process have: cores, and memory in bytes.
func size() (cores int, memory uint64, err error) {
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		return 0, 0, fmt.Errorf("count cores: %w", err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, 0, fmt.Errorf("look at memory: %w", err)
	}
	return cpus.Count(), info.Totalram * uint64(info.Unit), nil
}

// built is when the file of this program was written.
func built() (time.Time, error) {
	path, err := os.Executable()
	if err != nil {
		return time.Time{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

var errMemory = errors.New("/proc/meminfo does not say how much memory is available")

// FreeMemory of the machine that can be had without swapping, in bytes.
func FreeMemory() (uint64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("look at memory: %w", err)
	}
	return available(string(text))
}

// available is the memory that can be had without swapping, in bytes, as /proc/meminfo
// tells it.
func available(meminfo string) (uint64, error) {
	for line := range strings.Lines(meminfo) {
		value, ok := strings.CutPrefix(line, "MemAvailable:")
		if !ok {
			continue
		}
		const kibBits = 54 // in bytes it is of 64
		kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, kibBits)
		if err != nil {
			return 0, errMemory
		}
		return kib << 10, nil
	}
	return 0, errMemory
}

// freeAt is what is free, in bytes, on the disk of a folder, or of the next one above
// that is there.
func freeAt(dir string) (uint64, error) {
	var disk unix.Statfs_t
	err := unix.Statfs(dir, &disk)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		return freeAt(filepath.Dir(dir))
	}
	if err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return disk.Bavail * uint64(disk.Bsize), nil
}

// freeWatchers are how many instances of inotify the user of this process may still make,
// as a folder like /proc tells it.
func freeWatchers(proc string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(proc, "sys/fs/inotify/max_user_instances"))
	if err != nil {
		return 0, err
	}
	most, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return 0, err
	}
	open, err := filepath.Glob(filepath.Join(proc, "[0-9]*/fd/*"))
	if err != nil {
		return 0, err
	}
	for _, fd := range open {
		// Those that are gone by now have none.
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:inotify" && most > 0 && ofThisUser(fd) {
			most--
		}
	}
	return most, nil
}

func ofThisUser(path string) bool {
	var s unix.Stat_t
	return unix.Lstat(path, &s) == nil && int(s.Uid) == os.Getuid()
}

// subnets of the machine's interfaces, but for its loopback.
func subnets() ([]subnet, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	var all []subnet
	for _, link := range links {
		addresses, err := link.Addrs()
		if err != nil {
			return nil, fmt.Errorf("list the addresses of this machine: %w", err)
		}
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && !p.Addr().IsLoopback() && (p.Addr().Is4() || !p.Addr().IsLinkLocalUnicast()) {
				all = append(all, subnet{link.Name, p.Masked()})
			}
		}
	}
	return all, nil
}
