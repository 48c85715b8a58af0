package topology

import (
	"fmt"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/nearest"
)

// nameMax bounds the name of a cluster or a node, in bytes: what an interface
// may be called (IFNAMSIZ less its NUL), so that a system's plug-in may call one
// after either; and two names and a hyphen still make a host name.
const nameMax = 15

// congestionMax is the kernel's TCP_CA_NAME_MAX less its NUL.
const congestionMax = 15

const nameHint = "write at most 15 lower-case letters, digits and hyphens, a letter first, no hyphen last"

// Problem is something that is wrong with a topology.
type Problem struct {
	// Path of the value in the topology, for example "clusters[1].nodes[0]".
	Path string
	// Message says what is wrong, Hint what to do.
	Message, Hint string
}

// Check says everything that is wrong with the topology, in its order.
func (t *Topology) Check() []Problem {
	var c check
	c.count(t)
	hosts := map[string]Ref{}
	clusters := map[string]int{}
	for i, cluster := range t.Clusters {
		path := fmt.Sprintf("clusters[%d]", i)
		if !c.name(path+".name", "cluster", cluster.Name) {
			continue
		}
		if first, twice := clusters[cluster.Name]; twice {
			c.add(path+".name", "choose another name", "cluster %q has the name of cluster %d", cluster.Name, first+1)
			continue
		}
		clusters[cluster.Name] = i
		c.nodes(path, cluster, hosts)
	}
	c.place(t, "service", t.Service)
	c.replicas(t)
	c.broken(t)
	c.entries(t)
	c.place(t, "client", t.Client)
	if t.Congestion != "" && !isWord(t.Congestion) {
		c.add("congestion", "write one word, for example cubic or bbr", "%q is no congestion control", clip(t.Congestion))
	}
	return c.problems
}

type check struct{ problems []Problem }

func (c *check) add(path, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (c *check) count(t *Topology) {
	nodes := 0
	for _, cluster := range t.Clusters {
		nodes += len(cluster.Nodes)
	}
	switch {
	case len(t.Clusters) == 0:
		c.add("clusters", "write for example {name: c1, nodes: [head, worker]}", "there is no cluster")
	case len(t.Clusters) > clustersMax:
		c.add("clusters", "remove some", "%d clusters are more than one machine takes: %d", len(t.Clusters), clustersMax)
	case nodes > nodesMax:
		c.add("clusters", "remove some", "%d nodes are more than one machine takes: %d", nodes, nodesMax)
	}
}

// nodes checks the nodes of one cluster. Hosts holds the host names so far:
// node b-c of cluster a and node c of cluster a-b would share theirs.
func (c *check) nodes(path string, cluster Cluster, hosts map[string]Ref) {
	if len(cluster.Nodes) == 0 {
		c.add(path+".nodes", "write for example nodes: [head, worker]", "cluster %q has no node", clip(cluster.Name))
	}
	for j, name := range cluster.Nodes {
		at := fmt.Sprintf("%s.nodes[%d]", path, j)
		if !c.name(at, "node", name) {
			continue
		}
		n := Node{Cluster: cluster.Name, Name: name}
		switch other, twice := hosts[n.Host()]; {
		case twice && other == n.Ref():
			c.add(at, "choose another name", "node %q appears twice in cluster %q", clip(name), clip(cluster.Name))
		case twice:
			c.add(at, "choose another name", "node %s would have the host name %s, as has %s", n.Ref(), n.Host(), other)
		default:
			hosts[n.Host()] = n.Ref()
		}
	}
	if cluster.Gateway != "" && !slices.Contains(cluster.Nodes, cluster.Gateway) {
		c.add(path+".gateway", nearest.Hint(cluster.Gateway, cluster.Nodes), "cluster %q has no node %q for its gateway", clip(cluster.Name), clip(cluster.Gateway))
	}
}

// replicas checks that each is a node of its own, where nothing else serves.
func (c *check) replicas(t *Topology) {
	serves := map[Ref]string{t.Service: "the service", t.Client: "the client"}
	for i, r := range t.Replicas {
		path := fmt.Sprintf("replicas[%d]", i)
		switch other, taken := serves[r]; {
		case !c.place(t, path, r):
		case taken:
			c.add(path, "name another node, or remove it", "node %q is that of %s already", clip(string(r)), other)
		default:
			serves[r] = "another replica"
		}
	}
}

// broken checks that each is a replica, and stands once: that of the service is asked
// whether it answers.
func (c *check) broken(t *Topology) {
	var replicas []string
	for _, r := range t.Replicas {
		replicas = append(replicas, string(r))
	}
	for i, r := range t.Broken {
		path := fmt.Sprintf("broken[%d]", i)
		switch {
		case !slices.Contains(t.Replicas, r):
			c.add(path, nearest.Hint(string(r), replicas), "node %q is none of the replicas", clip(string(r)))
		case slices.Index(t.Broken, r) < i:
			c.add(path, "remove it", "node %q appears twice", clip(string(r)))
		}
	}
}

// entries checks that each is a node of the service's cluster, and stands once.
func (c *check) entries(t *Topology) {
	switch {
	case t.Entries != nil && len(t.Entries) == 0:
		c.add("entries", "write a node, or remove the key", "there is no entry")
	case len(t.Entries) > entriesMax:
		c.add("entries", "remove some", "%d entries are more than a load takes: %d", len(t.Entries), entriesMax)
	}
	seen := map[Ref]bool{}
	home, _ := t.Service.Split()
	for i, r := range t.Entries {
		path := fmt.Sprintf("entries[%d]", i)
		cluster, _ := r.Split()
		switch {
		case !c.place(t, path, r):
		case seen[r]:
			c.add(path, "remove it", "node %q appears twice among the entries", clip(string(r)))
		case cluster != home:
			c.add(path, "name nodes of the cluster that serves", "node %q is not of the service's cluster %q", clip(string(r)), clip(home))
		}
		seen[r] = true
	}
}

// place checks that a node exists, where the service, a replica, an entry or the
// client lives, and reports whether it does.
func (c *check) place(t *Topology, path string, r Ref) bool {
	var known []string
	for _, n := range t.Nodes() {
		if n.Ref() == r {
			return true
		}
		known = append(known, n.String())
	}
	hint := nearest.Hint(string(r), known)
	if _, node := r.Split(); node == "" {
		hint = "write CLUSTER/NODE: " + hint
	}
	what, _, _ := strings.Cut(path, "[")
	c.add(path, hint, "there is no node %q for the %s", clip(string(r)), what)
	return false
}

func (c *check) name(path, kind, name string) bool {
	good := IsName(name)
	if !good {
		c.add(path, nameHint, "%s name %q is not valid", kind, clip(name))
	}
	return good
}

// IsName reports a DNS label (RFC 1035, lower case) of at most 15 bytes.
func IsName(s string) bool {
	return s != "" && len(s) <= nameMax && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" &&
		s[0] >= 'a' && s[0] <= 'z' && s[len(s)-1] != '-'
}

func isWord(s string) bool {
	return len(s) <= congestionMax && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// clip keeps an error readable where a name is not.
func clip(s string) string {
	if len(s) > 4*nameMax {
		return s[:4*nameMax] + "..."
	}
	return s
}
