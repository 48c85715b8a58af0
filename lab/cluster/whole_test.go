package cluster

import (
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod whose node lost its power is back when its container began after that, in the
// second of it or later; one that goes is not, whatever it says.
func TestIsBack(t *testing.T) {
	lost := time.Unix(1000, 7e8)
	pod := func(started int64) (p core.Pod) {
		p.Status.ContainerStatuses = []core.ContainerStatus{{State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: meta.Unix(started, 0)}}}}
		return p
	}
	ended, going := pod(1001), pod(1001)
	ended.Status.ContainerStatuses[0].State = core.ContainerState{Terminated: &core.ContainerStateTerminated{}}
	going.DeletionTimestamp = &meta.Time{Time: lost}
	for _, c := range []struct {
		name string
		pod  core.Pod
		lost time.Time
		want bool
	}{
		{"from before", pod(999), lost, false},
		{"of the same second", pod(1000), lost, true},
		{"from after", pod(1001), lost, true},
		{"at a node that stayed", pod(5), time.Time{}, true},
		{"ended", ended, lost, false},
		{"going", going, lost, false},
	} {
		if got := isBack(c.pod, c.lost); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
