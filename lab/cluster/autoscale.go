package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"skerry.dev/skerry/lab/cluster/node"
)

// Autoscale has as many pods serve a workload as their use of CPU time asks for, by a
// HorizontalPodAutoscaler of its Deployment: metrics-server is to run.
type Autoscale struct {
	// Min and Max are how many pods there may be, over all nodes that serve. A workload
	// that is deployed has Min.
	Min, Max int
	// Percent of MilliCPU that a pod is to use, on the mean of all.
	Percent int
	// MilliCPU is what each pod requests, in thousandths of a core.
	MilliCPU int64
}

const (
	// autoscalerPeriod is how often the autoscaler looks, in place of every 15 s:
	// metrics-server has other numbers every 10 s.
	autoscalerPeriod = time.Second
	// settle is for how long fewer pods must have done before one is ended, in place of
	// five minutes: as in Knative's stable window.
	settle = time.Minute
)

// horizontal is the autoscaler of a Deployment. How fast it adds pods is Kubernetes'
// default: at once, four or as many again every 15 s, whichever is more.
func (a Autoscale) horizontal(name string) *autoscaling.HorizontalPodAutoscaler {
	return &autoscaling.HorizontalPodAutoscaler{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: labelsOf(name)},
		Spec: autoscaling.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscaling.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    new(int32(a.Min)), MaxReplicas: int32(a.Max),
			Metrics: []autoscaling.MetricSpec{{Type: autoscaling.ResourceMetricSourceType, Resource: &autoscaling.ResourceMetricSource{
				Name:   core.ResourceCPU,
				Target: autoscaling.MetricTarget{Type: autoscaling.UtilizationMetricType, AverageUtilization: new(int32(a.Percent))},
			}}},
			Behavior: &autoscaling.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscaling.HPAScalingRules{StabilizationWindowSeconds: new(int32(settle / time.Second))},
			},
		},
	}
}

// spread has the scheduler place pods at hosts as evenly as can be, the first of them
// at the first host.
func spread(pod *core.PodSpec, labels map[string]string, hosts []string) {
	pod.Affinity = &core.Affinity{NodeAffinity: atHosts(hosts)}
	pod.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []core.PreferredSchedulingTerm{
		{Weight: 100, Preference: isHost(hosts[:1])},
	}
	pod.TopologySpreadConstraints = []core.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: core.LabelHostname, WhenUnsatisfiable: core.DoNotSchedule,
		LabelSelector: &meta.LabelSelector{MatchLabels: labels},
	}}
}

// autoscale starts the autoscaler of a workload whose pods are ready.
func (c *Cluster) autoscale(ctx context.Context, w Workload) error {
	if w.Autoscale == nil {
		return nil
	}
	_, err := c.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(ctx, w.Autoscale.horizontal(w.Name), meta.CreateOptions{})
	if err != nil {
		return fmt.Errorf("autoscale %s: %w", w.Name, err)
	}
	return nil
}

// watchPause is how long to wait for an API server that has ended a watch.
const watchPause = time.Second

// Follow tells how many pods of a workload take requests: at once, and whenever that
// changes, until ctx ends. Pods that come send by the congestion control of the lab.
// An API server that is away is waited for; one that has never answered is an error.
func (c *Cluster) Follow(ctx context.Context, workload string, tell func(pods int)) error {
	f := follower{said: -1, tell: tell, sends: map[types.UID]bool{}, congest: c.sendAsLab}
	for {
		err := c.watch(ctx, workload, &f)
		select {
		case <-ctx.Done():
			if f.said >= 0 {
				err = nil
			}
			return errors.Join(err, f.problems)
		case <-time.After(watchPause):
		}
	}
}

// watch shows a follower the pods of a workload, until the API server ends that.
func (c *Cluster) watch(ctx context.Context, workload string, f *follower) error {
	pods, options := c.client.CoreV1().Pods(namespace), meta.ListOptions{LabelSelector: selectorOf(workload)}
	list, err := pods.List(ctx, options)
	if err != nil {
		return fmt.Errorf("follow the pods of %s: %w", workload, err)
	}
	f.ready = map[types.UID]bool{}
	for _, p := range list.Items {
		f.see(p, false)
	}
	f.say()
	options.ResourceVersion = list.ResourceVersion
	w, err := pods.Watch(ctx, options)
	if err != nil {
		return fmt.Errorf("follow the pods of %s: %w", workload, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		p, ok := event.Object.(*core.Pod)
		if !ok { // the API server says why it ends the watch
			return nil
		}
		f.see(*p, event.Type == watch.Deleted)
		f.say()
	}
	return nil
}

// follower counts the pods of a workload that take requests.
type follower struct {
	// ready are the pods that do, sends those that have the lab's congestion control.
	ready, sends map[types.UID]bool
	// said is what was told last, -1 before anything was.
	said    int
	tell    func(pods int)
	congest func(core.Pod) (done bool, err error)
	// problems of congest.
	problems error
}

// see takes note of a pod that is there or, if gone, no more.
func (f *follower) see(p core.Pod, gone bool) {
	delete(f.ready, p.UID)
	if gone || p.DeletionTimestamp != nil {
		return
	}
	if isReady(p) {
		f.ready[p.UID] = true
	}
	if f.sends[p.UID] || p.Status.Phase != core.PodRunning {
		return
	}
	var err error
	f.sends[p.UID], err = f.congest(p)
	f.problems = errors.Join(f.problems, err)
}

// say tells how many there are, where that is not what was told.
func (f *follower) say() {
	if len(f.ready) != f.said {
		f.said = len(f.ready)
		f.tell(f.said)
	}
}

// sendAsLab has a pod that runs send by the congestion control of the lab. It is not
// done where no process of the pod is seen yet, or any more.
func (c *Cluster) sendAsLab(p core.Pod) (done bool, err error) {
	i := slices.IndexFunc(c.members, func(m member) bool { return m.Host() == p.Spec.NodeName })
	if i < 0 {
		return false, nil
	}
	pids, _, err := c.lab.Delegated(path.Join(c.members[i].podGroup(), groupOf(p)))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(pids) == 0 {
		return false, nil
	}
	if err == nil {
		err = node.Congest(pids[0], c.lab.Topology.CongestionControl(), c.lab.Topology.Dual)
	}
	if errors.Is(err, fs.ErrNotExist) { // it has ended meanwhile
		return false, nil
	}
	return err == nil, err
}
