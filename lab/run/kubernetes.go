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
)

const (
	// nodePort at which the service's node takes requests for a workload's pods.
	nodePort = 30080
	// removeTimeout bounds how long a workload's pods may take to end.
	removeTimeout = 30 * time.Second
)

// served is a workload that is up.
type served interface {
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
	clusters, err := cluster.Up(ctx, r.lab, cluster.Options{
		Programs: r.Kubernetes, Agent: r.Agent, Keep: []string{r.store.dir}, Choice: Choice(r.Experiment), Now: r.Now(), Logs: r.store.dir + "-logs",
	})
	if err != nil {
		return err
	}
	r.clusters = map[string]*cluster.Cluster{}
	for _, c := range clusters {
		r.clusters[c.Name] = c
	}
	return nil
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

// deploy has a Deployment serve the workload, with fresh pods, behind a Service of
// type NodePort.
func (r *runner) deploy(ctx context.Context, a *attempt, v system.Values) (served, error) {
	name, _ := v.Service.Node.Split()
	d := deployed{cluster: r.clusters[name], name: serviceName}
	err := d.cluster.Deploy(ctx, cluster.Workload{
		Name: serviceName, Node: v.Service.Node, Port: workloadPort, NodePort: nodePort,
		UDP:  a.Cell.Protocol == experiment.ProtocolUDP,
		Args: []string{"serve", a.Cell.Workload, "--protocol", a.Cell.Speaks(), "--listen", net.JoinHostPort("0.0.0.0", strconv.Itoa(workloadPort))},
	})
	if err != nil {
		return d, fmt.Errorf("workload at %s: %w", v.Service.Node, err)
	}
	return d, nil
}

// deployed is a workload in a cluster.
type deployed struct {
	cluster *cluster.Cluster
	name    string
}

// deaths are the ends of containers, which Kubernetes has started again.
func (d deployed) deaths(ctx context.Context) (deaths []Death, err error) {
	pods, err := d.cluster.Pods(ctx, d.name)
	for _, p := range pods {
		if p.Ended != "" {
			deaths = append(deaths, Death{Name: d.name, Node: p.Node, How: p.Ended})
		}
	}
	return deaths, err
}

// stop takes the workload away, also after an interrupt.
func (d deployed) stop() (uses []host.Use, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	pods, err := d.cluster.Pods(ctx, d.name)
	for _, p := range pods {
		uses = append(uses, host.Use{Name: d.name, Node: p.Node, Usage: p.Use})
	}
	return uses, errors.Join(err, d.cluster.Remove(ctx, d.name))
}
