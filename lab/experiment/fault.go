package experiment

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/topology"
)

// Fault is what an event has go wrong, in the words of 'skerry fault': one of its keys,
// and For beside one that lasts.
type Fault struct {
	// Freeze stops the processes of a node, or of NODE:PROCESS that one, where they are.
	Freeze string `yaml:"freeze,omitempty" json:"freeze,omitempty" jsonschema:"oneof_required=freeze,example=c1/worker"`
	// Kill takes a node off its networks and ends its processes; of NODE:PROCESS it ends
	// that one, which does not come back.
	Kill string `yaml:"kill,omitempty" json:"kill,omitempty" jsonschema:"oneof_required=kill,example=c1/worker:haproxy"`
	// Reboot has a node of a Kubernetes cluster lose its power and boot at once.
	Reboot topology.Ref `yaml:"reboot,omitempty" json:"reboot,omitempty" jsonschema:"oneof_required=reboot"`
	// StopPlane ends the control plane of a Kubernetes cluster.
	StopPlane topology.Ref `yaml:"stop-plane,omitempty" json:"stop-plane,omitempty" jsonschema:"oneof_required=stop-plane"`
	// Evict has a pod go, or all pods of a workload, as from a node that is drained:
	// CLUSTER/NAMESPACE/NAME.
	Evict string `yaml:"evict,omitempty" json:"evict,omitempty" jsonschema:"oneof_required=evict,example=c1/default/service"`
	// For is how long it lasts, by default until the load ends.
	For quantity.Duration `yaml:"for,omitempty" json:"for,omitempty"`
}

// Verb is a word of 'skerry fault', and a key of an event.
type Verb string

// Verbs of events.
const (
	VerbFreeze    Verb = "freeze"
	VerbKill      Verb = "kill"
	VerbReboot    Verb = "reboot"
	VerbStopPlane Verb = "stop-plane"
	VerbEvict     Verb = "evict"
)

// deed is a verb and what it befalls.
type deed struct {
	verb Verb
	of   string
}

// deeds are what the fault's keys say: of a valid one exactly one.
func (f Fault) deeds() (all []deed) {
	for _, d := range []deed{
		{VerbFreeze, f.Freeze}, {VerbKill, f.Kill}, {VerbReboot, string(f.Reboot)}, {VerbStopPlane, string(f.StopPlane)}, {VerbEvict, f.Evict},
	} {
		if d.of != "" {
			all = append(all, d)
		}
	}
	return all
}

// Deed is what goes wrong, and with what: "freeze" and "c1/worker"; both are empty
// where the event is of a link.
func (f Fault) Deed() (verb Verb, of string) {
	if all := f.deeds(); len(all) > 0 {
		return all[0].verb, all[0].of
	}
	return "", ""
}

// Words are the fault as the file has it: "freeze c1/worker".
func (f Fault) Words() string {
	verb, of := f.Deed()
	return string(verb) + " " + of
}

// Victim of a freeze, a kill or a reboot: a node, and the process where it is one alone.
func (f Fault) Victim() (node topology.Ref, process string) {
	_, of := f.Deed()
	name, process, _ := strings.Cut(of, ":")
	return topology.Ref(name), process
}

// lasts says that the fault is in force for a time.
func (f Fault) lasts() bool {
	_, process := f.Victim()
	switch verb, _ := f.Deed(); verb {
	case VerbFreeze, VerbStopPlane:
		return true
	case VerbKill:
		return process == ""
	}
	return false
}

// Faults are the events of the timeline that are no changes of links, in the order of
// their times.
func (s Scenario) Faults() (all []Event) {
	for _, e := range s.Timeline {
		if verb, _ := e.Deed(); verb != "" {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return all
}

// fault checks an event that has a key of a fault, and says whether all is well.
func (c *checker) fault(at string, e Event) bool {
	before := len(c.errors.List) + c.errors.Dropped
	deeds := e.deeds()
	switch {
	case len(deeds) == 0:
		c.add(at+".for", "name a fault beside it; a link does what an event says until the next one", "for is how long a fault lasts, and there is none")
		return false
	case len(deeds) > 1:
		c.add(at, "write an event for each", "%s and %s stand in one event", deeds[0].verb, deeds[1].verb)
		return false
	case e.Down || !reflect.ValueOf(e.Link).IsZero():
		c.add(at, "write an event for each", "%s stands beside what a link does", deeds[0].verb)
		return false
	}
	path := at + "." + string(deeds[0].verb)
	within(c, at+".for", []quantity.Duration{e.For}, 0, timeMax)
	c.undone(at+".for", e)
	switch verb, of := e.Deed(); {
	case verb != VerbFreeze && verb != VerbKill && !c.knowsKubernetes(path, verb, of):
	case verb == VerbStopPlane:
		c.clusterOf(path, of)
	case verb == VerbEvict:
		c.evicted(path, of)
	default:
		c.victim(path, of, verb != VerbReboot)
	}
	return len(c.errors.List)+c.errors.Dropped == before
}

// undone checks that what is for a time has an end.
func (c *checker) undone(path string, e Event) {
	if e.For == 0 || e.lasts() {
		return
	}
	switch verb, _ := e.Deed(); verb {
	case VerbKill:
		c.add(path, "leave for out, or kill its node", "a process that was killed does not come back")
	case VerbReboot:
		c.add(path, fmt.Sprintf("write kill: %.80s with for, and it boots after that time", e.Reboot), "a reboot takes as long as it takes")
	default:
		c.add(path, "leave for out: what made the pods makes others", "an eviction has nothing to undo")
	}
}

// knowsKubernetes wants the substrate that a fault is of. One that there is not is
// told elsewhere.
func (c *checker) knowsKubernetes(path string, verb Verb, of string) bool {
	if c.e.Substrate != "" && c.e.Substrate != SubstrateHosts {
		return true
	}
	hint := "add substrate: kubernetes, or remove the event"
	if verb == VerbReboot {
		hint = fmt.Sprintf("write kill: %.80s with for, or add substrate: kubernetes", of)
	}
	c.add(path, hint, "%s is a fault of Kubernetes, and here nodes are hosts", verb)
	return false
}

// victim checks the node that a fault befalls, or where it may be one of its processes
// that one. The load measures what a fault does, and cannot if it befalls itself.
func (c *checker) victim(path, of string, processes bool) {
	var known []string
	for _, n := range c.e.Topology.Nodes() {
		known = append(known, n.String())
	}
	node, process, named := strings.Cut(of, ":")
	switch {
	case named && !processes:
		c.add(path, "write NODE alone", "a process such as %.80q does not boot", of)
	case !slices.Contains(known, node):
		c.add(path, nearest.Hint(node, known), "there is no node %.80q", node)
	case named && process == "":
		c.add(path, "write NODE, or NODE:PROCESS", "%.80q names no process", of)
	case node == string(c.e.Topology.Client) && (process == "" || sends(process)):
		c.add(path, "name another node, or a process that sends no requests", "the load runs at %s, and would be the victim", node)
	}
}

// loadName is what the lab calls the process, and the Job, that sends the requests.
const loadName = "load"

// sends says that a process is the load, by its name or by that of its program. Of
// several processes the others have numbers behind the name.
func sends(process string) bool {
	return strings.TrimRight(process, "0123456789") == loadName ||
		slices.Contains(append(Tools(), "skerry-agent", "java"), process)
}

func (c *checker) clusterOf(path, name string) bool {
	var known []string
	for _, cluster := range c.e.Topology.Clusters {
		known = append(known, cluster.Name)
	}
	if !slices.Contains(known, name) {
		c.add(path, nearest.Hint(name, known), "there is no cluster %.80q", name)
		return false
	}
	return true
}

// evicted checks CLUSTER/NAMESPACE/NAME, the load's own pod apart.
func (c *checker) evicted(path, of string) {
	parts := strings.Split(of, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		c.add(path, "write CLUSTER/NAMESPACE/NAME, such as c1/default/service", "%.80q names no pod or workload", of)
		return
	}
	client, _ := c.e.Topology.Client.Split()
	switch {
	case !c.clusterOf(path, parts[0]):
	case parts[0] == client && parts[1] == "default" && (parts[2] == loadName || strings.HasPrefix(parts[2], loadName+"-")):
		c.add(path, "name another pod", "the load runs in %.80s, and would be the victim", of)
	}
}

// spell is the time in which a fault has a node to itself.
type spell struct {
	path string
	deed
	node        topology.Ref
	from, until quantity.Duration
}

// spellOf a valid fault. The control plane that stops, or is asked to evict, is at the
// first node of its cluster.
func (c *checker) spellOf(path string, e Event) spell {
	verb, of := e.Deed()
	s := spell{path: path, deed: deed{verb, of}, from: e.At, until: e.At}
	s.node, _ = e.Victim()
	if verb == VerbStopPlane || verb == VerbEvict {
		name, _ := s.node.Split()
		for _, cluster := range c.e.Topology.Clusters {
			if cluster.Name == name && len(cluster.Nodes) > 0 {
				s.node = topology.Ref(name + "/" + cluster.Nodes[0])
			}
		}
	}
	if e.lasts() {
		if s.until = math.MaxInt64; e.For > 0 {
			s.until = e.At + e.For
		}
	}
	return s
}

// alone refuses a fault that happens to a node while another one does: which of them
// would have undone the other?
func (c *checker) alone(spells []spell) {
	slices.SortStableFunc(spells, func(a, b spell) int { return cmp.Compare(a.from, b.from) })
	last := map[topology.Ref]spell{} // that ends last
	for _, s := range spells {
		other, before := last[s.node]
		evictions := s.verb == VerbEvict && other.verb == VerbEvict && s.of != other.of
		if before && (s.from < other.until || s.from == other.from) && !evictions {
			line, _ := c.e.document.At(other.path)
			c.add(s.path, fmt.Sprintf("the other stands on line %d; have one after the other", line),
				"%s %.80s falls on %s while %s %.80s does", s.verb, s.of, s.node, other.verb, other.of)
		}
		if !before || s.until > other.until {
			last[s.node] = s
		}
	}
}
