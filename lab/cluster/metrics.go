package cluster

import (
	"context"
	"fmt"
)

// metricsLabel is on metrics-server's pods alone.
const metricsLabel = "skerry.dev/metrics"

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
// it: until it has asked their nodes twice, most of half a minute. It fails as Up does.
func AwaitMetrics(ctx context.Context, clusters []*Cluster) error {
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, c := range clusters {
		if !c.options.Metrics {
			continue
		}
		err := c.awaitPods(limited, metricsLabel)
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
