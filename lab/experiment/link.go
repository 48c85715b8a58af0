package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// Direction is one direction of a link: between two clusters or two nodes.
type Direction struct {
	From, To topology.Ref
	// Unit that loss, jitter and rate fall on; never empty.
	Unit impair.Unit
	impair.Impairment
	// Then are the stages after the first.
	Then []impair.Impairment
}

// Name of the direction, unique in a scenario: FROM>TO.
func (d Direction) Name() string { return string(d.From + ">" + d.To) }

func (d Direction) isAlso(o Direction) bool { return d.From == o.From && d.To == o.To }

// Stages of the direction, in the order in which a packet meets them.
func (d Direction) Stages() impair.Stages { return impair.Chain(d.Impairment, d.Then) }

// IsZero reports that no stage does anything.
func (d Direction) IsZero() bool { return d.Stages().IsZero() }

// Directions expands the links of the scenario, in the order of the file; a
// link between two ends gives two, each with the whole impairment.
func (s Scenario) Directions() []Direction {
	unit := s.Unit
	if unit == "" {
		unit = impair.UnitPacket
	}
	var all []Direction
	for _, l := range s.Links {
		from, to := l.ends()
		all = append(all, Direction{From: from, To: to, Unit: unit, Impairment: l.Impairment, Then: l.Then})
		if len(l.Between) == 2 {
			all = append(all, Direction{From: to, To: from, Unit: unit, Impairment: l.Impairment, Then: l.Then})
		}
	}
	return all
}

// Stages of each direction of the link.
func (l Link) Stages() impair.Stages { return impair.Chain(l.Impairment, l.Then) }

// IsZero reports that no stage does anything.
func (l Link) IsZero() bool { return l.Stages().IsZero() }

// Check says what is wrong with a stage, or with all of them, as an *impair.Error.
func (l Link) Check() error { return l.Stages().Check() }

func (l Link) ends() (from, to topology.Ref) {
	if len(l.Between) == 2 {
		return l.Between[0], l.Between[1]
	}
	return l.From, l.To
}

// impairment is what packets from one node to another meet: a direction that
// names the nodes wins over one that names their clusters, even where it does
// nothing, as in the emulator.
func (s Scenario) impairment(from, to topology.Ref) impair.Stages {
	fromCluster, _ := from.Split()
	toCluster, _ := to.Split()
	var found impair.Stages
	for _, d := range s.Directions() {
		switch {
		case d.From == from && d.To == to:
			return d.Stages()
		case string(d.From) == fromCluster && string(d.To) == toCluster:
			found = d.Stages()
		}
	}
	return found
}

// Hop is one step of a request from a node to another.
type Hop struct {
	From, To topology.Ref
	// Link is what the packets meet on the way there, stage by stage; empty where
	// nothing.
	Link impair.Stages
}

// What a request crosses inside of nodes, on kubernetes.
const (
	Pod       = "pod"
	KubeProxy = "kube-proxy"
)

// HopMap is the way of a request, from the client to the service.
type HopMap struct {
	Start topology.Ref
	Hops  []Hop
	// Within is what it crosses inside of nodes, in order, by node: Pod, KubeProxy.
	// Scenario.HopMap leaves it empty.
	Within map[topology.Ref][]string
}

// HopMap follows a path of nodes, in which equal neighbours count once, over
// the links of the scenario. An answer takes the same way back over the
// opposite directions.
func (s Scenario) HopMap(path []topology.Ref) HopMap {
	path = slices.Compact(slices.Clone(path))
	if len(path) == 0 {
		return HopMap{}
	}
	m := HopMap{Start: path[0]}
	for i := 1; i < len(path); i++ {
		m.Hops = append(m.Hops, Hop{From: path[i-1], To: path[i], Link: s.impairment(path[i-1], path[i])})
	}
	return m
}

// String prints the way on one line, what a link does behind the node that it
// leads to, and then what is crossed inside of that:
// "c2/head pod → c1/head [5ms ±1ms 0.08%] → c1/worker kube-proxy → pod".
func (m HopMap) String() string {
	text := string(m.Start) + m.inside(m.Start)
	for _, h := range m.Hops {
		text += " → " + string(h.To)
		if !h.Link.IsZero() {
			text += " [" + h.Link.String() + "]"
		}
		text += m.inside(h.To)
	}
	return text
}

// inside is what is crossed inside of a node, with a space before it.
func (m HopMap) inside(node topology.Ref) string {
	if len(m.Within[node]) == 0 {
		return ""
	}
	return " " + strings.Join(m.Within[node], " → ")
}

// links checks the ends, the directions and the impairment of every link.
func (c *checker) links(path string, s Scenario) {
	first := map[string]string{} // the path of the link that has a direction
	refs := c.e.Topology.Refs()
	for i, l := range s.Links {
		at := fmt.Sprintf("%s.links[%d]", path, i)
		var wrong *impair.Error
		if err := l.Check(); errors.As(err, &wrong) {
			c.add(at+"."+wrong.Field, wrong.Hint, "%s", wrong.Message)
		}
		if !c.shape(at, l) || !c.ends(at, l, refs) {
			continue
		}
		for _, d := range (Scenario{Links: []Link{l}}).Directions() {
			if other, twice := first[d.Name()]; twice {
				line, _ := c.e.document.At(other)
				c.add(at, fmt.Sprintf("the other stands on line %d; keep one of the two", line),
					"the direction %.80q is impaired twice", d.Name())
				break
			}
			first[d.Name()] = at
		}
	}
}

// shape checks that a link is written either as between or as from and to.
func (c *checker) shape(at string, l Link) bool {
	switch {
	case l.Between != nil && (l.From != "" || l.To != ""):
		c.add(at, "keep between for both directions, or from and to for one", "between stands beside from or to")
	case l.Between == nil && (l.From == "" || l.To == ""):
		c.add(at, "write between: [c1, c2] for both directions, or from: c1 and to: c2 for one", "the link lacks its ends")
	case l.Between != nil && len(l.Between) != 2:
		c.add(at+".between", "write for example between: [c1, c2]", "a link has 2 ends, not %d", len(l.Between))
	default:
		return true
	}
	return false
}

// ends checks that both ends of a link exist, differ and are of one kind.
func (c *checker) ends(at string, l Link, refs []string) bool {
	from, to := l.ends()
	paths := []string{at + ".from", at + ".to"}
	if l.Between != nil {
		paths = []string{at + ".between[0]", at + ".between[1]"}
	}
	good := true
	for i, end := range []topology.Ref{from, to} {
		if !slices.Contains(refs, string(end)) {
			c.add(paths[i], nearest.Hint(string(end), refs), "there is no cluster or node %.80q", string(end))
			good = false
		}
	}
	_, fromNode := from.Split()
	_, toNode := to.Split()
	switch {
	case !good:
	case from == to:
		c.add(paths[1], "name two ends that differ", "the link leads from %.80q to itself", string(from))
		good = false
	case (fromNode == "") != (toNode == ""):
		c.add(paths[1], "name two clusters, or two nodes as CLUSTER/NODE",
			"the link joins a cluster and a node: %.80q and %.80q", string(from), string(to))
		good = false
	}
	return good
}
