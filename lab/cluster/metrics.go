package cluster

import (
	"context"
	"fmt"
)

// metricsLabel is on metrics-server's pods alone, metricsGroup is what it answers for.
const (
	metricsLabel = "skerry.dev/metrics"
	metricsGroup = "metrics.k8s.io"
)

// startMetrics has metrics-server run in the cluster, where that is asked for.
func (c *Cluster) startMetrics(ctx context.Context) error {
	if !c.options.Metrics {
		return nil
	}
	manifest, err := c.settings().render("manifests/metrics-server.yaml")
	if err != nil {
		return err
	}
	return c.apply(ctx, manifest)
}

// AwaitMetrics waits until metrics-server is ready in each of the clusters that are to have
// it, until it has asked their nodes twice, most of half a minute; and until the API server
// tells of it. It fails as Up does.
func AwaitMetrics(ctx context.Context, clusters []*Cluster) error {
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, c := range clusters {
		if !c.options.Metrics {
			continue
		}
		err := c.awaitPods(limited, metricsLabel)
		if err == nil {
			err = c.await(limited, "the API "+metricsGroup, c.tellsOfMetrics)
		}
		if err == nil {
			continue
		}
		if err = fmt.Errorf("cluster %s: %w", c.Name, err); ctx.Err() == nil {
			err = keepLogs(c.lab, c.options.Logs, err)
		}
		return err
	}
	return nil
}

// tellsOfMetrics asks which APIs there are, as kubectl does before it uses one. That of
// metrics is there to be called a moment before it is among them.
func (c *Cluster) tellsOfMetrics(context.Context) error {
	groups, err := c.client.Discovery().ServerGroups()
	if err != nil {
		return err
	}
	for _, g := range groups.Groups {
		if g.Name == metricsGroup {
			return nil
		}
	}
	return errNotReady
}
