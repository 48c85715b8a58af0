package cluster

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/topology"
)

var example = settings{
	Name: "c1-head", Head: "c1-head", Dir: "/lab/c1/head", ClusterDir: "/lab/c1", PodGroup: "/skerry/lab/pods-c1-head",
	Pods: "10.101.0.0/16", NodePods: "10.101.1.0/24", DNS: "10.201.0.10",
	PluginDirs: []string{"/p/ptp", "/p/host-local"}, Runc: "/p/runc/runc", Pause: pauseImage,
}

// dualExample is one with IPv6.
func dualExample() settings {
	s := example
	s.Pods6, s.NodePods6 = "fd73:6b65:7279:8100::/56", "fd73:6b65:7279:8101::/64"
	return s
}

// Every file is rendered, and is of its format.
func TestRender(t *testing.T) {
	names, err := fs.Glob(files, "*/*")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		for _, s := range []settings{example, dualExample()} {
			text, err := s.render(name)
			if err != nil || strings.Contains(string(text), "<no value>") {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
			var document any
			switch filepath.Ext(name) {
			case ".yaml":
				err = yaml.Unmarshal(text, &document)
			case ".json":
				err = json.Unmarshal(text, &document)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
	}
	text, err := example.render("files/containerd.toml")
	if err != nil || !strings.Contains(string(text), `bin_dirs = ["/p/ptp", "/p/host-local"]`) {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := example.render("nonesuch"); err == nil {
		t.Error("what there is not is rendered")
	}
}

// No two clusters of a lab, nor their nodes, share an address.
func TestAddresses(t *testing.T) {
	topo := topology.Topology{Clusters: []topology.Cluster{
		{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head", "worker", "other"}},
	}}
	var ranges []netip.Prefix
	for i := range topo.Clusters {
		n := spec.Spec{}.Network(&topo, i)
		ranges = append(ranges, n.Pods, n.Services)
		all := membersOf(&topo, i, n)
		if len(all) != len(topo.Clusters[i].Nodes) {
			t.Fatalf("cluster %d has the members %v", i, all)
		}
		ranges = append(ranges, all[0].Data.Masked())
		for j, m := range all {
			if !n.Pods.Overlaps(m.pods) || j > 0 && m.pods.Overlaps(all[j-1].pods) {
				t.Errorf("node %s has pods in %s", m, m.pods)
			}
		}
		if !n.Services.Contains(n.API()) || !n.Services.Contains(n.DNS()) || n.API() == n.DNS() {
			t.Errorf("services at %s and %s of %s", n.API(), n.DNS(), n.Services)
		}
	}
	for i, one := range ranges {
		for _, other := range ranges[:i] {
			if one.Overlaps(other) {
				t.Errorf("%s and %s overlap", one, other)
			}
		}
	}
	if got := membersOf(&topo, 1, spec.Spec{}.Network(&topo, 1))[2].pods.String(); got != "10.102.3.0/24" {
		t.Errorf("the third node of c2 has %s", got)
	}
}

func TestCommandLines(t *testing.T) {
	p := plane{dir: "/lab/c1", address: "10.1.0.1", Network: spec.Spec{}.Network(&topology.Topology{}, 0)}
	for _, c := range []struct {
		args []string
		want string
	}{
		{p.etcd(), "--data-dir=/lab/c1/etcd"},
		{p.apiServer(), "--service-cluster-ip-range=10.201.0.0/16"},
		{p.apiServer(), "--advertise-address=10.1.0.1"},
		{p.controllerManager(), "--node-monitor-grace-period=5s"},
		{p.controllerManager(), "--horizontal-pod-autoscaler-sync-period=1s"},
		{p.scheduler(), "--kubeconfig=/lab/c1/scheduler.kubeconfig"},
	} {
		if !strings.Contains(strings.Join(c.args, " ")+" ", c.want+" ") {
			t.Errorf("%v lacks %s", c.args, c.want)
		}
	}
}
