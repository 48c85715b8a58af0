package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"skerry.dev/skerry/lab/cluster/spec"
)

// What is chosen is what the programs of a node are told.
func TestChosenFiles(t *testing.T) {
	for _, want := range []struct {
		spec.Spec
		plugin, mode string
		mtu          int
	}{
		{spec.Spec{}, "ptp", "nftables", 0},
		{spec.Spec{CNI: spec.CNIBridge, Proxy: spec.ProxyIPTables}, "bridge", "iptables", 0},
		{spec.Spec{CNI: spec.CNIFlannel, Proxy: spec.ProxyIPVS}, "bridge", "ipvs", 1450},
	} {
		c, err := want.Complete(nil)
		if err != nil {
			t.Fatal(err)
		}
		s := example
		s.Spec = c
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
		if first := cni.Plugins[0]; first.Type != want.plugin || first.MTU != want.mtu || first.IsGateway != c.Bridged() || first.Type != c.Plugins()[0] {
			t.Errorf("%+v: plugin %+v", want.Spec, first)
		}
		var proxy struct{ Mode string }
		text, err = s.render("files/kube-proxy.yaml")
		if err == nil {
			err = yaml.Unmarshal(text, &proxy)
		}
		if err != nil || proxy.Mode != want.mode {
			t.Errorf("%+v: %v, kube-proxy is told\n%s", want.Spec, err, text)
		}
	}
}

// Where no kube-proxy is, CoreDNS calls the API server where it is.
func TestCoreDNSWithoutProxy(t *testing.T) {
	for _, proxy := range spec.Proxies() {
		c := Cluster{options: Options{Spec: spec.Spec{Proxy: proxy}}, plane: plane{address: "10.1.0.1"}}
		s := example
		s.CoreDNSEnv = c.apiEnv()
		text, err := s.render("manifests/coredns.yaml")
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Contains(string(text), `{name: KUBERNETES_SERVICE_HOST, value: "10.1.0.1"}`) &&
			strings.Contains(string(text), `{name: KUBERNETES_SERVICE_PORT, value: "6443"}`)
		if told != (proxy == spec.ProxyNone) {
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
