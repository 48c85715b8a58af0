package cluster

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/topology"
)

// Programs of a dual node are told of both families, IPv4 first; those of any other of
// one alone.
func TestDualFiles(t *testing.T) {
	type ipam struct {
		Ranges [][]struct{ Subnet string }
		Routes []struct{ Dst string }
	}
	for _, want := range []struct {
		settings
		subnets, routes, clusters []string
		tables                    string
	}{
		{example, []string{"10.101.1.0/24"}, []string{"0.0.0.0/0"}, []string{"10.101.0.0/16"}, "table ip"},
		{
			dualExample(), []string{"10.101.1.0/24", "fd73:6b65:7279:8101::/64"}, []string{"0.0.0.0/0", "::/0"},
			[]string{"10.101.0.0/16", "fd73:6b65:7279:8100::/56"}, "table ip table ip6",
		},
	} {
		var cni struct{ Plugins []struct{ IPAM ipam } }
		read(t, want.settings, "files/cni.json", json.Unmarshal, &cni)
		var subnets, routes []string
		for _, r := range cni.Plugins[0].IPAM.Ranges {
			subnets = append(subnets, r[0].Subnet)
		}
		for _, r := range cni.Plugins[0].IPAM.Routes {
			routes = append(routes, r.Dst)
		}
		if !slices.Equal(subnets, want.subnets) || !slices.Equal(routes, want.routes) {
			t.Errorf("pods have addresses of %v and routes to %v, want %v and %v", subnets, routes, want.subnets, want.routes)
		}
		var proxy struct {
			ClusterCIDR string `yaml:"clusterCIDR"`
		}
		read(t, want.settings, "files/kube-proxy.yaml", yaml.Unmarshal, &proxy)
		if got := strings.Split(proxy.ClusterCIDR, ","); !slices.Equal(got, want.clusters) {
			t.Errorf("kube-proxy is told of %v, want %v", got, want.clusters)
		}
		text, err := want.render("files/masquerade.nft")
		if err != nil {
			t.Fatal(err)
		}
		var tables []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "table ") {
				tables = append(tables, strings.TrimSuffix(strings.TrimSpace(line), " skerry {"))
			}
		}
		if got := strings.Join(tables, " "); got != want.tables {
			t.Errorf("it masquerades in %q, want %q", got, want.tables)
		}
	}
}

// read renders a file and reads it.
func read(t *testing.T, s settings, name string, unmarshal func([]byte, any) error, into any) {
	t.Helper()
	text, err := s.render(name)
	if err == nil {
		err = unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
}

// flannel is told of both families, and pods' packets leave room for the longer
// headers of a tunnel by IPv6.
func TestDualFlannel(t *testing.T) {
	s := dualExample()
	s.Spec = spec.Spec{CNI: spec.CNIFlannel}
	var network struct {
		Network, IPv6Network string
		EnableIPv6           bool
	}
	read(t, s, "files/flannel.json", json.Unmarshal, &network)
	if network.Network != s.Pods || network.IPv6Network != s.Pods6 || !network.EnableIPv6 {
		t.Errorf("flannel is told %+v", network)
	}
	const ethernet, headers6 = 1500, 14 + 40 + 8 + 8
	if got := s.MTU(); got != ethernet-headers6 {
		t.Errorf("packets of pods have %d bytes, want %d", got, ethernet-headers6)
	}
}

func twoClusters(dual bool) topology.Topology {
	return topology.Topology{Dual: dual, Clusters: []topology.Cluster{
		{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head", "worker"}},
	}}
}

// Addresses of IPv6 are each cluster's and node's own, also where those of IPv4 are
// chosen to be the same.
func TestDualNetworks(t *testing.T) {
	single, dual := twoClusters(false), twoClusters(true)
	c := spec.Spec{Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16")}
	seen := map[netip.Prefix]bool{}
	for i := range dual.Clusters {
		n := c.Network(&dual, i)
		ranges := []netip.Prefix{n.Pods6, n.Services6}
		for _, m := range membersOf(&dual, i, n) {
			if n.Pods6.Bits() > m.pods6.Bits() || !n.Pods6.Contains(m.pods6.Addr()) {
				t.Errorf("%s has pods in %s, not of %s", m, m.pods6, n.Pods6)
			}
			ranges = append(ranges, m.pods6)
			if got := m.podRanges(); len(got) != 2 || got[0] != m.pods.String() || got[1] != m.pods6.String() {
				t.Errorf("%s is registered with %v", m, got)
			}
			if !slices.Contains(m.hosts(), m.Data6.Addr().String()) {
				t.Errorf("certificates of %s are for %v", m, m.hosts())
			}
		}
		for _, r := range ranges {
			if !r.IsValid() || seen[r] {
				t.Errorf("cluster %d has %s", i, r)
			}
			seen[r] = true
		}
	}
	n := c.Network(&single, 0)
	for _, m := range membersOf(&single, 0, n) {
		if got := m.podRanges(); len(got) != 1 || len(m.hosts()) != 3 || n.Services6.IsValid() {
			t.Errorf("without IPv6 %s has %v and is called %v", m, got, m.hosts())
		}
	}
}

func TestDualCommandLines(t *testing.T) {
	single, dual := twoClusters(false), twoClusters(true)
	p := plane{Network: spec.Spec{}.Network(&dual, 0)}
	m := membersOf(&dual, 0, p.Network)[1]
	if want := "--service-cluster-ip-range=10.201.0.0/16,fd73:6b65:7279:101::/112"; !slices.Contains(p.apiServer(), want) {
		t.Errorf("%v lacks %s", p.apiServer(), want)
	}
	if want := "--node-ip=10.1.0.2,fd73:6b65:7279:1::2"; !slices.Contains(m.kubelet("/lab"), want) {
		t.Errorf("%v lacks %s", m.kubelet("/lab"), want)
	}
	other := membersOf(&single, 0, spec.Spec{}.Network(&single, 0))[1]
	if want := "--node-ip=10.1.0.2"; !slices.Contains(other.kubelet("/lab"), want) {
		t.Errorf("%v lacks %s", other.kubelet("/lab"), want)
	}
}
