package cluster

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
	s.Choice = Choice{CNI: CNIFlannel}
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

// Addresses of IPv6 are each cluster's and node's own, also where those of IPv4 are
// chosen to be the same.
func TestDualNetworks(t *testing.T) {
	dual := pairs
	dual.Dual = true
	c := Choice{Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16")}
	seen := map[netip.Prefix]bool{}
	for i := range dual.Clusters {
		n := c.networkOf(&dual, i)
		ranges := []netip.Prefix{n.pods6, n.services6}
		for _, m := range c.members(&dual, i) {
			if n.pods6.Bits() > m.pods6.Bits() || !n.pods6.Contains(m.pods6.Addr()) {
				t.Errorf("%s has pods in %s, not of %s", m, m.pods6, n.pods6)
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
	for _, m := range c.members(&pairs, 0) {
		if got := m.podRanges(); len(got) != 1 || len(m.hosts()) != 3 || c.networkOf(&pairs, 0).services6.IsValid() {
			t.Errorf("without IPv6 %s has %v and is called %v", m, got, m.hosts())
		}
	}
}

func TestDualCommandLines(t *testing.T) {
	dual := pairs
	dual.Dual = true
	p, m := plane{network: Choice{}.networkOf(&dual, 0)}, Choice{}.members(&dual, 0)[1]
	if want := "--service-cluster-ip-range=10.201.0.0/16,fd73:6b65:7279:101::/112"; !slices.Contains(p.apiServer(), want) {
		t.Errorf("%v lacks %s", p.apiServer(), want)
	}
	if want := "--node-ip=10.1.0.2,fd73:6b65:7279:1::2"; !slices.Contains(m.kubelet("/lab"), want) {
		t.Errorf("%v lacks %s", m.kubelet("/lab"), want)
	}
	single := Choice{}.members(&pairs, 0)[1]
	if want := "--node-ip=10.1.0.2"; !slices.Contains(single.kubelet("/lab"), want) {
		t.Errorf("%v lacks %s", single.kubelet("/lab"), want)
	}
}
