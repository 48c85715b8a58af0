package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

const (
	// nodePort at which each node that serves takes requests for its pod.
	nodePort = 30080
	// removeTimeout bounds how long a workload's pods may take to end.
	removeTimeout = 30 * time.Second
)

// served is a workload that is up.
type served interface {
	// pods are where it listens in pods, by their nodes.
	pods() map[topology.Ref]string
	// deaths are of what has ended by itself.
	deaths(ctx context.Context) ([]Death, error)
	// stop ends it, and tells what it has used.
	stop() ([]host.Use, error)
}

// onKubernetes says what the nodes of the run are.
func (r *runner) onKubernetes() bool {
	return r.Experiment.Substrate == experiment.SubstrateKubernetes
}

// servicePort is where the workload takes requests, at the service's node.
func (r *runner) servicePort() int {
	if r.onKubernetes() {
		return nodePort
	}
	return workloadPort
}

// startClusters makes each cluster of the lab one of Kubernetes.
func (r *runner) startClusters(ctx context.Context) error {
	if !r.onKubernetes() {
		return nil
	}
	programs, err := r.podPrograms()
	if err != nil {
		return err
	}
	clusters, err := cluster.Up(ctx, r.lab, cluster.Options{
		Programs: r.Kubernetes, Agent: r.Agent, PodPrograms: programs, Keep: r.kept(), Spec: r.Experiment.Kubernetes.Spec(),
		Now: r.Now(), Logs: r.store.dir + "-logs",
	})
	if err == nil {
		err = cluster.AwaitMetrics(ctx, clusters)
	}
	if err != nil {
		return err
	}
	r.clusters = map[string]*cluster.Cluster{}
	for _, c := range clusters {
		r.clusters[c.Name] = c
	}
	return nil
}

// kept are the folders that the clusters' nodes see as the machine does: the run's, and
// those of tools, which send their requests from a node.
func (r *runner) kept() []string {
	all := []string{r.store.dir}
	for _, tool := range r.Tools {
		all = append(all, tool.Dir)
	}
	return all
}

// clustersEnded tells of a program of a cluster that did not stay.
func (r *runner) clustersEnded() error {
	for name, c := range r.clusters {
		if err := c.Ended(); err != nil {
			return fmt.Errorf("cluster %s: %w", name, err)
		}
	}
	return nil
}

// deploy has a Deployment in each cluster that serves the workload, with fresh pods,
// behind a Service of type NodePort.
func (r *runner) deploy(ctx context.Context, a *attempt, v system.Values) (served, error) {
	d := &deployed{values: v, at: map[topology.Ref]string{}}
	everywhere := "0.0.0.0"
	if r.Experiment.Topology.Dual {
		everywhere = "::" // and by IPv4
	}
	wanted, err := r.Stacks[a.Cell.System].WorkloadService(v)
	if err != nil {
		return d, err
	}
	names, nodes := serving(v)
	for i, name := range names {
		c := r.clusters[name]
		d.clusters = append(d.clusters, c)
		err := c.Deploy(ctx, cluster.Workload{
			Name: serviceName, Nodes: nodes[name], Autoscale: autoscaled(r.Experiment.Autoscaled(a.Cell)), Port: workloadPort, NodePort: nodePort,
			UDP:      a.Cell.Protocol == experiment.ProtocolUDP,
			Anywhere: wanted.Anywhere, Labels: wanted.Labels, Annotations: wanted.Annotations,
			Args: r.serves(a, net.JoinHostPort(everywhere, strconv.Itoa(workloadPort)), cluster.HostOfPod),
		})
		if err != nil {
			return d, fmt.Errorf("workload at %s: %w", name, err)
		}
		if i > 0 { // no other cluster reaches its pods
			continue
		}
		pods, err := c.Pods(ctx, serviceName)
		if err != nil {
			return d, err
		}
		for _, p := range pods {
			d.at[p.Node] = net.JoinHostPort(p.IP, strconv.Itoa(workloadPort))
		}
	}
	return d, nil
}

// autoscaled is how a cluster has the workload scaled; nil where nobody does.
func autoscaled(a *experiment.Autoscale) *cluster.Autoscale {
	if a == nil {
		return nil
	}
	return &cluster.Autoscale{Min: a.Least(), Max: a.Max, Percent: a.CPU, MilliCPU: a.MilliCPU()}
}

// serving are the nodes that serve the workload, by their clusters, of which the
// service's is the first.
func serving(v system.Values) (clusters []string, nodes map[string][]topology.Ref) {
	nodes = map[string][]topology.Ref{}
	for _, place := range append([]system.Place{v.Service}, v.Replicas...) {
		name, _ := place.Node.Split()
		if nodes[name] == nil {
			clusters = append(clusters, name)
		}
		nodes[name] = append(nodes[name], place.Node)
	}
	return clusters, nodes
}

// deployed is a workload in the clusters that serve it.
type deployed struct {
	values   system.Values
	clusters []*cluster.Cluster
	// at is where the pods of the service's cluster listen, by their nodes.
	at map[topology.Ref]string
}

func (d *deployed) pods() map[topology.Ref]string { return d.at }

// deaths are the ends of containers, which Kubernetes has started again.
func (d *deployed) deaths(ctx context.Context) (deaths []Death, err error) {
	err = d.each(ctx, func(p cluster.Pod) {
		if p.Ended != "" {
			deaths = append(deaths, Death{Name: nameAt(d.values, p.Node), Node: p.Node, How: p.Ended})
		}
	})
	return deaths, err
}

// each looks at every pod.
func (d *deployed) each(ctx context.Context, look func(cluster.Pod)) error {
	for _, c := range d.clusters {
		pods, err := c.Pods(ctx, serviceName)
		if err != nil {
			return err
		}
		for _, p := range pods {
			look(p)
		}
	}
	return nil
}

// stop takes the workload away, also after an interrupt.
func (d *deployed) stop() (uses []host.Use, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	err = d.each(ctx, func(p cluster.Pod) {
		uses = append(uses, host.Use{Name: nameAt(d.values, p.Node), Node: p.Node, Usage: p.Use})
	})
	for _, c := range d.clusters {
		err = errors.Join(err, c.Remove(ctx, serviceName))
	}
	return uses, err
}
