package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Within a period a group may run for its quota, both in microseconds: a short
// period has what is throttled wait briefly, and the kernel takes no quota below
// quotaLeast.
const (
	periodLeast = 5_000
	quotaLeast  = 1_000
)

// LimitCPU bounds the CPU time that the group's processes use together, in
// thousandths of a core, at least one: a core for 1000. The group has been delegated.
// In v1 no group below may then have a greater bound of its own.
func (g Group) LimitCPU(milli int64) error {
	quota, period := share(milli)
	if g.tree.v2 {
		if err := os.WriteFile(filepath.Join(g.dirs()[0], "cpu.max"), fmt.Appendf(nil, "%d %d", quota, period), 0); err != nil {
			return fmt.Errorf("limit CPU of control group: %w", err)
		}
		return nil
	}
	for _, dir := range g.delegated() {
		file := filepath.Join(dir, "cpu.cfs_period_us")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue // not the hierarchy of cpu
		}
		err := os.WriteFile(file, strconv.AppendInt(nil, period, 10), 0)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "cpu.cfs_quota_us"), strconv.AppendInt(nil, quota, 10), 0)
		}
		if err != nil {
			return fmt.Errorf("limit CPU of control group: %w", err)
		}
		return nil
	}
	return fmt.Errorf("limit CPU of control group %s: %w", g.path, errNoQuota)
}

// errNoQuota is of kernels without CONFIG_CFS_BANDWIDTH, or of v1 without the
// controller.
var errNoQuota = errors.New("the kernel has no quota of CPU time: it needs the controller cpu with CFS_BANDWIDTH")

// share is the shortest period of whole milliseconds in which the quota is not below
// what the kernel takes. The quota is exact, so that a group below that asks for
// just as much is within it.
func share(milli int64) (quota, period int64) {
	const core, ms = 1000, 1000
	period = max(periodLeast, (quotaLeast+milli-1)/milli*ms)
	return milli * period / core, period
}

// AccountsAsRoot gives, by the files that tell what the whole machine uses, those
// that tell it of the group: where they are mounted over them, programs that take the
// root for their machine see the group's use. In v2 the root has no file of the
// memory in use.
func (g Group) AccountsAsRoot() map[string]string {
	names := []string{"cpu.stat", "memory.stat"}
	if !g.tree.v2 {
		names = []string{
			"cpuacct.usage", "cpuacct.stat", "cpuacct.usage_percpu", "cpuacct.usage_all",
			"memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.stat",
		}
	}
	accounts := map[string]string{}
	for _, root := range []string{g.tree.cpu, g.tree.memory} {
		for _, name := range names {
			from, over := filepath.Join(root, g.path, name), filepath.Join(root, name)
			if isFile(from) && isFile(over) {
				accounts[over] = from
			}
		}
	}
	return accounts
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
