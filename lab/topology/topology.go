// Package topology says which clusters and nodes a lab has, what their
// addresses are and which links a request crosses. It is pure: lab/host makes
// it real. Start at Topology.
package topology

import (
	"fmt"
	"net/netip"
	"strings"
)

// Bounds of a lab on one machine.
const (
	clustersMax = 32
	nodesMax    = 200
	entriesMax  = 16
)

// Topology names the clusters of a lab and where the service and its client live.
type Topology struct {
	// Clusters in order, each with its nodes; the first node is the gateway
	// unless Gateway names another.
	Clusters []Cluster `yaml:"clusters" json:"clusters" jsonschema:"minItems=1,maxItems=32"`
	// Service is the node that serves the workload, as CLUSTER/NODE.
	Service Ref `yaml:"service" json:"service"`
	// Replicas are nodes that serve the workload beside the service's, each as
	// CLUSTER/NODE; a system spreads requests over them if it says so.
	Replicas []Ref `yaml:"replicas,omitempty" json:"replicas,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Broken are replicas that reset each connection at its first word: they listen, and
	// fail at once.
	Broken []Ref `yaml:"broken,omitempty" json:"broken,omitempty" jsonschema:"minItems=1,uniqueItems=true"`
	// Entries are nodes of the service's cluster at which requests enter, each as
	// CLUSTER/NODE: load.ratio says how many threads request at each.
	Entries []Ref `yaml:"entries,omitempty" json:"entries,omitempty" jsonschema:"minItems=1,maxItems=16,uniqueItems=true"`
	// Client is the node that the load runs on, as CLUSTER/NODE.
	Client Ref `yaml:"client" json:"client"`
	// Congestion control of every node: cubic (default), reno, bbr or another
	// that the kernel has.
	Congestion string `yaml:"congestion,omitempty" json:"congestion,omitempty" jsonschema:"pattern=^[a-z0-9_-]{1\\,15}$"`
	// Dual has nodes have addresses of IPv6 beside those of IPv4. It is no key of a
	// file: it follows from kubernetes.family.
	Dual bool `yaml:"-" json:"dual,omitempty"`
}

// Cluster is one cluster and its nodes.
type Cluster struct {
	// Name of the cluster: a letter first, then lower-case letters, digits and
	// hyphens; at most 15.
	Name string `yaml:"name" json:"name" jsonschema:"pattern=^[a-z]([a-z0-9-]{0\\,13}[a-z0-9])?$"`
	// Nodes by name, unique in the cluster; names as for clusters.
	Nodes []string `yaml:"nodes" json:"nodes" jsonschema:"minItems=1,pattern=^[a-z]([a-z0-9-]{0\\,13}[a-z0-9])?$"`
	// Gateway is the node that carries an interconnect's gateway; by default the first.
	Gateway string `yaml:"gateway,omitempty" json:"gateway,omitempty"`
}

// Ref names a node as CLUSTER/NODE, or a cluster as CLUSTER.
type Ref string

// Node is one node with its addresses. Data carries what the experiment
// measures; mgmt is the lab's own.
type Node struct {
	Cluster, Name string
	Data, Mgmt    netip.Prefix
	// Gateway is the cluster's way to the WAN, on the data network.
	Gateway netip.Addr
	// Data6 and Gateway6 are those of IPv6; not valid where the lab is not dual.
	Data6    netip.Prefix
	Gateway6 netip.Addr
}

// Ref is the node's name in the lab.
func (n Node) Ref() Ref { return Ref(n.Cluster + "/" + n.Name) }

// String is the node's name in the lab.
func (n Node) String() string { return string(n.Ref()) }

// Host is the node's host name: unique in the lab, a valid DNS label.
func (n Node) Host() string { return n.Cluster + "-" + n.Name }

// Host is the host name of the node that it names.
func (r Ref) Host() string {
	cluster, node := r.Split()
	return Node{Cluster: cluster, Name: node}.Host()
}

// Split gives the cluster and, where the reference names one, the node.
func (r Ref) Split() (cluster, node string) {
	cluster, node, _ = strings.Cut(string(r), "/")
	return cluster, node
}

// CongestionControl is the one in force, never empty.
func (t *Topology) CongestionControl() string {
	if t.Congestion == "" {
		return "cubic"
	}
	return t.Congestion
}

// Nodes lists every node in file order. Cluster i (from 1) has data network
// 10.i.0.0/16 with the router at 10.i.255.254; mgmt is 172.31.i.0/24 of a /16, and
// has no IPv6. In a dual lab the data network is fd73:6b65:7279:i::/64, too, with node
// j at ::j and the router at ::ffff.
func (t *Topology) Nodes() []Node {
	var nodes []Node
	for i, c := range t.Clusters {
		site := byte(i + 1)
		for j, name := range c.Nodes {
			host := byte(j + 1)
			n := Node{
				Cluster: c.Name, Name: name,
				Data:    netip.PrefixFrom(netip.AddrFrom4([4]byte{10, site, 0, host}), 16),
				Mgmt:    netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 31, site, host}), 16),
				Gateway: Router(i).Addr(),
			}
			if t.Dual {
				n.Data6, n.Gateway6 = dataAt6(i, uint16(host)), Router6(i).Addr()
			}
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Router is the WAN's address on the data network of cluster i (from 0).
func Router(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i + 1), 255, 254}), 16)
}

// Router6 is its address of IPv6, where the lab is dual.
func Router6(i int) netip.Prefix { return dataAt6(i, routerHost6) }

// Node finds a node by CLUSTER/NODE.
func (t *Topology) Node(r Ref) (Node, error) {
	for _, n := range t.Nodes() {
		if n.Ref() == r {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("no node %q", r)
}

// GatewayOf finds the node that carries the gateway of a cluster.
func (t *Topology) GatewayOf(cluster string) (Node, error) {
	for _, c := range t.Clusters {
		if c.Name != cluster || len(c.Nodes) == 0 {
			continue
		}
		if c.Gateway != "" {
			return t.Node(Ref(c.Name + "/" + c.Gateway))
		}
		return t.Node(Ref(c.Name + "/" + c.Nodes[0]))
	}
	return Node{}, fmt.Errorf("no cluster %q", cluster)
}

// Refs lists every name that a link may end at: clusters, then nodes.
func (t *Topology) Refs() []string {
	var refs []string
	for _, c := range t.Clusters {
		refs = append(refs, c.Name)
	}
	for _, n := range t.Nodes() {
		refs = append(refs, n.String())
	}
	return refs
}
