package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"skerry.dev/skerry/lab/cluster/spec"
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
// that it is ready, every pod of the cluster's own and of a workload is, where one is named,
// those at nodes that have booted with containers that began afterwards, and the cluster
// takes up and away what it is given.
func (c *Cluster) AwaitWhole(ctx context.Context, s Setback, workload string) error {
	for _, m := range c.members {
		err := c.await(ctx, "node "+m.String(), func(ctx context.Context) error { return c.reported(ctx, m, s.Since) })
		if err != nil {
			return err
		}
	}
	err := c.await(ctx, "a pod", func(ctx context.Context) error {
		if err := c.podsBack(ctx, meta.NamespaceSystem, "", s); err != nil {
			return err
		}
		if workload == "" {
			return nil
		}
		return c.podsBack(ctx, namespace, selectorOf(workload), s)
	})
	if err != nil {
		return err
	}
	return c.tryOut(ctx)
}

// tryOut has a workload served, called from every node, and taken away: the proof that
// controllers, kubelets and proxies follow the API server again. Each of them waits for
// itself after it was gone, by up to half a minute, a kubelet more than once for one pod,
// and none says that it does: it takes as long as its context lasts.
func (c *Cluster) tryOut(ctx context.Context) error {
	const port = 8080
	w := Workload{Name: "skerry-whole", Port: port, Args: []string{"serve", "hello-world", "--listen", net.JoinHostPort("0.0.0.0", strconv.Itoa(port))}}
	for _, m := range c.members {
		w.Nodes = append(w.Nodes, m.Ref())
	}
	if err := c.Remove(ctx, w.Name); err != nil { // of a wait that was given up
		return err
	}
	if err := c.deploy(ctx, w); err != nil {
		return err
	}
	if c.options.Proxy != spec.ProxyNone {
		if err := c.awaitProxies(ctx, w); err != nil {
			return err
		}
	}
	return c.Remove(ctx, w.Name)
}

// awaitProxies waits until each node's kube-proxy leads to a workload.
func (c *Cluster) awaitProxies(ctx context.Context, w Workload) error {
	ip, err := c.ServiceIP(ctx, w.Name)
	if err != nil {
		return err
	}
	for _, m := range c.members {
		err := c.await(ctx, "kube-proxy of "+m.String(), func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			conn, err := c.lab.Dial(ctx, m.Ref(), net.JoinHostPort(ip, strconv.Itoa(w.Port)))
			if err == nil {
				err = conn.Close()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reported says whether a node is ready, and its kubelet has renewed its lease after a
// time: nil, or what it lacks. A kubelet tells what has not changed every five minutes
// alone, but renews its lease every two seconds.
func (c *Cluster) reported(ctx context.Context, m member, since time.Time) error {
	if err := c.Ready(ctx, m.Ref()); err != nil {
		return err
	}
	lease, err := c.client.CoordinationV1().Leases(core.NamespaceNodeLease).Get(ctx, m.Host(), meta.GetOptions{})
	if err != nil {
		return err
	}
	if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Time.Before(since) {
		return fmt.Errorf("%w: its kubelet has not reported", errNotReady)
	}
	return nil
}

// podsBack says whether pods are ready after a setback: nil, or which is not.
func (c *Cluster) podsBack(ctx context.Context, in, selector string, s Setback) error {
	pods, err := c.podsReady(ctx, in, selector)
	if err != nil {
		return err
	}
	for _, pod := range pods {
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
