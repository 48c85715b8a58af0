package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/topology"
)

// Capacity is what a node has for its pods, and tells the API server that it has;
// zero values stand for all that the machine has.
type Capacity struct {
	// MilliCPU is CPU time in thousandths of a core.
	MilliCPU int64
	// Memory in bytes, of which whole KiB count.
	Memory int64
}

// memoryLeast is what a node needs for a pod of the lab's own images.
const memoryLeast = 32 << 20

const (
	kib   = 1 << 10
	milli = 1000 // of them are a core
)

var errCapacity = errors.New("no such capacity")

// Extras are what the clusters of a lab have beside what every one has.
type Extras struct {
	// Capacity of the nodes that have less than the machine, by their names.
	Capacity map[topology.Ref]Capacity
	// Metrics has metrics-server run, which kubectl top and autoscalers ask.
	Metrics bool
	// Registry has the lab keep images that this machine pushes and that nodes pull.
	Registry bool
}

// Wants says whether clusters with these extras start a program of kube.Catalogue.
func (e Extras) Wants(program string) bool { return program != metricsServer || e.Metrics }

// check says what of the extras the machine cannot give.
func (e Extras) check(t *topology.Topology) error {
	cpus, memory, err := here()
	if err != nil {
		return err
	}
	return checkCapacities(t, e.Capacity, cpus.Count(), memory)
}

// checkCapacities says what of the capacities cannot be, on a machine of so many
// cores and so much memory.
func checkCapacities(t *topology.Topology, all map[topology.Ref]Capacity, cores int, memory int64) error {
	var known []topology.Ref
	for _, n := range t.Nodes() {
		known = append(known, n.Ref())
	}
	for _, ref := range slices.Sorted(maps.Keys(all)) {
		problem := ""
		switch c := all[ref]; {
		case !slices.Contains(known, ref):
			problem = fmt.Sprintf("there is no such node: the lab has %v", known)
		case c.MilliCPU < 0 || c.MilliCPU > int64(cores)*milli:
			problem = fmt.Sprintf("%g cores: the machine has %d", float64(c.MilliCPU)/milli, cores)
		case c.Memory != 0 && c.Memory < memoryLeast:
			problem = fmt.Sprintf("%d bytes of memory are too few for a pod: give it %d MiB", c.Memory, memoryLeast>>20)
		case c.Memory > memory:
			problem = fmt.Sprintf("%d MiB of memory: the machine has %d", c.Memory>>20, memory>>20)
		}
		if problem != "" {
			return fmt.Errorf("capacity of node %s: %w: %s", ref, errCapacity, problem)
		}
	}
	return nil
}

// here is what the machine lets this process have.
func here() (cpus unix.CPUSet, memory int64, err error) {
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		return cpus, 0, fmt.Errorf("count CPUs: %w", err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return cpus, 0, fmt.Errorf("measure memory: %w", err)
	}
	return cpus, int64(info.Totalram) * int64(info.Unit), nil
}

// kubeletDropIns is the folder of what is set of a kubelet beyond what all have.
const kubeletDropIns = "kubelet.d"

// kubelet is the configuration that a capacity adds to its node's.
func (c Capacity) kubelet() string {
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

// covers are the texts of the files that tell a kubelet what its machine has, by
// their paths, for a node with less than that.
func (c Capacity) covers(cpus unix.CPUSet) map[string]string {
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
	if capacity != (Capacity{}) {
		cpus, _, err := here()
		if err == nil {
			err = os.WriteFile(filepath.Join(dropIns, "capacity.conf"), []byte(capacity.kubelet()), 0o644)
		}
		if err != nil {
			return err
		}
		covers = capacity.covers(cpus)
	}
	if capacity.MilliCPU > 0 {
		if err := c.lab.LimitCPU(m.podGroup(), capacity.MilliCPU); err != nil {
			return fmt.Errorf("capacity of node %s: %w", m, err)
		}
	}
	if c.options.Metrics {
		accounts = c.lab.AccountsAsRoot(m.podGroup())
	}
	return c.lab.Within(m.Ref(), func() error {
		for path, text := range covers {
			if err := cover(path, text, filepath.Join(dir, "capacity", filepath.Base(path))); err != nil {
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

// cover puts a file that holds a text over another.
func cover(path, text, file string) error {
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
	if err != nil {
		return err
	}
	if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	return nil
}
