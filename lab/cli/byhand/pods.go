package byhand

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
)

// openCluster finds a Kubernetes cluster of a lab by its name.
func openCluster(lab *host.Lab, name string) (*cluster.Cluster, error) {
	c, err := cluster.Open(lab, name)
	if errors.Is(err, cluster.ErrNone) {
		return nil, noCluster(lab, name)
	}
	return c, err
}

// noCluster says that a lab has no Kubernetes cluster of a name.
func noCluster(lab *host.Lab, name string) error {
	return console.Usage(fmt.Errorf("lab %s has no Kubernetes cluster %q", lab.Name, name), kubeconfigHint(lab, name, clusterNames(lab)))
}

func clusterNames(lab *host.Lab) (names []string) {
	for _, c := range lab.Topology.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// namesPod says whether a target is CLUSTER/NAMESPACE/POD, not CLUSTER/NODE.
func namesPod(target string) bool { return strings.Count(target, "/") == 2 }

// podsOf are the pods that CLUSTER/NAMESPACE/NAME means: one, or all of a workload.
func podsOf(ctx context.Context, lab *host.Lab, target string) (*cluster.Cluster, []cluster.PodState, error) {
	if !namesPod(target) {
		return nil, nil, console.Usage(fmt.Errorf("%q names no pod", target), "write CLUSTER/NAMESPACE/POD, or a workload in the place of POD; 'skerry ps' lists pods")
	}
	name, rest, _ := strings.Cut(target, "/")
	c, err := openCluster(lab, name)
	if err != nil {
		return nil, nil, err
	}
	state, err := c.State(ctx)
	if err != nil {
		return nil, nil, err
	}
	found := state.Match(rest)
	if len(found) == 0 {
		var names []string
		for _, p := range state.Pods {
			names = append(names, podName(name, p))
		}
		return nil, nil, console.Usage(fmt.Errorf("no pod or workload %q in lab %s", target, lab.Name), nearest.Hint(target, names))
	}
	return c, found, nil
}

// podName is how a command names a pod.
func podName(cluster string, p cluster.PodState) string {
	return cluster + "/" + p.Namespace + "/" + p.Name
}

// inPod runs a command in the foreground, in the network of the one pod that is named.
func inPod(ctx context.Context, lab *host.Lab, target string, command host.Command) error {
	c, pods, err := podsOf(ctx, lab, target)
	if err != nil {
		return err
	}
	if len(pods) > 1 {
		var names []string
		for _, p := range pods {
			names = append(names, podName(c.Name, p))
		}
		return console.Usage(fmt.Errorf("%q has %s", target, console.Count(len(pods), "pod")), "name one: "+strings.Join(names, ", "))
	}
	return c.Run(ctx, pods[0], command)
}

// podRow is a pod as ps tells it.
type podRow struct {
	Cluster string `json:"cluster"`
	cluster.PodState
}

func (p podRow) cells() string {
	state := p.Status
	if p.Ready {
		state = "Ready"
	}
	const mega = 1e6
	return fmt.Sprintf("  pod %s\tat %s\t%s, %s\t%.2f s CPU, %.1f MB\n", podName(p.Cluster, p.PodState), console.Dash(string(p.Node)),
		state, console.Count(p.Restarts, "restart"), p.CPU.Seconds(), float64(p.Held)/mega)
}

// lookInto adds what the API servers of a lab's clusters know, as far as they answer.
func (r *labRow) lookInto(ctx context.Context, lab *host.Lab) error {
	clusters, err := cluster.OpenAll(lab)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		state, err := c.State(ctx)
		if err != nil && !errors.Is(err, cluster.ErrNoAnswer) {
			return err
		}
		known := map[string]string{}
		for _, n := range state.Nodes {
			known[string(n.Node)] = "Ready"
			if !n.Ready {
				known[string(n.Node)] = "NotReady: " + n.Why
			}
		}
		for i, n := range r.Nodes {
			if strings.HasPrefix(n.Node, c.Name+"/") {
				r.Nodes[i].Kubernetes = known[n.Node]
				if err != nil {
					r.Nodes[i].Kubernetes = "unknown: " + cluster.ErrNoAnswer.Error()
				}
			}
		}
		for _, p := range state.Pods {
			r.Pods = append(r.Pods, podRow{c.Name, p})
		}
	}
	return nil
}
