package system_test

import (
	"io/fs"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

// An address is rendered for each entry, by the address that the system below gives
// to its node; a way leads over the first. One that does not depend on the entry is the
// same for all.
func TestEntries(t *testing.T) {
	tree := layered()
	tree["near/system.yaml"] = file(`name: near
kind: interconnect
summary: is called at each entry
hosts:
  route: [client, entry, service]
  address: "{{.Entry.IP}}:{{.Entry.Port}}"
`)
	lab := &topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "w1", "w2"}}, {Name: "c2", Nodes: []string{"n"}}},
		Service:  "c1/w1", Entries: []topology.Ref{"c1/w2", "c1/w1"}, Client: "c2/n",
	}
	for _, c := range []struct{ name, addresses, path string }{
		{"near", "10.1.0.3:8080 10.1.0.2:8080", "c2/n c1/w2 c1/w1"},
		{"lower+near", "10.9.1.3:8080 10.9.1.2:8080", "c2/n c1/w2 c1/w1"},
		{"lower+upper", "10.9.2.1:7080 10.9.2.1:7080", "c2/n c2/n c1/w1"},
	} {
		if addresses, path := called(t, tree, lab, c.name); addresses != c.addresses || path != c.path {
			t.Errorf("%s is called at %s by %s, want %s by %s", c.name, addresses, path, c.addresses, c.path)
		}
	}
	lab.Entries = nil
	if addresses, path := called(t, tree, lab, "near"); addresses != "10.1.0.2:8080" || path != "c2/n c1/w1 c1/w1" {
		t.Errorf("without entries it is called at %s by %s, want the service's node", addresses, path)
	}
	lab.Entries = []topology.Ref{"c1/w3"}
	if _, err := system.ValuesFor(lab, "/dir", 8080); err == nil {
		t.Error("an entry at a node that is not there has a place")
	}
}

// called says where a system that is up is called, and by which nodes a request goes.
func called(t *testing.T, tree fs.FS, lab *topology.Topology, name string) (addresses, path string) {
	t.Helper()
	stack, err := system.Load(tree, name)
	if err != nil {
		t.Fatal(err)
	}
	values, err := system.ValuesFor(lab, t.TempDir(), 8080)
	if err != nil {
		t.Fatal(err)
	}
	r, err := stack.Start(t.Context(), &fake{}, values)
	if err == nil {
		err = r.Connect(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := r.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	if first, err := r.Address(); err != nil || first != all[0] {
		t.Errorf("%s is called at %q, %v, with entries first at %q", name, first, err, all[0])
	}
	var nodes []string
	for _, node := range stack.Path(values) {
		nodes = append(nodes, string(node))
	}
	return strings.Join(all, " "), strings.Join(nodes, " ")
}

// The role names a place on a way alone: a step there would be one of several.
func TestStepsAtEntries(t *testing.T) {
	_, err := system.LoadPlugin(plugin("  route: [client, entry]\n  start:\n    - {at: entry, run: x}\n"+address), "test")
	if err == nil || !strings.Contains(err.Error(), `unknown role "entry"`) || !strings.Contains(err.Error(), "roles are client, service, importer, exporter, lab, each") {
		t.Errorf("got %v", err)
	}
}
