package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/topology"
)

func twoClusters() *topology.Topology {
	return &topology.Topology{
		Clusters: []topology.Cluster{
			{Name: "c1", Nodes: []string{"head", "worker"}},
			{Name: "c2", Nodes: []string{"head", "worker"}, Gateway: "worker"},
		},
		Service: "c1/worker",
		Client:  "c2/head",
	}
}

func TestNodes(t *testing.T) {
	var got []string
	for _, n := range twoClusters().Nodes() {
		got = append(got, fmt.Sprintf("%s %s %s %s via %s", n, n.Host(), n.Data, n.Mgmt, n.Gateway))
	}
	want := `c1/head c1-head 10.1.0.1/16 172.31.1.1/16 via 10.1.255.254
c1/worker c1-worker 10.1.0.2/16 172.31.1.2/16 via 10.1.255.254
c2/head c2-head 10.2.0.1/16 172.31.2.1/16 via 10.2.255.254
c2/worker c2-worker 10.2.0.2/16 172.31.2.2/16 via 10.2.255.254`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// A dual lab adds addresses of IPv6 and alters none of IPv4; any other has none.
func TestDualNodes(t *testing.T) {
	lab := twoClusters()
	single := lab.Nodes()
	lab.Dual = true
	var got []string
	for i, n := range lab.Nodes() {
		got = append(got, fmt.Sprintf("%s %s via %s", n, n.Data6, n.Gateway6))
		if single[i].Data6.IsValid() || single[i].Gateway6.IsValid() {
			t.Errorf("where the lab is not dual, %s has %s", n, single[i].Data6)
		}
		n.Data6, n.Gateway6 = single[i].Data6, single[i].Gateway6
		if n != single[i] {
			t.Errorf("%+v was %+v", n, single[i])
		}
	}
	want := `c1/head fd73:6b65:7279:1::1/64 via fd73:6b65:7279:1::ffff
c1/worker fd73:6b65:7279:1::2/64 via fd73:6b65:7279:1::ffff
c2/head fd73:6b65:7279:2::1/64 via fd73:6b65:7279:2::ffff
c2/worker fd73:6b65:7279:2::2/64 via fd73:6b65:7279:2::ffff`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestFind(t *testing.T) {
	lab := twoClusters()
	for cluster, want := range map[string]string{"c1": "c1/head", "c2": "c2/worker"} {
		if n, err := lab.GatewayOf(cluster); err != nil || n.String() != want {
			t.Errorf("gateway of %s is %v, %v; want %s", cluster, n, err, want)
		}
	}
	if n, err := lab.Node("c2/head"); err != nil || n.Data.Addr().String() != "10.2.0.1" {
		t.Errorf("c2/head is %v, %v", n, err)
	}
	for _, ref := range []topology.Ref{"c2", "c3/head", "c2/", ""} {
		if n, err := lab.Node(ref); err == nil {
			t.Errorf("node %q found: %v", ref, n)
		}
	}
	if _, err := lab.GatewayOf("c3"); err == nil {
		t.Error("gateway of a cluster that does not exist found")
	}
	if got := strings.Join(lab.Refs(), " "); got != "c1 c2 c1/head c1/worker c2/head c2/worker" {
		t.Errorf("refs are %s", got)
	}
	if got := lab.CongestionControl(); got != "cubic" {
		t.Errorf("congestion control is %q by default, want cubic", got)
	}
}

func TestCheckAcceptsWhatIsGood(t *testing.T) {
	lab := twoClusters()
	lab.Congestion = "bbr"
	lab.Replicas = []topology.Ref{"c1/head", "c2/worker"}
	lab.Entries = []topology.Ref{"c1/worker", "c1/head"}
	lab.Clusters = append(lab.Clusters, topology.Cluster{Name: "abcdefghijklmno", Nodes: []string{"n"}})
	if problems := lab.Check(); problems != nil {
		t.Errorf("got %v", problems)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*topology.Topology)
		want  string
	}{
		{"no clusters", func(l *topology.Topology) { *l = topology.Topology{Service: "a/b", Client: "a/b"} },
			`clusters: there is no cluster (write for example {name: c1, nodes: [head, worker]})
service: there is no node "a/b" for the service (there are none)
client: there is no node "a/b" for the client (there are none)`},
		{"upper case", func(l *topology.Topology) { l.Clusters[0].Nodes[0] = "Head" },
			`clusters[0].nodes[0]: node name "Head" is not valid (write at most 15 lower-case letters, digits and hyphens, a letter first, no hyphen last)`},
		{"16 letters", func(l *topology.Topology) { l.Clusters[1].Nodes[1], l.Clusters[1].Gateway = "abcdefghijklmnop", "" },
			`clusters[1].nodes[1]: node name "abcdefghijklmnop" is not valid (write at most 15 lower-case letters, digits and hyphens, a letter first, no hyphen last)`},
		{"path in a name", func(l *topology.Topology) { l.Clusters[0].Nodes[0] = "../x" },
			`clusters[0].nodes[0]: node name "../x" is not valid (write at most 15 lower-case letters, digits and hyphens, a letter first, no hyphen last)`},
		{"two clusters of a name", func(l *topology.Topology) { l.Clusters[1].Name, l.Client = "c1", "c1/head" },
			`clusters[1].name: cluster "c1" has the name of cluster 1 (choose another name)`},
		{"two nodes of a name", func(l *topology.Topology) { l.Clusters[0].Nodes[0] = "worker" },
			`clusters[0].nodes[1]: node "worker" appears twice in cluster "c1" (choose another name)`},
		{"two hosts of a name", func(l *topology.Topology) {
			l.Clusters[0] = topology.Cluster{Name: "c2-a", Nodes: []string{"b"}}
			l.Clusters[1].Nodes = append(l.Clusters[1].Nodes, "a-b")
			l.Service = "c2/head"
		}, `clusters[1].nodes[2]: node c2/a-b would have the host name c2-a-b, as has c2-a/b (choose another name)`},
		{"no nodes", func(l *topology.Topology) { l.Clusters[0].Nodes, l.Service = nil, l.Client },
			`clusters[0].nodes: cluster "c1" has no node (write for example nodes: [head, worker])`},
		{"gateway", func(l *topology.Topology) { l.Clusters[1].Gateway = "wroker" },
			`clusters[1].gateway: cluster "c2" has no node "wroker" for its gateway (did you mean worker?)`},
		{"service", func(l *topology.Topology) { l.Service = "c1/wroker" },
			`service: there is no node "c1/wroker" for the service (did you mean c1/worker?)`},
		{"cluster for a node", func(l *topology.Topology) { l.Client = "c2" },
			`client: there is no node "c2" for the client (write CLUSTER/NODE: there are c1/head, c1/worker, c2/head, c2/worker)`},
		{"replicas", func(l *topology.Topology) {
			l.Replicas = []topology.Ref{"c1/worker", "c1/haed", "c1/head", "c2/head", "c1/head"}
		}, `replicas[0]: node "c1/worker" is that of the service already (name another node, or remove it)
replicas[1]: there is no node "c1/haed" for the replicas (did you mean c1/head?)
replicas[3]: node "c2/head" is that of the client already (name another node, or remove it)
replicas[4]: node "c1/head" is that of another replica already (name another node, or remove it)`},
		{"broken", func(l *topology.Topology) {
			l.Replicas, l.Broken = []topology.Ref{"c1/head"}, []topology.Ref{"c1/head", "c1/worker", "c1/head"}
		}, `broken[1]: node "c1/worker" is none of the replicas (there is only c1/head)
broken[2]: node "c1/head" appears twice (remove it)`},
		{"congestion", func(l *topology.Topology) { l.Congestion = "bbr; reboot" },
			`congestion: "bbr; reboot" is no congestion control (write one word, for example cubic or bbr)`},
		{"33 clusters", func(l *topology.Topology) {
			for i := range 31 {
				l.Clusters = append(l.Clusters, topology.Cluster{Name: fmt.Sprintf("d%d", i), Nodes: []string{"n"}})
			}
		}, `clusters: 33 clusters are more than one machine takes: 32 (remove some)`},
		{"201 nodes", func(l *topology.Topology) {
			for i := range 197 {
				l.Clusters[0].Nodes = append(l.Clusters[0].Nodes, fmt.Sprintf("n%d", i))
			}
		}, `clusters: 201 nodes are more than one machine takes: 200 (remove some)`},
	} {
		if got := problems(c.spoil); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestCheckEntries(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*topology.Topology)
		want  string
	}{
		{"entries", func(l *topology.Topology) {
			l.Entries = []topology.Ref{"c1/worker", "c1/haed", "c1/worker", "c2/head", "c1"}
		}, `entries[1]: there is no node "c1/haed" for the entries (did you mean c1/head?)
entries[2]: node "c1/worker" appears twice among the entries (remove it)
entries[3]: node "c2/head" is not of the service's cluster "c1" (name nodes of the cluster that serves)
entries[4]: there is no node "c1" for the entries (write CLUSTER/NODE: there are c1/head, c1/worker, c2/head, c2/worker)`},
		{"no entry", func(l *topology.Topology) { l.Entries = []topology.Ref{} },
			`entries: there is no entry (write a node, or remove the key)`},
		{"17 entries", func(l *topology.Topology) {
			for i := range 16 {
				l.Clusters[0].Nodes = append(l.Clusters[0].Nodes, fmt.Sprintf("n%d", i))
				l.Entries = append(l.Entries, topology.Ref(fmt.Sprintf("c1/n%d", i)))
			}
			l.Entries = append(l.Entries, "c1/worker")
		}, `entries: 17 entries are more than a load takes: 16 (remove some)`},
	} {
		if got := problems(c.spoil); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// problems of a lab that something has spoilt, as PATH: MESSAGE (HINT), one a line.
func problems(spoil func(*topology.Topology)) string {
	lab := twoClusters()
	spoil(lab)
	var all []string
	for _, p := range lab.Check() {
		all = append(all, fmt.Sprintf("%s: %s (%s)", p.Path, p.Message, p.Hint))
	}
	return strings.Join(all, "\n")
}
