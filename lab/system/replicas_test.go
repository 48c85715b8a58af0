package system_test

import (
	"testing"

	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

// Replicas are called as the service is: at the workload's port, by the address
// that the system below gives their node.
func TestReplicas(t *testing.T) {
	tree := layered()
	tree["spread/system.yaml"] = file(`name: spread
kind: interconnect
summary: names who serves
hosts:
  route: [client, service]
  address: "{{.Service.IP}}:{{.Service.Port}}{{range .Replicas}},{{.Host}}={{.IP}}:{{.Port}}{{end}}"
`)
	lab := &topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "w1", "w2"}}, {Name: "c2", Nodes: []string{"n"}}},
		Service:  "c1/w1", Replicas: []topology.Ref{"c1/w2", "c1/head"}, Client: "c2/n",
	}
	values, err := system.ValuesFor(lab, "/dir", 8080)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"spread":       "10.1.0.2:8080,c1-w2=10.1.0.3:8080,c1-head=10.1.0.1:8080",
		"lower+spread": "10.9.1.2:8080,c1-w2=10.9.1.3:8080,c1-head=10.9.1.1:8080",
	} {
		stack, err := system.Load(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := stack.Address(values); err != nil || got != want {
			t.Errorf("%s serves at %s, %v; want %s", name, got, err, want)
		}
	}
	lab.Replicas = []topology.Ref{"c1/w3"}
	if _, err := system.ValuesFor(lab, "/dir", 8080); err == nil {
		t.Error("a replica at a node that is not there has a place")
	}
}
