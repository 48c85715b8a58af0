package cluster

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/topology"
)

// What a node cannot have is told with the node, and what the machine has.
func TestCheckCapacities(t *testing.T) {
	topo := topology.Topology{Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}}}
	for _, c := range []struct {
		node topology.Ref
		Capacity
		want string
	}{
		{"c1/head", Capacity{}, ""},
		{"c1/worker", Capacity{MilliCPU: 1, Memory: memoryLeast}, ""},
		{"c1/worker", Capacity{MilliCPU: 2000, Memory: 1 << 30}, ""},
		{"c1/other", Capacity{MilliCPU: 500}, "capacity of node c1/other: no such capacity: there is no such node: the lab has [c1/head c1/worker]"},
		{"c1/head", Capacity{MilliCPU: 2001}, "capacity of node c1/head: no such capacity: 2.001 cores: the machine has 2"},
		{"c1/head", Capacity{MilliCPU: -1}, "capacity of node c1/head: no such capacity: -0.001 cores: the machine has 2"},
		{"c1/head", Capacity{Memory: 1 << 20}, "capacity of node c1/head: no such capacity: 1048576 bytes of memory are too few for a pod: give it 32 MiB"},
		{"c1/head", Capacity{Memory: 2 << 30}, "capacity of node c1/head: no such capacity: 2048 MiB of memory: the machine has 1024"},
	} {
		err := checkCapacities(&topo, map[topology.Ref]Capacity{c.node: c.Capacity}, 2, 1<<30)
		if (err == nil) != (c.want == "") || err != nil && (err.Error() != c.want || !errors.Is(err, errCapacity)) {
			t.Errorf("%s %+v: got %v, want %s", c.node, c.Capacity, err, c.want)
		}
	}
}

// A kubelet is told whole cores, and reserves what the node has not of them.
func TestCapacityCovers(t *testing.T) {
	var cpus unix.CPUSet
	for _, i := range []int{1, 2, 5} { // as where the lab may use some only
		cpus.Set(i)
	}
	for _, c := range []struct {
		Capacity
		online, kubelet string
	}{
		{Capacity{MilliCPU: 500}, "1\n", "systemReserved: {cpu: 500m}\n"},
		{Capacity{MilliCPU: 1000}, "1\n", "kind: KubeletConfiguration\n"},
		{Capacity{MilliCPU: 2250, Memory: memoryLeast}, "1,2,5\n", "evictionHard: {memory.available: 0%}\n"},
		{Capacity{MilliCPU: 2250}, "1,2,5\n", "systemReserved: {cpu: 750m}\n"},
		{Capacity{Memory: memoryLeast}, "", "evictionHard: {memory.available: 0%}\n"},
	} {
		if got := c.covers(cpus)["/sys/devices/system/cpu/online"]; got != c.online || !strings.HasSuffix(c.Capacity.kubelet(), c.kubelet) {
			t.Errorf("%+v: online %q, kubelet\n%s", c.Capacity, got, c.Capacity.kubelet())
		}
	}
	covers := Capacity{Memory: 512 << 20}.covers(cpus)
	if got := slices.Collect(maps.Keys(covers)); !slices.Equal(got, []string{"/proc/meminfo"}) {
		t.Errorf("a node with less memory has other files in place of %v", got)
	}
	if text := covers["/proc/meminfo"]; !strings.HasPrefix(text, "MemTotal: 524288 kB\n") || !strings.Contains(text, "\nSwapTotal: 0 kB\n") {
		t.Errorf("its memory is\n%s", text)
	}
}
