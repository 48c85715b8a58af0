package cluster

import (
	"context"
	"errors"
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errNoAddress = errors.New("it has none")

// ServiceIP is the address by which pods call a workload, whatever its pods' are.
func (c *Cluster) ServiceIP(ctx context.Context, name string) (string, error) {
	all, err := c.ServiceIPs(ctx, name)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// ServiceIPs are those of each family that the lab has, IPv4 first.
func (c *Cluster) ServiceIPs(ctx context.Context, name string) ([]string, error) {
	service, err := c.client.CoreV1().Services(namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("address of Service %s: %w", name, err)
	}
	if len(service.Spec.ClusterIPs) == 0 {
		return nil, fmt.Errorf("address of Service %s: %w", name, errNoAddress)
	}
	return service.Spec.ClusterIPs, nil
}
