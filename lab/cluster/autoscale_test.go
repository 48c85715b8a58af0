package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"skerry.dev/skerry/lab/topology"
)

var scaled = Workload{
	Name: "web", Nodes: []topology.Ref{"c1/worker", "c1/head"}, Port: 8080, NodePort: 30080,
	Autoscale: &Autoscale{Min: 2, Max: 5, Percent: 50, MilliCPU: 100},
}

// The autoscaler is of the workload's Deployment, within the bounds that were given,
// and does not wait five minutes with fewer pods.
func TestHorizontal(t *testing.T) {
	spec := scaled.Autoscale.horizontal(scaled.Name).Spec
	target, use := spec.ScaleTargetRef, spec.Metrics[0].Resource
	if target.Kind != "Deployment" || target.Name != "web" || *spec.MinReplicas != 2 || spec.MaxReplicas != 5 ||
		use.Name != core.ResourceCPU || *use.Target.AverageUtilization != 50 || *spec.Behavior.ScaleDown.StabilizationWindowSeconds != 60 {
		t.Errorf("%+v", spec)
	}
}

// Pods of an autoscaled workload begin with the least number, request CPU time, may
// share a node, and are reached at every node; those of another do none of it.
func TestAutoscaledDeployment(t *testing.T) {
	hosts := []string{"c1-worker", "c1-head"}
	fixed := scaled
	fixed.Autoscale = nil
	for _, c := range []struct {
		Workload
		pods    int32
		request int64
		skew    int
		stays   core.ServiceExternalTrafficPolicy
		first   string
	}{
		{scaled, 2, 100, 1, core.ServiceExternalTrafficPolicyCluster, "c1-worker"},
		{fixed, 2, 0, 0, core.ServiceExternalTrafficPolicyLocal, ""},
	} {
		d := c.deployment(hosts).Spec
		pod := d.Template.Spec
		if *d.Replicas != c.pods || pod.Containers[0].Resources.Requests.Cpu().MilliValue() != c.request || len(pod.TopologySpreadConstraints) != c.skew {
			t.Errorf("%d pods: %+v", *d.Replicas, pod)
		}
		if (pod.Affinity.PodAntiAffinity == nil) != (c.Autoscale != nil) {
			t.Errorf("two pods at one node: %+v", pod.Affinity)
		}
		at := pod.Affinity.NodeAffinity
		if got := at.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values; !slices.Equal(got, hosts) {
			t.Errorf("pods are at %v, want %v", got, hosts)
		}
		first := ""
		for _, p := range at.PreferredDuringSchedulingIgnoredDuringExecution {
			first += p.Preference.MatchExpressions[0].Values[0]
		}
		if first != c.first {
			t.Errorf("the first pod is at %q, want %q", first, c.first)
		}
		if got := c.service(false).Spec.ExternalTrafficPolicy; got != c.stays {
			t.Errorf("requests stay %s, want %s", got, c.stays)
		}
	}
}

// A follower tells each number of pods once, and has each pod that runs send as the
// lab does once, however often it is seen.
func TestFollower(t *testing.T) {
	var told []int
	tries := map[types.UID]int{}
	f := follower{said: -1, tell: func(n int) { told = append(told, n) }, ready: map[types.UID]bool{}, sends: map[types.UID]bool{}}
	f.congest = func(p core.Pod) (bool, error) {
		tries[p.UID]++
		if p.UID == "c" {
			return false, errors.New("no route")
		}
		return p.UID != "b" || tries["b"] > 1, nil // no process of b is seen at first
	}
	pod := func(id types.UID, phase core.PodPhase, ready core.ConditionStatus) core.Pod {
		return core.Pod{ObjectMeta: meta.ObjectMeta{UID: id}, Status: core.PodStatus{
			Phase: phase, Conditions: []core.PodCondition{{Type: core.PodReady, Status: ready}},
		}}
	}
	ending := pod("a", core.PodRunning, core.ConditionTrue)
	ending.DeletionTimestamp = &meta.Time{Time: time.Unix(1, 0)}
	for _, seen := range []struct {
		core.Pod
		gone bool
	}{
		{pod("a", core.PodPending, core.ConditionFalse), false},
		{pod("a", core.PodRunning, core.ConditionFalse), false},
		{pod("a", core.PodRunning, core.ConditionTrue), false},
		{pod("b", core.PodRunning, core.ConditionFalse), false},
		{pod("b", core.PodRunning, core.ConditionTrue), false},
		{pod("b", core.PodRunning, core.ConditionTrue), false},
		{pod("c", core.PodRunning, core.ConditionFalse), false},
		{ending, false},
		{pod("b", core.PodRunning, core.ConditionTrue), true},
	} {
		f.see(seen.Pod, seen.gone)
		f.say()
	}
	if want := []int{0, 1, 2, 1, 0}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if tries["a"] != 1 || tries["b"] != 2 || f.problems == nil {
		t.Errorf("tries %v, problems %v", tries, f.problems)
	}
}
