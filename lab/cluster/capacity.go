package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster/node"
	"skerry.dev/skerry/lab/cluster/spec"
)

const (
	kib   = 1 << 10
	milli = 1000 // of them are a core
)

// kubeletDropIns is the folder of what is set of a kubelet beyond what all have.
const kubeletDropIns = "kubelet.d"

// kubeletOf is the configuration that a capacity adds to its node's.
func kubeletOf(c spec.Capacity) string {
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	if part := c.MilliCPU % milli; part != 0 {
		text += fmt.Sprintf("# The node has a part only of its last core.\nsystemReserved: {cpu: %dm}\n", milli-part)
	}
	if c.Memory > 0 {
		text += "# What a kubelet takes for its node's free memory is the machine's. The bound is a\n" +
			"# control group: who goes beyond it is ended, not evicted.\n" +
			"evictionHard: {memory.available: 0%}\n"
	}
	return text
}

// coversOf are the texts of the files that tell a kubelet what its machine has, by
// their paths, for a node with less than that.
func coversOf(c spec.Capacity, cpus unix.CPUSet) map[string]string {
	texts := map[string]string{}
	if c.MilliCPU > 0 {
		var online []string
		whole := int((c.MilliCPU + milli - 1) / milli)
		for i := 0; len(online) < min(whole, cpus.Count()); i++ {
			if cpus.IsSet(i) {
				online = append(online, strconv.Itoa(i))
			}
		}
		texts["/sys/devices/system/cpu/online"] = strings.Join(online, ",") + "\n"
	}
	if c.Memory > 0 {
		text := ""
		for _, name := range []string{"MemTotal", "MemFree", "MemAvailable"} {
			text += fmt.Sprintf("%s: %d kB\n", name, c.Memory/kib)
		}
		for _, name := range []string{"Buffers", "Cached", "SwapCached", "SwapTotal", "SwapFree"} {
			text += name + ": 0 kB\n"
		}
		texts["/proc/meminfo"] = text
	}
	return texts
}

// equip has a node be what it is said to be: no more than its capacity, and with
// accounts of its own for metrics-server.
func (c *Cluster) equip(m member) error {
	capacity, dir := c.options.Capacity[m.Ref()], c.dirOf(m)
	dropIns := filepath.Join(dir, kubeletDropIns)
	if err := os.MkdirAll(dropIns, 0o755); err != nil {
		return err
	}
	covers, accounts := map[string]string{}, map[string]string{}
	if capacity != (spec.Capacity{}) {
		var cpus unix.CPUSet
		err := unix.SchedGetaffinity(0, &cpus)
		if err == nil {
			err = os.WriteFile(filepath.Join(dropIns, "capacity.conf"), []byte(kubeletOf(capacity)), 0o644)
		}
		if err != nil {
			return fmt.Errorf("capacity of node %s: %w", m, err)
		}
		covers = coversOf(capacity, cpus)
	}
	if capacity.MilliCPU > 0 {
		if err := errors.Join(c.lab.LimitCPU(m.podGroup(), capacity.MilliCPU), c.lab.HandOff(m.Ref())); err != nil {
			return fmt.Errorf("capacity of node %s: %w", m, err)
		}
	}
	if c.options.Metrics {
		accounts = c.lab.AccountsAsRoot(m.podGroup())
	}
	return c.lab.Within(m.Ref(), func() error {
		for path, text := range covers {
			if err := node.Cover(path, text, filepath.Join(dir, "capacity", filepath.Base(path))); err != nil {
				return fmt.Errorf("capacity of node %s: %w", m, err)
			}
		}
		for over, from := range accounts {
			if err := unix.Mount(from, over, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("accounts of node %s: cover %s: %w", m, over, err)
			}
		}
		return nil
	})
}
