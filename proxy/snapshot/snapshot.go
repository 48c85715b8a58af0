// Package snapshot is what the proxy knows of a cluster's Services at a moment: plain
// values, made by source and never changed once they are given away. It knows no client
// of Kubernetes. Start at Service.
package snapshot

import (
	"net/netip"
	"time"
)

// ProxyName is the value of the label service.kubernetes.io/service-proxy-name by which a
// Service opts in, so that kube-proxy leaves it alone.
const ProxyName = "skerry"

// PolicyAnnotation names the policy that balances a Service. With it, all endpoints that
// its traffic policies allow are for the policy to choose from; without it, topology hints
// are kept to exactly, and the policy chooses from what they leave.
const PolicyAnnotation = "proxy.skerry.dev/policy"

// OptionsAnnotation has the policy's parameters: Options, as an object of YAML or JSON.
const OptionsAnnotation = "proxy.skerry.dev/options"

// Options are parameters of the policy rap, and who carries. What is 0 or "" has its
// default.
type Options struct {
	// MaxCPU and MaxRAM are of how many percent of the limit a node is overloaded.
	MaxCPU int `yaml:"maxCPU,omitempty"`
	MaxRAM int `yaml:"maxRAM,omitempty"`
	// Usage is who tells what pods use: UsageReports or UsageMetrics.
	Usage string `yaml:"usage,omitempty"`
	// Dataplane is who carries: DataplaneUserspace or DataplaneCopyLoop.
	Dataplane string `yaml:"dataplane,omitempty"`
}

// Who may carry connections of a Service: the proxy's own data plane, or a copy of
// kube-proxy's in its user space mode, to be measured against.
const (
	DataplaneUserspace = "userspace"
	DataplaneCopyLoop  = "copy-loop"
)

// Who may tell what pods use: proxies, ten times a second, or metrics.k8s.io (metrics-server)
// each 15 s.
const (
	UsageReports = "reports"
	UsageMetrics = "metrics.k8s.io"
)

// Usage is what the pods of a Service on a node use, as shares of what they may, of CPU of so
// many Cores, and when that was measured by the clock of who did.
type Usage struct {
	CPU, RAM float64
	Cores    float64
	Measured time.Time
}

// A Key names a Service.
type Key struct{ Namespace, Name string }

// String is the key as Kubernetes' tools write it.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// A Service is one that opted in.
type Service struct {
	Key
	// Policy is the annotation's; "" is none.
	Policy string
	// Options are those of OptionsAnnotation.
	Options Options
	// ClusterIPs are its addresses within the cluster, LoadBalancerIPs those of load balancers.
	ClusterIPs, ExternalIPs, LoadBalancerIPs []netip.Addr
	// SourceRanges are who may call LoadBalancerIPs; none of a family is everybody of it.
	SourceRanges []netip.Prefix
	// InternalLocal and ExternalLocal are the traffic policies Local.
	InternalLocal, ExternalLocal bool
	// Affinity is how long a client stays with its endpoint; 0 is not.
	Affinity time.Duration
	// HealthPort answers load balancers whether this node has endpoints; 0 is none.
	HealthPort uint16
	Ports      []Port
	// Refusals say what of it the proxy does not carry.
	Refusals []string
}

// A Protocol is one that a port speaks.
type Protocol string

// The protocols that are carried.
const (
	TCP Protocol = "TCP"
	UDP Protocol = "UDP"
)

// A Port of a Service, with who serves it.
type Port struct {
	Name      string
	Protocol  Protocol
	Port      uint16
	NodePort  uint16 // 0 is none
	Endpoints []Endpoint
}

// An Endpoint serves a port.
type Endpoint struct {
	Addr netip.AddrPort
	// Node where it runs, Zone of that; "" is not told.
	Node, Zone string
	// PodUID is of the pod that it is; "" is told of none.
	PodUID string
	// The conditions of its EndpointSlice.
	Ready, Serving, Terminating bool
	// ForZones and ForNodes are the hints of its EndpointSlice.
	ForZones, ForNodes []string
}

// A Node is one of the cluster's.
type Node struct {
	Name, Zone string
	Addrs      []netip.Addr
	// Pods are where its pods' addresses are.
	Pods []netip.Prefix
}

// A Change is what has become of Services and nodes since the last one. A nil Service, or
// Node, is gone.
type Change struct {
	Services map[Key]*Service
	Nodes    map[string]*Node
}
