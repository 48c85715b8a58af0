package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"skerry.dev/skerry/lab/topology"
)

// Setback is what a cluster has to recover from.
type Setback struct {
	// Since when it may: the last fault was undone.
	Since time.Time
	// Booted are the nodes that have lost all that ran there, and when they did.
	Booted map[topology.Ref]time.Time
}

// AwaitWhole returns when the cluster has recovered: every node has reported since then
// that it is ready, and every pod of the cluster's own and of a workload is, those at
// nodes that have booted with containers that began afterwards.
func (c *Cluster) AwaitWhole(ctx context.Context, s Setback, workload string) error {
	for _, m := range c.members {
		err := c.await(ctx, "node "+m.String(), func(ctx context.Context) error { return c.reported(ctx, m, s.Since) })
		if err != nil {
			return err
		}
	}
	return c.await(ctx, "a pod", func(ctx context.Context) error {
		if err := c.podsBack(ctx, meta.NamespaceSystem, "", s); err != nil {
			return err
		}
		return c.podsBack(ctx, namespace, selectorOf(workload), s)
	})
}

// reported says whether a node is ready by a report of its kubelet that is not older
// than a time: nil, or what it lacks.
func (c *Cluster) reported(ctx context.Context, m member, since time.Time) error {
	now, err := c.client.CoreV1().Nodes().Get(ctx, m.Host(), meta.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range now.Status.Conditions {
		switch {
		case condition.Type != core.NodeReady:
		case condition.Status != core.ConditionTrue:
			return fmt.Errorf("%w: %s", errNotReady, condition.Message)
		case !condition.LastHeartbeatTime.Time.Before(since):
			return nil
		}
	}
	return fmt.Errorf("%w: its kubelet has not reported", errNotReady)
}

// podsBack says whether pods are ready after a setback: nil, or which is not.
func (c *Cluster) podsBack(ctx context.Context, in, selector string, s Setback) error {
	if err := c.podsReady(ctx, in, selector); err != nil {
		return err
	}
	pods, err := c.client.CoreV1().Pods(in).List(ctx, meta.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		i := slices.IndexFunc(c.members, func(m member) bool { return m.Host() == pod.Spec.NodeName })
		if i >= 0 && !isBack(pod, s.Booted[c.members[i].Ref()]) {
			return fmt.Errorf("pod %s: %w", pod.Name, errNotReady)
		}
	}
	return nil
}

// isBack says that a pod stays, and that its containers began after a time: kubelets
// tell it in whole seconds.
func isBack(pod core.Pod, lost time.Time) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s core.ContainerStatus) bool {
		return s.State.Running == nil || s.State.Running.StartedAt.Time.Before(lost.Truncate(time.Second))
	})
}
