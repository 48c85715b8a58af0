package experiment

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/topology"
)

// Kubernetes is what is chosen of clusters, where that is the substrate.
type Kubernetes struct {
	// CNI gives pods their addresses and ways: ptp (default) and bridge by routes
	// between the nodes, flannel by tunnels of VXLAN.
	CNI string `yaml:"cni,omitempty" json:"cni,omitempty" jsonschema:"enum=ptp,enum=bridge,enum=flannel"`
	// Proxy is how kube-proxy leads to the pods of a Service: nftables (default),
	// iptables or ipvs; none starts no kube-proxy.
	Proxy string `yaml:"proxy,omitempty" json:"proxy,omitempty" jsonschema:"enum=nftables,enum=iptables,enum=ipvs,enum=none"`
	// Family of addresses: ipv4 (default), or dual, by which nodes, pods and Services
	// have those of IPv6 besides.
	Family string `yaml:"family,omitempty" json:"family,omitempty" jsonschema:"enum=ipv4,enum=dual"`
	// Pods is the range of pods' addresses of IPv4 of every cluster alike; by default
	// each has its own, 10.(100+i).0.0/16.
	Pods CIDR `yaml:"pods,omitempty" json:"pods,omitzero"`
	// Services is that of Services' addresses, likewise; by default
	// 10.(200+i).0.0/16.
	Services CIDR `yaml:"services,omitempty" json:"services,omitzero"`
	// Nodes that have less than the machine.
	Nodes []NodeCapacity `yaml:"nodes,omitempty" json:"nodes,omitempty"`
	// Metrics has metrics-server run in each cluster.
	Metrics bool `yaml:"metrics,omitempty" json:"metrics,omitempty"`
	// Registry has the lab keep images that this machine pushes and nodes pull.
	Registry bool `yaml:"registry,omitempty" json:"registry,omitempty"`
	// Autoscale has the number of the workload's pods follow their use of CPU time; by
	// default there is one at each node that serves. metrics-server runs for it.
	Autoscale *Autoscale `yaml:"autoscale,omitempty" json:"autoscale,omitempty"`
}

// Names that kubernetes.family may have.
const (
	FamilyIPv4 = "ipv4" // the default
	FamilyDual = "dual"
)

// Families lists the names that kubernetes.family may have.
func Families() []string { return []string{FamilyIPv4, FamilyDual} }

// Spec is what the clusters are to be: all by default where k is nil.
func (k *Kubernetes) Spec() spec.Spec {
	if k == nil {
		return spec.Spec{}
	}
	s := spec.Spec{
		CNI: k.CNI, Proxy: k.Proxy, Pods: k.Pods.Prefix, Services: k.Services.Prefix,
		Metrics: k.Metrics || k.Autoscale != nil, Registry: k.Registry, Capacity: map[topology.Ref]spec.Capacity{},
	}
	for _, n := range k.Nodes {
		s.Capacity[n.Node] = spec.Capacity{MilliCPU: n.MilliCPU(), Memory: int64(n.Memory)}
	}
	return s
}

// CIDR is a range of IPv4 addresses that reads "10.96.0.0/16" (RFC 4632).
type CIDR struct{ netip.Prefix }

// cidrPattern is what a CIDR looks like, for the JSON Schema.
const cidrPattern = `^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$`

// UnmarshalText reads a range whose address has no bits beyond its length.
func (c *CIDR) UnmarshalText(text []byte) error {
	const example = "write for example 10.96.0.0/16"
	p, err := netip.ParsePrefix(string(text))
	switch {
	case err != nil:
		return &quantity.Error{Kind: quantity.ErrUnit, Message: fmt.Sprintf("%q is no range of addresses", text), Hint: example}
	case !p.Addr().Is4():
		return &quantity.Error{Kind: quantity.ErrRange, Message: fmt.Sprintf("%q is not of IPv4", text), Hint: example}
	case p != p.Masked():
		return &quantity.Error{
			Kind: quantity.ErrRange, Message: fmt.Sprintf("%q is an address in a range", text), Hint: fmt.Sprintf("write %s for all of it", p.Masked()),
		}
	}
	c.Prefix = p
	return nil
}

const (
	// nodeBits is the length of the range that each node has of its cluster's pods.
	// The first one is left out, so that those of node j end in .j.0.
	nodeBits = 24
	// A range of Services that the API server takes has these lengths at least and at
	// most.
	servicesLeast, servicesMost = 12, 24
)

// kubernetes checks what is chosen of clusters.
func (c *checker) kubernetes() {
	k := c.e.Kubernetes
	if k == nil {
		return
	}
	switch c.e.Substrate {
	case SubstrateKubernetes:
	case SubstrateHosts, "":
		c.add("kubernetes", "add substrate: kubernetes, or remove it", "on hosts there is nothing to choose of Kubernetes")
		return
	default: // which is wrong itself
		return
	}
	if k.CNI != "" && !slices.Contains(spec.CNIs(), k.CNI) {
		c.add("kubernetes.cni", nearest.Hint(k.CNI, spec.CNIs()), "there is no CNI %.80q", k.CNI)
	}
	if k.Proxy != "" && !slices.Contains(spec.Proxies(), k.Proxy) {
		c.add("kubernetes.proxy", nearest.Hint(k.Proxy, spec.Proxies()), "there is no proxy %.80q", k.Proxy)
	}
	if k.Family != "" && !slices.Contains(Families(), k.Family) {
		c.add("kubernetes.family", nearest.Hint(k.Family, Families()), "there is no family of addresses %.80q", k.Family)
	}
	c.nodeCapacities(k.Nodes)
	c.autoscale(k.Autoscale)
	clusters := len(c.e.Topology.Clusters)
	if k.Pods.IsValid() && c.podsFit(k.Pods) {
		c.apart("kubernetes.pods", k.Pods, owners(k.Services, "Services", topology.ServiceRange, clusters))
	}
	if k.Services.IsValid() && c.servicesFit(k.Services) {
		c.apart("kubernetes.services", k.Services, owners(k.Pods, "pods", topology.PodRange, clusters))
	}
}

// podsFit wants a range for each node of the largest cluster.
func (c *checker) podsFit(pods CIDR) bool {
	most := slices.MaxFunc(append([]topology.Cluster{{}}, c.e.Topology.Clusters...), func(a, b topology.Cluster) int {
		return cmp.Compare(len(a.Nodes), len(b.Nodes))
	})
	room := 1<<max(0, nodeBits-pods.Bits()) - 1
	if len(most.Nodes) <= room {
		return true
	}
	c.add("kubernetes.pods", fmt.Sprintf("write a length of /%d or less", nodeBits-bits.Len(uint(len(most.Nodes)))),
		"%s is too small for the pods of %d nodes, a /%d each", pods, len(most.Nodes), nodeBits)
	return false
}

// servicesFit wants a range that an API server takes.
func (c *checker) servicesFit(services CIDR) bool {
	length, what := services.Bits(), "large"
	switch {
	case length > servicesMost:
		what = "small"
	case length >= servicesLeast:
		return true
	}
	c.add("kubernetes.services", fmt.Sprintf("write a length of /%d to /%d", servicesLeast, servicesMost), "%s is too %s for Services", services, what)
	return false
}

// owned is a range that something else has.
type owned struct {
	netip.Prefix
	by string
}

// owners are the ranges that others have: the one that is given for all clusters, or
// that of each.
func owners(given CIDR, by string, of func(int) netip.Prefix, clusters int) []owned {
	if given.IsValid() {
		return []owned{{given.Prefix, by}}
	}
	var all []owned
	for i := range clusters {
		all = append(all, owned{of(i), fmt.Sprintf("%s of cluster %d", by, i+1)})
	}
	return all
}

// reserved are the ranges that no host has an address in (RFC 6890).
var reserved = []owned{
	{netip.MustParsePrefix("0.0.0.0/8"), "no host"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local use"},
	{netip.MustParsePrefix("224.0.0.0/3"), "multicast and later use"},
}

// apart wants a range to share no address with others, with the nodes or with what is
// reserved.
func (c *checker) apart(path string, given CIDR, others []owned) {
	for _, network := range c.e.Topology.Networks() {
		others = append(others, owned{network, "the nodes"})
	}
	for _, other := range append(others, reserved...) {
		if given.Overlaps(other.Prefix) {
			c.add(path, "write a range that is free, such as 10.244.0.0/16 for pods and 10.96.0.0/16 for Services",
				"%s overlaps %s, which is for %s", given, other.Prefix, other.by)
			return
		}
	}
}
