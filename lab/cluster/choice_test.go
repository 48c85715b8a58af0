package cluster

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"skerry.dev/skerry/lab/topology"
)

// Ranges that are given are those of every cluster, and node j has the j-th part behind
// the first, also where that is in the middle of a byte.
func TestChosenRanges(t *testing.T) {
	topo := topology.Topology{Clusters: []topology.Cluster{
		{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head", "worker", "other"}},
	}}
	c := Choice{Pods: netip.MustParsePrefix("10.64.252.0/22"), Services: netip.MustParsePrefix("10.96.0.0/12")}
	for i, want := range [][]string{{"10.64.253.0/24", "10.64.254.0/24"}, {"10.64.253.0/24", "10.64.254.0/24", "10.64.255.0/24"}} {
		var got []string
		for _, m := range c.members(&topo, i) {
			got = append(got, m.pods.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("cluster %d: nodes have %v, want %v", i, got, want)
		}
		n := c.networkOf(&topo, i)
		if n.pods != c.Pods || n.services != c.Services || n.api().String() != "10.96.0.1" || n.dns().String() != "10.96.0.10" {
			t.Errorf("cluster %d has %+v, with %s and %s", i, n, n.api(), n.dns())
		}
	}
	half := Choice{Services: c.Services}.networkOf(&topo, 1)
	if half.pods != topology.PodRange(1) || half.services != c.Services {
		t.Errorf("with Services alone it is %+v", half)
	}
}

// What is chosen is what the programs of a node are told.
func TestChosenFiles(t *testing.T) {
	for _, want := range []struct {
		Choice
		plugin, mode string
		mtu          int
		needs        []string
	}{
		{Choice{}, "ptp", "nftables", 0, nil},
		{Choice{CNI: CNIBridge, Proxy: ProxyIPTables}, "bridge", "iptables", 0, []string{"bridge"}},
		{Choice{CNI: CNIFlannel, Proxy: ProxyIPVS}, "bridge", "ipvs", 1450, []string{"bridge", "flannel"}},
	} {
		c, err := want.complete()
		if err != nil {
			t.Fatal(err)
		}
		s := example
		s.Choice = c
		var cni struct {
			Plugins []struct {
				Type      string
				MTU       int
				IsGateway bool
			}
		}
		text, err := s.render("files/cni.json")
		if err == nil {
			err = json.Unmarshal(text, &cni)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if first := cni.Plugins[0]; first.Type != want.plugin || first.MTU != want.mtu || first.IsGateway != c.Bridged() || first.Type != c.plugins()[0] {
			t.Errorf("%+v: plugin %+v", want.Choice, first)
		}
		var proxy struct{ Mode string }
		text, err = s.render("files/kube-proxy.yaml")
		if err == nil {
			err = yaml.Unmarshal(text, &proxy)
		}
		if err != nil || proxy.Mode != want.mode {
			t.Errorf("%+v: %v, kube-proxy is told\n%s", want.Choice, err, text)
		}
		for _, program := range []string{"bridge", "flannel"} {
			if got := c.Needs(program); got != slices.Contains(want.needs, program) {
				t.Errorf("%+v needs %s: %v", want.Choice, program, got)
			}
		}
		if !c.Needs("kubernetes") || !c.Needs("ptp") {
			t.Errorf("%+v does without what all need", want.Choice)
		}
	}
	for _, c := range []Choice{{CNI: "calico"}, {Proxy: "userspace"}} {
		if _, err := c.complete(); err == nil || !strings.HasPrefix(err.Error(), "there is no ") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

// Where no kube-proxy is, CoreDNS calls the API server where it is.
func TestCoreDNSWithoutProxy(t *testing.T) {
	for _, proxy := range Proxies() {
		c := Cluster{options: Options{Choice: Choice{Proxy: proxy}}, plane: plane{address: "10.1.0.1"}}
		s := example
		s.CoreDNSEnv = c.apiEnv()
		text, err := s.render("manifests/coredns.yaml")
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Contains(string(text), `{name: KUBERNETES_SERVICE_HOST, value: "10.1.0.1"}`) &&
			strings.Contains(string(text), `{name: KUBERNETES_SERVICE_PORT, value: "6443"}`)
		if told != (proxy == ProxyNone) {
			t.Errorf("proxy %s: CoreDNS is told where the API server is: %v", proxy, told)
		}
		for _, part := range strings.Split(string(text), "---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(part), &object); err != nil {
				t.Errorf("proxy %s: %v\n%s", proxy, err, part)
			}
		}
	}
}
