package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster/spec"
)

// A kubelet is told whole cores, and reserves what the node has not of them.
func TestCapacityCovers(t *testing.T) {
	var cpus unix.CPUSet
	for _, i := range []int{1, 2, 5} { // as where the lab may use some only
		cpus.Set(i)
	}
	for _, c := range []struct {
		spec.Capacity
		online, kubelet string
	}{
		{spec.Capacity{MilliCPU: 500}, "1\n", "systemReserved: {cpu: 500m}\n"},
		{spec.Capacity{MilliCPU: 1000}, "1\n", "kind: KubeletConfiguration\n"},
		{spec.Capacity{MilliCPU: 2250, Memory: 32 << 20}, "1,2,5\n", "evictionHard: {memory.available: 0%}\n"},
		{spec.Capacity{MilliCPU: 2250}, "1,2,5\n", "systemReserved: {cpu: 750m}\n"},
		{spec.Capacity{Memory: 32 << 20}, "", "evictionHard: {memory.available: 0%}\n"},
	} {
		if got := coversOf(c.Capacity, cpus)["/sys/devices/system/cpu/online"]; got != c.online || !strings.HasSuffix(kubeletOf(c.Capacity), c.kubelet) {
			t.Errorf("%+v: online %q, kubelet\n%s", c.Capacity, got, kubeletOf(c.Capacity))
		}
	}
	covers := coversOf(spec.Capacity{Memory: 512 << 20}, cpus)
	if got := slices.Collect(maps.Keys(covers)); !slices.Equal(got, []string{"/proc/meminfo"}) {
		t.Errorf("a node with less memory has other files in place of %v", got)
	}
	if text := covers["/proc/meminfo"]; !strings.HasPrefix(text, "MemTotal: 524288 kB\n") || !strings.Contains(text, "\nSwapTotal: 0 kB\n") {
		t.Errorf("its memory is\n%s", text)
	}
}
