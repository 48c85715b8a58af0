package system

import (
	"cmp"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
	"text/template"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

// Values is what templates see.
type Values struct {
	// Dir is the working directory, absolute.
	Dir      string
	Client   Place
	Service  Place
	Importer Place
	Exporter Place
	// Replicas serve the workload beside the service, at its port.
	Replicas []Place
	// Entries are where requests enter: those of the topology, or the service alone.
	// Entry is the one that an address is rendered for, in all else the first.
	Entries []Place
	Entry   Place
	// Nodes are all nodes, in the order of the topology.
	Nodes []Place
	// Node is the node that a step runs at, or that a file of nodeFiles is for; nil
	// at the machine itself and in all else.
	Node *Place
	// Kubernetes says that nodes are of that: what a system has in pods is called at their
	// nodes' ports.
	Kubernetes bool
	// Variant of the system, where it has some.
	Variant string
	// Congestion control of the nodes: a route that a system adds has to name it.
	Congestion string
	// Captured holds the outputs that earlier steps captured, by name.
	Captured map[string]string
}

// Place is a node in a role.
type Place struct {
	Node topology.Ref
	// Host is the node's host name, IP its address: that on the data network, or
	// the inner one of the system below.
	Host, IP string
	// Inner is the address that the node has by this system; empty where the system
	// gives none.
	Inner string
	// Site is the number of the node's cluster, Number that of the node in it; both
	// count from 1.
	Site, Number int
	// Port at which the node takes requests for the workload (the service's, the
	// replicas' and the entries').
	Port int
	// pod is HOST:PORT of the pod that serves at the node, on kubernetes once it does,
	// and where the service's cluster reaches it.
	pod string
}

// Endpoint is where the workload itself listens, as HOST:PORT: at the node, or on
// kubernetes in the node's pod, past kube-proxy. A pod of another cluster than the
// service's is called at its node.
func (p Place) Endpoint() string {
	return cmp.Or(p.pod, net.JoinHostPort(p.IP, strconv.Itoa(p.Port)))
}

// Place finds the values' place of a role that is one node.
func (v Values) Place(r Role) (Place, bool) {
	switch r {
	case Client:
		return v.Client, true
	case Service:
		return v.Service, true
	case Entry:
		return v.Entry, true
	case Importer:
		return v.Importer, true
	case Exporter:
		return v.Exporter, true
	}
	return Place{}, false
}

// ValuesFor takes the places from a topology. port is the workload's.
func ValuesFor(t *topology.Topology, dir string, port int) (Values, error) {
	v := Values{Dir: dir, Congestion: t.CongestionControl(), Nodes: places(t), Captured: map[string]string{}}
	client, err := t.Node(t.Client)
	if err != nil {
		return v, err
	}
	service, err := t.Node(t.Service)
	if err != nil {
		return v, err
	}
	importer, err := t.GatewayOf(client.Cluster)
	if err != nil {
		return v, err
	}
	exporter, err := t.GatewayOf(service.Cluster)
	if err != nil {
		return v, err
	}
	v.Client, v.Service, v.Importer, v.Exporter = v.of(client), v.of(service), v.of(importer), v.of(exporter)
	v.Service.Port = port
	if v.Replicas, err = v.placesOf(t, t.Replicas, port); err != nil {
		return v, err
	}
	if v.Entries, err = v.placesOf(t, t.Entries, port); err != nil {
		return v, err
	}
	if len(v.Entries) == 0 {
		v.Entries = []Place{v.Service}
	}
	v.Entry = v.Entries[0]
	return v, nil
}

// placesOf are the places of some nodes, with the workload's port.
func (v Values) placesOf(t *topology.Topology, nodes []topology.Ref, port int) (all []Place, err error) {
	for _, r := range nodes {
		node, err := t.Node(r)
		if err != nil {
			return nil, err
		}
		place := v.of(node)
		place.Port = port
		all = append(all, place)
	}
	return all, nil
}

func places(t *topology.Topology) []Place {
	var all []Place
	site, number, cluster := 0, 0, ""
	for _, n := range t.Nodes() {
		if n.Cluster != cluster {
			site, number, cluster = site+1, 0, n.Cluster
		}
		number++
		all = append(all, Place{Node: n.Ref(), Host: n.Host(), IP: n.Data.Addr().String(), Site: site, Number: number})
	}
	return all
}

// of is the place of a node, which is one of them.
func (v Values) of(n topology.Node) Place {
	for _, p := range v.Nodes {
		if p.Node == n.Ref() {
			return p
		}
	}
	return Place{}
}

// mapped has every place as f gives it.
func (v Values) mapped(f func(Place) Place) Values {
	v.Client, v.Service, v.Importer, v.Exporter = f(v.Client), f(v.Service), f(v.Importer), f(v.Exporter)
	v.Nodes, v.Replicas = each(v.Nodes, f), each(v.Replicas, f)
	v.Entries, v.Entry = each(v.Entries, f), f(v.Entry)
	return v
}

func each(places []Place, f func(Place) Place) []Place {
	all := make([]Place, len(places))
	for i, p := range places {
		all[i] = f(p)
	}
	return all
}

// above has the inner addresses as the nodes' own.
func (v Values) above() Values {
	return v.mapped(func(p Place) Place {
		if p.Inner != "" {
			p.IP, p.Inner = p.Inner, ""
		}
		return p
	})
}

// at has one place as the node.
func (v Values) at(p Place) Values {
	v.Node = &p
	return v
}

// places of a role: one, all nodes, or for the machine itself the zero Place.
func (v Values) places(r Role) []Place {
	if r == Each {
		return v.Nodes
	}
	place, _ := v.Place(r)
	return []Place{place}
}

// atRole has the place of a step as its node; the machine has none.
func (v Values) atRole(r Role, p Place) Values {
	if r == Machine {
		return v
	}
	return v.at(p)
}

// Path is the nodes that a request visits, of several entries by the first.
func (p *Plugin) Path(v Values) []topology.Ref {
	var path []topology.Ref
	for _, role := range p.how.Route {
		if place, ok := v.Place(role); ok {
			path = append(path, place.Node)
		}
	}
	return path
}

// within is what a request crosses inside of nodes, by node, where a pod is at the
// end of the way, and at its beginning as well if fromPod; those of the system are called at
// their nodes' ports.
func (p *Plugin) within(v Values, fromPod bool) map[topology.Ref][]string {
	inside := map[topology.Ref][]string{}
	if fromPod {
		inside[v.Client.Node] = []string{experiment.Pod}
	}
	for _, role := range p.how.Route {
		for _, step := range p.how.pods() {
			if place, _ := v.Place(role); step.At == role {
				inside[place.Node] = append(inside[place.Node], experiment.KubeProxy, experiment.Pod)
			}
		}
	}
	if !p.how.Endpoints {
		proxy, _ := v.Place(cmp.Or(p.how.Proxy, Service))
		inside[proxy.Node] = append(inside[proxy.Node], experiment.KubeProxy)
	}
	inside[v.Service.Node] = append(inside[v.Service.Node], experiment.Pod)
	return inside
}

// Render renders every template of the plug-in, files and steps, without
// carrying anything out: what a bad template or file name would break at run
// time, it breaks here. It returns the files by name.
func (p *Plugin) Render(v Values) (files map[string]string, err error) {
	if v, err = p.inside(v); err != nil {
		return nil, err
	}
	if files, err = p.render(v); err != nil {
		return nil, err
	}
	captured := map[string]string{}
	for name, value := range v.Captured {
		captured[name] = value
	}
	v.Captured = captured
	for _, ph := range p.how.phases() {
		for _, step := range ph.steps {
			for _, place := range v.places(step.At) {
				if _, err := p.expand(ph.name, step.text(), v.atRole(step.At, place)); err != nil {
					return nil, err
				}
			}
			if step.Capture != "" {
				captured[step.Capture] = ""
			}
		}
	}
	if p.how.Service != nil {
		if _, err := p.workloadService(v); err != nil {
			return nil, err
		}
	}
	if p.how.OneWay != nil {
		if _, err := p.oneWay(v); err != nil {
			return nil, err
		}
	}
	_, err = p.Addresses(v)
	return files, err
}

// oneWay is how it carries timed packets, rendered.
func (p *Plugin) oneWay(v Values) (o OneWay, err error) {
	o.Sends = p.how.OneWay.Sends
	if o.Talker, err = p.expand("talker", cmp.Or(p.how.OneWay.Talker, asIs), v); err != nil {
		return o, err
	}
	o.Listener, err = p.expand("listener", cmp.Or(p.how.OneWay.Listener, asIs), v)
	return o, err
}

// render renders the files.
func (p *Plugin) render(v Values) (map[string]string, error) {
	files := map[string]string{}
	for _, name := range p.how.Files {
		text, err := p.file(name, v)
		if err != nil {
			return nil, err
		}
		files[rendered(name)] = text
	}
	for _, name := range p.how.NodeFiles {
		for _, place := range v.Nodes {
			text, err := p.file(name, v.at(place))
			if err != nil {
				return nil, err
			}
			files[path.Join(place.Host, name)] = text
		}
	}
	return files, nil
}

func (p *Plugin) file(name string, v Values) (string, error) {
	text, err := p.read(name)
	if err != nil {
		return "", fmt.Errorf("system %s: %w", p.Name, err)
	}
	return p.expand(name, string(text), v)
}

// Address that the client calls, of several entries at the first; empty of a system
// that gives inner addresses.
func (p *Plugin) Address(v Values) (string, error) { return p.expand("address", p.how.Address, v) }

// Addresses that the client calls, one for each entry. They are the same where a
// system's address does not depend on the entry.
func (p *Plugin) Addresses(v Values) ([]string, error) {
	all := make([]string, len(v.Entries))
	for i, entry := range v.Entries {
		v.Entry = entry
		var err error
		if all[i], err = p.Address(v); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (p *Plugin) expand(name, text string, v Values) (string, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("system %s: %w", p.Name, err)
	}
	var out strings.Builder
	if err := t.Execute(&out, v); err != nil {
		return "", fmt.Errorf("system %s: %w", p.Name, err)
	}
	return out.String(), nil
}
