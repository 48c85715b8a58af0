package system

import (
	"fmt"
	"io/fs"
	"strings"
	"text/template"

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
	// Captured holds the outputs that earlier steps captured, by name.
	Captured map[string]string
}

// Place is a node in a role.
type Place struct {
	Node topology.Ref
	// Host is the node's host name, IP its address on the data network.
	Host, IP string
	// Port that the workload listens on (the service's alone).
	Port int
}

// Place finds the values' place of a role.
func (v Values) Place(r Role) (Place, bool) {
	switch r {
	case Client:
		return v.Client, true
	case Service:
		return v.Service, true
	case Importer:
		return v.Importer, true
	case Exporter:
		return v.Exporter, true
	}
	return Place{}, false
}

// ValuesFor takes the places from a topology. port is the workload's.
func ValuesFor(t *topology.Topology, dir string, port int) (Values, error) {
	v := Values{Dir: dir, Captured: map[string]string{}}
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
	v.Client, v.Service, v.Importer, v.Exporter = place(client), place(service), place(importer), place(exporter)
	v.Service.Port = port
	return v, nil
}

func place(n topology.Node) Place {
	return Place{Node: n.Ref(), Host: n.Host(), IP: n.Data.Addr().String()}
}

// Path is the nodes that a request visits.
func (p *Plugin) Path(v Values) []topology.Ref {
	var path []topology.Ref
	for _, role := range p.Hosts.Route {
		if place, ok := v.Place(role); ok {
			path = append(path, place.Node)
		}
	}
	return path
}

// Render renders every template of the plug-in, files and steps, without
// carrying anything out: what a bad template or file name would break at run
// time, it breaks here. It returns the files by name.
func (p *Plugin) Render(v Values) (files map[string]string, err error) {
	files = map[string]string{}
	for _, name := range p.Hosts.Files {
		text, err := fs.ReadFile(p.files, name)
		if err != nil {
			return nil, fmt.Errorf("system %s: %w", p.Name, err)
		}
		if files[name], err = p.expand(name, string(text), v); err != nil {
			return nil, err
		}
	}
	captured := map[string]string{}
	for name, value := range v.Captured {
		captured[name] = value
	}
	v.Captured = captured
	for _, ph := range append(p.Hosts.startPhases(), phase{"stop", p.Hosts.Stop}) {
		for _, step := range ph.steps {
			if _, err := p.expand(ph.name, step.Run+step.TCP, v); err != nil {
				return nil, err
			}
			if step.Capture != "" {
				captured[step.Capture] = ""
			}
		}
	}
	_, err = p.Address(v)
	return files, err
}

// Address that the client calls.
func (p *Plugin) Address(v Values) (string, error) { return p.expand("address", p.Hosts.Address, v) }

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
