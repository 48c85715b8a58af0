package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// showPods is the part of the area kubernetes that holds figures against other tools.
func showPods(ctx context.Context, b *bench) error {
	programs, err := gobuild.Builder{Catalogue: kube.Catalogue()}.Paths(ctx, nil)
	if err != nil {
		return err
	}
	s, clusters, err := b.clusters(ctx, programs)
	if err != nil {
		return err
	}
	return errors.Join(b.truthInPods(ctx, s, clusters), s.Close())
}

// truthInPods compares ping and curl with the lab's samples, all of them inside a
// pod: across a link between two nodes, and across the WAN to a NodePort.
func (b *bench) truthInPods(ctx context.Context, s *session, clusters []*cluster.Cluster) error {
	const rtt, port, nodePort = 10 * time.Millisecond, 8080, 30080
	serve := []string{"serve", "hello-world", "--listen", "0.0.0.0:" + servicePort}
	server := cluster.Workload{Name: "server", Nodes: []topology.Ref{service}, Port: port, NodePort: nodePort, Args: serve}
	if err := clusters[0].Deploy(ctx, server); err != nil {
		return err
	}
	pods, err := clusters[0].Pods(ctx, server.Name)
	if err != nil || len(pods) != 1 {
		return errors.Join(err, fmt.Errorf("the server has %d pods", len(pods)))
	}
	node, err := s.Topology.Node(service)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		where      string
		cluster    *cluster.Cluster
		from       host.Link
		host, port string
	}{
		{"pod to pod across a node's link", clusters[0], host.Link{From: "c1/head", To: service}, pods[0].IP, servicePort},
		{"pod to NodePort across the WAN", clusters[1], host.Link{From: "c2/worker", To: service}, node.Data.Addr().String(), strconv.Itoa(nodePort)},
	} {
		asker := cluster.Workload{Name: "asker", Nodes: []topology.Ref{c.from.From}, Port: port, NodePort: nodePort + 1, Args: serve}
		if err := c.cluster.Deploy(ctx, asker); err != nil {
			return err
		}
		from, err := c.cluster.Pods(ctx, asker.Name)
		if err != nil || len(from) != 1 {
			return errors.Join(err, fmt.Errorf("the asker has %d pods", len(from)))
		}
		s.asking = asking{node: c.from.From, within: []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", from[0].Pid)}, host: c.host, port: c.port}
		links := func(ctx context.Context, does impair.Impairment) error {
			there, back := c.from, host.Link{From: c.from.To, To: c.from.From}
			there.Does, there.Unit, back.Does, back.Unit = does, impair.UnitPacket, does, impair.UnitPacket
			return s.SetLinks(ctx, []host.Link{there, back}, 1)
		}
		if err := b.toolsAgree(ctx, s, gate{rtt, gateRounds, fmt.Sprintf("%s, RTT %s", c.where, rtt), kubernetesCommand, links}); err != nil {
			return err
		}
	}
	if err := s.SetLinks(ctx, nil, 1); err != nil {
		return err
	}
	return clusters[0].Remove(ctx, server.Name)
}
