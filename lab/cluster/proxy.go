package cluster

import (
	"strconv"

	"skerry.dev/skerry/lab/cluster/spec"
)

// startProxy starts kube-proxy at a node, where one is chosen.
func (c *Cluster) startProxy(m member) error {
	if c.options.Proxy == spec.ProxyNone {
		return nil
	}
	return c.run(m, "kube-proxy", m.proxy(c.dirOf(m)))
}

// apiEnv leads CoreDNS to the API server where no proxy does by its Service; else it
// is empty.
func (c *Cluster) apiEnv() map[string]string {
	if c.options.Proxy != spec.ProxyNone {
		return nil
	}
	return map[string]string{"KUBERNETES_SERVICE_HOST": c.plane.address, "KUBERNETES_SERVICE_PORT": strconv.Itoa(apiPort)}
}
