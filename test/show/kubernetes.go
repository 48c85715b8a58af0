package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/measure"
	"skerry.dev/skerry/lab/topology"
)

const kubernetesCommand = "make show AREA=kubernetes"

// showKubernetes measures clusters of a lab whose programs are built: how long two
// of two nodes take to come and go, what they use when nothing is asked of them, and
// how soon a node that is cut off is known to be.
func showKubernetes(ctx context.Context, b *bench) error {
	programs, err := gobuild.Builder{Catalogue: kube.Catalogue()}.Paths(ctx, nil)
	if err != nil {
		return err
	}
	if err := b.cycles(ctx, programs); err != nil {
		return err
	}
	s, clusters, err := b.clusters(ctx, programs)
	if err != nil {
		return err
	}
	err = b.idle(ctx, s)
	if err == nil {
		err = b.truthInPods(ctx, s, clusters)
	}
	if err == nil {
		err = b.cutOff(ctx, s, clusters[0])
	}
	if err == nil {
		err = b.boots(ctx, s, clusters[0].Name, cutWorkload)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if err := errors.Join(b.choices(ctx, programs), b.refusals(ctx)); err != nil {
		return err
	}
	if err := b.churn(ctx); err != nil {
		return err
	}
	return errors.Join(showSuite(ctx, b), showGuestCluster(ctx, b))
}

// clusters takes a lab up whose two clusters are of Kubernetes.
func (b *bench) clusters(ctx context.Context, programs map[string]string) (*session, []*cluster.Cluster, error) {
	s, err := b.open(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	all, err := cluster.Up(ctx, s.Lab, cluster.Options{Programs: programs, Agent: b.agent, Now: time.Now()})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, all, nil
}

// cycles takes clusters up and down.
func (b *bench) cycles(ctx context.Context, programs map[string]string) error {
	const rounds = 10
	took, err := upAndDown(ctx, rounds, func() (*session, error) {
		s, _, err := b.clusters(ctx, programs)
		return s, err
	})
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name   string
		sorted measure.Sorted
		bound  time.Duration
	}{{"from nothing to all pods ready", took.up, 12 * time.Second}, {"down", took.down, 4 * time.Second}} {
		b.print(line{
			what:  fmt.Sprintf("two Kubernetes clusters of two nodes %s, %s", c.name, took),
			seen:  fmt.Sprintf("median %.2f s, from %.2f to %.2f s", c.sorted.Median()/1e9, c.sorted.Min()/1e9, c.sorted.Max()/1e9),
			bound: "median <= " + c.bound.String(), pass: c.sorted.Median() <= float64(c.bound), command: kubernetesCommand,
		})
	}
	return nil
}

// idle measures what clusters use of which nothing is asked.
func (b *bench) idle(ctx context.Context, s *session) error {
	const cpuMost, memoryMost = 0.15, 1.2e9
	const settle = 20 * time.Second
	if err := pause(ctx, settle); err != nil {
		return err
	}
	u, err := quietly(ctx, func() (idling, error) { return s.idling(ctx) })
	if err != nil {
		return err
	}
	b.print(line{
		what:  "two Kubernetes clusters of two nodes, idle for " + idleFor.String(),
		seen:  fmt.Sprintf("%.1f %% of a core, %.0f MB held", 100*u.share, float64(u.resident)/1e6),
		bound: fmt.Sprintf("<= %.0f %% of a core, <= %.1f GB", 100*cpuMost, memoryMost/1e9),
		pass:  u.share <= cpuMost && float64(u.resident) <= memoryMost, command: kubernetesCommand,
	})
	return nil
}

// idleFor is how long clusters are watched that idle.
const idleFor = 30 * time.Second

// idling is what they use: the share of a core, and bytes of memory.
type idling struct {
	share    float64
	resident int64
}

func (s *session) idling(ctx context.Context) (idling, error) {
	before, _, err := s.Usage()
	if err != nil {
		return idling{}, err
	}
	if err := pause(ctx, idleFor); err != nil {
		return idling{}, err
	}
	after, resident, err := s.Usage()
	return idling{(after.CPU - before.CPU).Seconds() / idleFor.Seconds(), resident}, err
}

// cutWorkload is what the node serves that cutOff cuts off.
const cutWorkload = "cut"

// cutOff cuts the link of a node that serves, and heals it.
func (b *bench) cutOff(ctx context.Context, s *session, c *cluster.Cluster) error {
	const node, notReadyMost, readyMost = service, 8 * time.Second, 4 * time.Second
	w := cluster.Workload{Name: cutWorkload, Nodes: []topology.Ref{node}, Port: 8080, NodePort: 30080, Args: []string{"serve", "hello-world", "--listen", "0.0.0.0:8080"}}
	if err := c.Deploy(ctx, w); err != nil {
		return err
	}
	fault, err := s.Inject(ctx, host.CutLink(host.Link{From: "c1/head", To: node}, host.Link{From: node, To: "c1/head"}))
	if err != nil {
		return err
	}
	gone, err := until(ctx, func() (bool, error) {
		n, err := c.Endpoints(ctx, w.Name)
		return err == nil && n == 0 && c.Ready(ctx, node) != nil, err
	})
	if err != nil {
		return err
	}
	if err := s.Undo(ctx, fault.ID); err != nil {
		return err
	}
	back, err := until(ctx, func() (bool, error) { return c.Ready(ctx, node) == nil, nil })
	if err != nil {
		return err
	}
	served, err := until(ctx, func() (bool, error) {
		n, err := c.Endpoints(ctx, w.Name)
		return n == 1, err
	})
	if err != nil {
		return err
	}
	b.print(line{
		what:  "a node whose data link is cut: not ready, its endpoints withdrawn",
		seen:  fmt.Sprintf("after %.1f s", gone.Seconds()),
		bound: "<= " + notReadyMost.String(), pass: gone <= notReadyMost, command: kubernetesCommand,
	})
	b.print(line{
		what:  "the link heals: the node ready",
		seen:  fmt.Sprintf("after %.1f s, its endpoints after %.1f s", back.Seconds(), (back + served).Seconds()),
		bound: "<= " + readyMost.String(), pass: back <= readyMost, command: kubernetesCommand,
	})
	return nil
}

// until looks until something has come about, and tells how long that took.
func until(ctx context.Context, look func() (bool, error)) (time.Duration, error) {
	const longest, every = time.Minute, 20 * time.Millisecond
	began := time.Now()
	for time.Since(began) < longest {
		done, err := look()
		if err != nil || done {
			return time.Since(began), err
		}
		if err := pause(ctx, every); err != nil {
			return 0, err
		}
	}
	return longest, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
