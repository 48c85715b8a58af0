package source

import (
	"context"
	"errors"
	"fmt"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"skerry.dev/skerry/proxy/snapshot"
)

// ErrNoSelector is of a Service whose pods the API server does not know.
var ErrNoSelector = errors.New("the Service selects no pods")

// Usage asks metrics.k8s.io what a Service's pods use, by node. A limit is what all
// containers of a pod have, or what the node has to give where one of them has none. Of
// CPU it is what all pods use of all their limits, of RAM what the fullest one uses of its.
func (w *Watcher) Usage(ctx context.Context, key snapshot.Key) (map[string]snapshot.Usage, error) {
	o, ok, err := w.services.GetStore().GetByKey(key.String())
	if err != nil || !ok {
		return nil, err
	}
	selector := o.(*core.Service).Spec.Selector
	if len(selector) == 0 {
		return nil, ErrNoSelector
	}
	which := meta.ListOptions{LabelSelector: labels.Set(selector).String()}
	pods, err := w.client.CoreV1().Pods(key.Namespace).List(ctx, which)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	used, err := w.metrics.PodMetricses(key.Namespace).List(ctx, which)
	if err != nil {
		return nil, fmt.Errorf("ask metrics.k8s.io: %w", err)
	}
	return usageOf(pods.Items, used.Items, w.gives), nil
}

// gives is what a node has for pods.
func (w *Watcher) gives(node string) core.ResourceList {
	o, ok, err := w.nodes.GetStore().GetByKey(node)
	if err != nil || !ok {
		return nil
	}
	return o.(*core.Node).Status.Allocatable
}

// podsUsage is what is summed up of a node's pods.
type podsUsage struct {
	cores, limit float64
	snapshot.Usage
}

// usageOf pods whose use is told, by node.
func usageOf(pods []core.Pod, told []metricsv1beta1.PodMetrics, gives func(node string) core.ResourceList) map[string]snapshot.Usage {
	byName := map[string]*metricsv1beta1.PodMetrics{}
	for i := range told {
		byName[told[i].Name] = &told[i]
	}
	sums := map[string]*podsUsage{}
	for i := range pods {
		pod := &pods[i]
		used, node := byName[pod.Name], pod.Spec.NodeName
		if used == nil || node == "" {
			continue
		}
		has := gives(node)
		if sums[node] == nil {
			sums[node] = &podsUsage{}
		}
		s := sums[node]
		s.cores += usedOf(used, core.ResourceCPU)
		s.limit = min(s.limit+limitOf(pod, core.ResourceCPU, has), amount(has, core.ResourceCPU))
		s.CPU, s.Cores = share(s.cores, s.limit), s.limit
		s.RAM = max(s.RAM, share(usedOf(used, core.ResourceMemory), limitOf(pod, core.ResourceMemory, has)))
		if used.Timestamp.After(s.Measured) {
			s.Measured = used.Timestamp.Time
		}
	}
	all := make(map[string]snapshot.Usage, len(sums))
	for node, s := range sums {
		all[node] = s.Usage
	}
	return all
}

// usedOf a resource by all containers of a pod.
func usedOf(m *metricsv1beta1.PodMetrics, name core.ResourceName) (sum float64) {
	for _, c := range m.Containers {
		sum += amount(c.Usage, name)
	}
	return sum
}

// limitOf a resource is what all containers of a pod may use of what its node has.
func limitOf(pod *core.Pod, name core.ResourceName, has core.ResourceList) (sum float64) {
	for i := range pod.Spec.Containers {
		limit := amount(pod.Spec.Containers[i].Resources.Limits, name)
		if limit == 0 {
			return amount(has, name)
		}
		sum += limit
	}
	return min(sum, amount(has, name))
}

// amount of a resource; 0 where it is not told.
func amount(list core.ResourceList, name core.ResourceName) float64 {
	q := list[name]
	return q.AsApproximateFloat64()
}

// share is what part of a limit is used; 0 where there is none.
func share(used, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return used / limit
}
