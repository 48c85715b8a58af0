package cluster

import (
	"testing"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A dual Service has a slice of each family, with the same pods.
func TestEndpointsOfADualService(t *testing.T) {
	ready, not := true, false
	slice := func(name string, family discovery.AddressType, addresses ...string) *discovery.EndpointSlice {
		s := &discovery.EndpointSlice{
			ObjectMeta:  meta.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{discovery.LabelServiceName: "web"}},
			AddressType: family,
		}
		for i, address := range addresses {
			condition := &ready
			if i > 0 {
				condition = &not
			}
			s.Endpoints = append(s.Endpoints, discovery.Endpoint{Addresses: []string{address}, Conditions: discovery.EndpointConditions{Ready: condition}})
		}
		return s
	}
	c := &Cluster{client: fake.NewClientset(
		slice("web-4", discovery.AddressTypeIPv4, "10.96.0.2", "10.96.0.3"), slice("web-6", discovery.AddressTypeIPv6, "fd00::2", "fd00::3"),
	)}
	if n, err := c.Endpoints(t.Context(), "web"); n != 1 || err != nil {
		t.Errorf("%d pods take requests, %v, want the one that is ready", n, err)
	}
}
