package experiment_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

// onKubernetes is the quickstart with a block kubernetes:, of two clusters of two
// nodes.
func onKubernetes(t testing.TB, block string) (*experiment.Experiment, error) {
	t.Helper()
	text, err := os.ReadFile("testdata/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return experiment.Read("f", append(text, "substrate: kubernetes\nkubernetes: "+block+"\n"...))
}

// What is chosen is read, survives its record in run.json, and stays out of it where
// nothing is.
func TestKubernetes(t *testing.T) {
	e, err := onKubernetes(t, "{cni: flannel, proxy: ipvs, family: dual, pods: 10.244.0.0/16, services: 10.96.0.0/16}")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(e.Kubernetes)
	if want := `{"cni":"flannel","proxy":"ipvs","family":"dual","pods":"10.244.0.0/16","services":"10.96.0.0/16"}`; err != nil || string(text) != want {
		t.Errorf("recorded as %s, %v", text, err)
	}
	var again experiment.Kubernetes
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, *e.Kubernetes) {
		t.Errorf("read back as %+v, %v", again, err)
	}
	if text, err := json.Marshal(experiment.Kubernetes{}); err != nil || string(text) != "{}" {
		t.Errorf("nothing is recorded as %s, %v", text, err)
	}
}

// Nodes have addresses of IPv6 where the file says so, and only there; also as run.json
// records them.
func TestKubernetesFamily(t *testing.T) {
	for block, dual := range map[string]bool{"{}": false, "{family: ipv4}": false, "{family: dual}": true} {
		e, err := onKubernetes(t, block)
		if err != nil {
			t.Errorf("%s: %v", block, err)
			continue
		}
		text, err := json.Marshal(e)
		var again experiment.Experiment
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || e.Topology.Dual != dual || again.Topology.Dual != dual || again.Topology.Nodes()[0].Data6.IsValid() != dual {
			t.Errorf("%s: the topology is %+v, recorded as %+v, %v", block, e.Topology, again.Topology, err)
		}
	}
	_, err := onKubernetes(t, "{family: duel}")
	if want := `there is no family of addresses "duel"` + "\nhint: did you mean dual?"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	text, err := os.ReadFile("testdata/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dual := strings.Replace(string(text), "topology:", "topology:\n  dual: true", 1)
	if _, err := experiment.Read("f", []byte(dual)); err == nil || !strings.Contains(err.Error(), `unknown key "dual"`) {
		t.Errorf("a topology that says so itself: %v", err)
	}
}

// What a file says of clusters, they are given, in their own units.
func TestSpec(t *testing.T) {
	if got := (*experiment.Kubernetes)(nil).Spec(); !reflect.DeepEqual(got, spec.Spec{}) {
		t.Errorf("nothing is chosen as %+v", got)
	}
	e, err := onKubernetes(t, "{cni: bridge, proxy: iptables, pods: 10.244.0.0/16, services: 10.96.0.0/16, metrics: true, registry: true, nodes: [{node: c1/head, cpu: 0.29, memory: 1GiB}]}")
	if err != nil {
		t.Fatal(err)
	}
	want := spec.Spec{
		CNI: spec.CNIBridge, Proxy: spec.ProxyIPTables, Metrics: true, Registry: true,
		Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16"),
		Capacity: map[topology.Ref]spec.Capacity{"c1/head": {MilliCPU: 290, Memory: 1 << 30}},
	}
	if got := e.Kubernetes.Spec(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// An autoscaler asks metrics-server.
	if e, err = onKubernetes(t, "{autoscale: {max: 2, cpu: 50}}"); err != nil || !e.Kubernetes.Spec().Metrics {
		t.Errorf("an autoscaler is without metrics-server, %v", err)
	}
}

func TestKubernetesRanges(t *testing.T) {
	for block, want := range map[string]string{ // empty for what is good
		"{}":                          "",
		"{pods: 10.244.0.0/16}":       "",
		"{services: 172.20.0.0/12}":   `"172.20.0.0/12" is an address in a range` + "\nhint: write 172.16.0.0/12 for all of it",
		"{services: 172.30.255.0/24}": "",
		"{pods: 192.168.4.0/22}":      "",
		"{pods: 192.168.4.0/23}":      "192.168.4.0/23 is too small for the pods of 2 nodes, a /24 each\nhint: write a length of /22 or less",
		"{pods: 192.168.4.0/28}":      "192.168.4.0/28 is too small for the pods of 2 nodes",
		"{services: 192.168.4.0/25}":  "192.168.4.0/25 is too small for Services\nhint: write a length of /12 to /24",
		"{services: 172.0.0.0/8}":     "172.0.0.0/8 is too large for Services",
		"{pods: 10.0.0.0/8}":          "10.0.0.0/8 overlaps 10.201.0.0/16, which is for Services of cluster 1",
		"{pods: 10.202.0.0/16}":       "overlaps 10.202.0.0/16, which is for Services of cluster 2",
		"{pods: 10.203.0.0/16}":       "",
		"{services: 10.101.0.0/20}":   "overlaps 10.101.0.0/16, which is for pods of cluster 1",
		"{services: 10.2.0.0/16}":     "overlaps 10.2.0.0/16, which is for the nodes",
		"{services: 10.3.0.0/16}":     "",
		"{pods: 172.31.1.0/20}":       `"172.31.1.0/20" is an address in a range`,
		"{pods: 172.31.0.0/20}":       "overlaps 172.31.0.0/16, which is for the nodes",
		"{pods: 127.0.0.0/16}":        "overlaps 127.0.0.0/8, which is for loopback",
		"{pods: 240.0.0.0/16}":        "which is for multicast and later use",
		"{pods: 0.0.0.0/0}":           "0.0.0.0/0 overlaps",
		"{pods: fd00::/48}":           `"fd00::/48" is not of IPv4`,
		"{pods: 10.244.0.0}":          `"10.244.0.0" is no range of addresses`,
		"{pods: 10.244.0.0/33}":       "is no range of addresses",

		"{metrics: true, registry: true}":                             "",
		"{nodes: [{node: c1/worker, cpu: 0.5, memory: 64MiB}]}":       "",
		"{nodes: [{node: c1/wrker, cpu: 1}]}":                         `there is no node "c1/wrker"`,
		"{nodes: [{node: c1/head, cpu: 1}, {node: c1/head, cpu: 1}]}": `node "c1/head" has a capacity already`,
		"{nodes: [{node: c1/head}]}":                                  `node "c1/head" has neither cpu nor memory`,
		"{nodes: [{node: c1/head, cpu: 0.0001}]}":                     "0.0001 cores are too little",
		"{nodes: [{node: c1/head, cpu: -1}]}":                         "-1 cores are too little",
		"{nodes: [{node: c1/head, memory: 1MiB}]}":                    "1MiB is too little for a pod",
		"{autoscale: {max: 4, cpu: 50}}":                              "",
		"{autoscale: {min: 2, max: 2, cpu: 1000, request: 0.001}}":    "",
		"{autoscale: {max: 4, cpu: 50, systems: [direct]}}":           "",
		"{autoscale: {max: 4, cpu: 50, systems: [dirct]}}":            `this experiment has no system "dirct"`,
		"{autoscale: {cpu: 50}}":                                      `the key "max" is missing`,
		"{autoscale: {min: 3, max: 2, cpu: 50}}":                      "at most 2 pods are fewer than at least 3\nhint: write 3 or more",
		"{autoscale: {min: -1, max: 2, cpu: 50}}":                     "-1 pods are not possible\nhint: write 1 to 100",
		"{autoscale: {min: 0, max: 2, cpu: 50}}":                      "0 pods are not possible\nhint: write 1 to 100",
		"{autoscale: {max: 101, cpu: 50}}":                            "101 pods are not possible",
		"{autoscale: {max: 4, cpu: 0}}":                               "a use of 0% cannot be aimed at",
		"{autoscale: {max: 4, cpu: 1001}}":                            "a use of 1001% cannot be aimed at",
		"{autoscale: {max: 4, cpu: 50, request: 0.0001}}":             "a pod cannot request 0.0001 cores",
		"{autoscale: {max: 4, cpu: 50, request: 0}}":                  "a pod cannot request 0 cores",
		"{autoscale: {max: 4, cpu: 50, request: 65}}":                 "a pod cannot request 65 cores",
		"{autoscale: {max: 4, cpu: 50, replicas: 3}}":                 "replicas",
		"{pods: 10.96.0.0/16, services: 10.96.0.0/20}":                "10.96.0.0/16 overlaps 10.96.0.0/20, which is for Services",
	} {
		_, err := onKubernetes(t, block)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", block, err, want)
		}
	}
}

// An autoscaler acts in the cells of the systems that it names, or in all, and nowhere
// on hosts. What is left out of it has a default.
func TestAutoscaled(t *testing.T) {
	for block, want := range map[string]string{ // how many pods there are at least, by system; - where nobody scales
		"{}":                             "direct -, haproxy-mtls -",
		"{autoscale: {max: 4, cpu: 50}}": "direct 1, haproxy-mtls 1",
		"{autoscale: {min: 3, max: 4, cpu: 50, systems: [direct]}}": "direct 3, haproxy-mtls -",
	} {
		e, err := onKubernetes(t, block)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, system := range e.Systems {
			text := system + " -"
			if a := e.Autoscaled(experiment.Cell{System: system}); a != nil {
				text = fmt.Sprintf("%s %d", system, a.Least())
				if a.MilliCPU() != 100 {
					t.Errorf("%s: a pod requests %d m", block, a.MilliCPU())
				}
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s, want %s", block, strings.Join(got, ", "), want)
		}
		e.Substrate = experiment.SubstrateHosts
		if e.Autoscaled(experiment.Cell{System: "direct"}) != nil {
			t.Errorf("%s: scaled on hosts", block)
		}
	}
	if got := (experiment.Autoscale{Request: 0.29}).MilliCPU(); got != 290 {
		t.Errorf("0.29 cores are %d m", got)
	}
}

// What the schema takes for a range is one to Read, or is told as such.
func TestSchemaOfRanges(t *testing.T) {
	_, defs := definitions(t)
	pattern := regexp.MustCompile(defs["Kubernetes"].Properties["pods"].Pattern)
	for text, matches := range map[string]bool{"10.244.0.0/16": true, "10.244.0.0": false, "fd00::/48": false, "a/16": false, "10.244/16": false} {
		if pattern.MatchString(text) != matches {
			t.Errorf("%q matches %s: %v", text, pattern, !matches)
		}
		if _, err := onKubernetes(t, "{pods: \""+text+"\"}"); (err == nil) != matches {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
