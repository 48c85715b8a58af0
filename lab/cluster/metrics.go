package cluster

import "context"

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
