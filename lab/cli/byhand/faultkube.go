package byhand

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
)

func (c *commands) faultReboot() *cobra.Command {
	return &cobra.Command{
		Use:   "reboot LAB NODE",
		Short: "Have a node of a Kubernetes cluster lose its power and boot",
		Long: `Reboot ends all that runs in a node by SIGKILL, its pods too, and starts what a
machine starts as it boots: its containerd, kubelet and kube-proxy, at the first node
of a cluster the control plane as well. The disk stays, with images and what etcd has;
/run is empty, and interfaces and rules of pods are gone. The pods that were there are
started again, with another address, and count a restart.

It boots at once, so that the cluster may not have missed it. 'skerry fault kill LAB
NODE --for 20s' is a reboot that takes 20 seconds.`,
		Example: "  skerry fault reboot demo c1/worker",
		Args:    console.Exactly(2),
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			node, err := nodeOf(lab, args[0])
			if err != nil {
				return err
			}
			name, _ := node.Split()
			began := c.now()
			err = cluster.Reboot(cmd.Context(), lab, node)
			if errors.Is(err, cluster.ErrNone) {
				return noCluster(lab, name)
			}
			if err != nil {
				return err
			}
			cmd.Printf("%s has booted after %s\n", node, c.now().Sub(began).Round(time.Millisecond))
			cmd.PrintErrln("next: 'skerry ps' shows whether its pods are back")
			return nil
		}),
	}
}

func (c *commands) faultStopPlane() *cobra.Command {
	var last quantity.Duration
	cmd := &cobra.Command{
		Use:   "stop-plane LAB CLUSTER",
		Short: "Stop the control plane of a Kubernetes cluster",
		Long: `Stop-plane ends etcd, the API server, the controller manager and the scheduler of a
cluster by SIGKILL; undone, they start again with what etcd had. In between pods go on
and Services lead to them as they did, but nothing changes: no pod is made or moved, no
node or endpoint is found to have failed, and kubectl is refused. 'skerry fault freeze
LAB NODE:kube-apiserver' has calls hang in place of being refused.`,
		Example: "  skerry fault stop-plane demo c1 --for 30s",
		Args:    console.Exactly(2),
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			stopped, err := openCluster(lab, args[0])
			if err != nil {
				return err
			}
			return c.inject(cmd, lab, stopped.StopPlane(), last)
		}),
	}
	forFlag(cmd, &last)
	return cmd
}

func (c *commands) faultEvict() *cobra.Command {
	return &cobra.Command{
		Use:   "evict LAB POD",
		Short: "Evict a pod, or the pods of a workload, as a node that is drained does",
		Long: `Evict asks the API server to have pods go by the Eviction API: a
PodDisruptionBudget may refuse it, a pod has its time to end, and what made it, such as
a Deployment, makes another in its place. There is nothing to undo.

POD is CLUSTER/NAMESPACE/POD, or CLUSTER/NAMESPACE/WORKLOAD for all pods of one.`,
		Example: "  skerry fault evict demo c1/kube-system/coredns",
		Args:    console.Exactly(2),
		RunE: inLab(func(cmd *cobra.Command, lab *host.Lab, args []string) error {
			of, pods, err := podsOf(cmd.Context(), lab, args[0])
			if err != nil {
				return err
			}
			for _, p := range pods {
				if err := of.Evict(cmd.Context(), p); err != nil {
					return err
				}
				cmd.Printf("evicted %s\n", podName(of.Name, p))
			}
			return nil
		}),
	}
}
