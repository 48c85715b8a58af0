package host_test

import (
	"os"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/host"
)

// What keeps cores awake is in a group of its own, which its end removes, and the lab's.
func TestStayAwake(t *testing.T) {
	if driver, err := os.ReadFile("/sys/devices/system/cpu/cpuidle/current_driver"); err == nil && strings.TrimSpace(string(driver)) != "none" {
		t.Skipf("the kernel has the driver %s of idle CPUs, which follows /dev/cpu_dma_latency", driver)
	}
	lab := up(t, "awake", square())
	tree, err := cgroup.FindHere()
	if err != nil {
		t.Fatal(err)
	}
	idle := tree.Group("skerry-idle-" + lab.Name)
	stop, err := lab.StayAwake(agent)
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := idle.Processes(); err != nil || len(pids) != 1 {
		t.Errorf("in its group are %v, %v", pids, err)
	}
	if err := stop(); err != nil || idle.Exists() {
		t.Errorf("after its end its group is there: %t, %v", idle.Exists(), err)
	}
	if _, err := lab.StayAwake(agent); err != nil {
		t.Fatal(err)
	}
	other, err := host.Open(lab.Name) // as after its owner has died
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Down(); err != nil || idle.Exists() {
		t.Errorf("after the lab's end its group is there: %t, %v", idle.Exists(), err)
	}
}
