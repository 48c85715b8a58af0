package cluster

import (
	"context"
	"errors"
	"fmt"

	"skerry.dev/skerry/lab/cluster/node"
	"skerry.dev/skerry/lab/host"
)

// ErrNoPod says that a pod has no process whose namespaces could be entered.
var ErrNoPod = errors.New("nothing runs in the pod")

// Run runs a program of the machine in a pod's network, by its names of DNS and with
// its host name, and waits until it ends: an image need not have a shell. Programs of
// the image itself are started by kubectl exec.
func (c *Cluster) Run(ctx context.Context, pod PodState, command host.Command) error {
	if pod.Pid == 0 {
		return fmt.Errorf("pod %s/%s/%s: %w", c.Name, pod.Namespace, pod.Name, ErrNoPod)
	}
	command.Node = pod.Node
	command.Enter = func() error { return node.EnterPod(pod.Pid) }
	return c.lab.Run(ctx, command)
}
