package cluster

import (
	"context"
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceIP is the address by which pods call a workload, whatever its pods' are.
func (c *Cluster) ServiceIP(ctx context.Context, name string) (string, error) {
	service, err := c.client.CoreV1().Services(namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("address of Service %s: %w", name, err)
	}
	return service.Spec.ClusterIP, nil
}
