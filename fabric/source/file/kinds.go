package file

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/internal/strict"
)

// defaultNamespace is that of objects that name none, as in Kubernetes.
const defaultNamespace = "default"

// label is a name of Kubernetes: a DNS label (RFC 1123 section 2.1).
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func isLabel(name string) bool { return label.MatchString(name) }

// peer is another cluster.
func (r *reader) peer(name string, data []byte) {
	var p struct {
		object `yaml:",inline"`
		Spec   struct {
			// Gateways that can be called, as HOST:PORT.
			Gateways []string `yaml:"gateways,omitempty"`
			// Transport is native, the default, or httpconnect.
			Transport string `yaml:"transport,omitempty"`
			// Reverse has connections opened from here for what the peer calls, where it
			// cannot open any itself.
			Reverse bool `yaml:"reverse,omitempty"`
			// Metered links are not taught their path by bytes for nobody.
			Metered bool `yaml:"metered,omitempty"`
			// Bandwidth bounds all its streams together, each way: 100mbit.
			Bandwidth quantity.Rate `yaml:"bandwidth,omitempty"`
		} `yaml:"spec"`
	}
	d, ok := r.decode(name, data, &p, &p.object)
	if !ok {
		return
	}
	r.addresses(d, "spec.gateways", p.Spec.Gateways)
	known := snapshot.Transports()
	if p.Spec.Transport == "" {
		p.Spec.Transport = known[0]
	}
	if !slices.Contains(known, p.Spec.Transport) {
		r.fail(d.Errorf("spec.transport", nearest.Hint(p.Spec.Transport, known), "no transport %q", p.Spec.Transport))
	}
	switch {
	case p.Spec.Reverse && p.Spec.Transport != snapshot.Native:
		r.fail(d.Errorf("spec.reverse", "use the transport native", "%s opens no connections for a peer", p.Spec.Transport))
	case p.Spec.Reverse && len(p.Spec.Gateways) == 0:
		r.fail(d.Errorf("spec.reverse", "name them in spec.gateways", "there are no gateways to open connections to"))
	}
	r.into.Peers = append(r.into.Peers, snapshot.Peer{
		Name: p.Metadata.Name, Gateways: p.Spec.Gateways, Transport: p.Spec.Transport,
		Reverse: p.Spec.Reverse, Metered: p.Spec.Metered, Bandwidth: int64(p.Spec.Bandwidth),
	})
}

// port of a service.
type port struct {
	Port     uint16 `yaml:"port"`
	Protocol string `yaml:"protocol,omitempty"`
}

// target is the port of an object's service.
func (r *reader) target(d *strict.Document, path string, o *object, p port) transport.Target {
	protocols := map[string]string{"": transport.TCP, "TCP": transport.TCP, "UDP": transport.UDP}
	protocol, known := protocols[p.Protocol]
	if !known {
		r.fail(d.Errorf(path+".protocol", nearest.Hint(p.Protocol, []string{"TCP", "UDP"}), "no protocol %q", p.Protocol))
	}
	if p.Port == 0 {
		r.fail(d.Errorf(path+".port", "write 1 to 65535", "0 is no port"))
	}
	return transport.Target{Namespace: namespace(o), Name: o.Metadata.Name, Port: p.Port, Protocol: protocol}
}

func namespace(o *object) string {
	if o.Metadata.Namespace == "" {
		return defaultNamespace
	}
	return o.Metadata.Namespace
}

// proxyV2 is the version of the PROXY protocol that is spoken.
const proxyV2 = "v2"

// export is a service that peers may call.
func (r *reader) export(name string, data []byte) {
	var e struct {
		object `yaml:",inline"`
		Spec   struct {
			Ports []struct {
				port `yaml:",inline"`
				// Backends are what serves it, as HOST:PORT.
				Backends []string `yaml:"backends"`
				// ProxyProtocol is v2 where they are to be told who calls.
				ProxyProtocol string `yaml:"proxyProtocol,omitempty"`
			} `yaml:"ports"`
		} `yaml:"spec"`
	}
	d, ok := r.decode(name, data, &e, &e.object)
	if !ok {
		return
	}
	for i, p := range e.Spec.Ports {
		path := at("spec.ports", i)
		t := r.target(d, path, &e.object, p.port)
		if r.into.Export(t) != nil {
			r.fail(d.Errorf(path+".port", "remove one", "%s is exported already", t))
		}
		if len(p.Backends) == 0 {
			r.fail(d.Errorf(path+".backends", "write a list of HOST:PORT", "nothing serves %s", t))
		}
		r.addresses(d, path+".backends", p.Backends)
		if p.ProxyProtocol != "" && p.ProxyProtocol != proxyV2 {
			r.fail(d.Errorf(path+".proxyProtocol", "write "+proxyV2+", or remove it", "no version %q of the PROXY protocol", p.ProxyProtocol))
		}
		r.into.Exports = append(r.into.Exports, snapshot.Export{Target: t, Backends: p.Backends, ProxyProtocol: p.ProxyProtocol == proxyV2})
	}
}

// When a client's connection to an import is taken for one: at once, or when the service
// has accepted it.
const (
	acceptEarly     = "early"
	acceptConfirmed = "confirmed"
)

// importOf is a service of peers that local clients may call.
func (r *reader) importOf(name string, data []byte) {
	var o struct {
		object `yaml:",inline"`
		Spec   struct {
			// From names the peers that export it.
			From []string `yaml:"from"`
			// Accept is early, the default, or confirmed.
			Accept string `yaml:"accept,omitempty"`
			Ports  []struct {
				port `yaml:",inline"`
				// Name is the port's in DNS.
				Name string `yaml:"name,omitempty"`
				// Listen are the addresses of this gateway where it is called.
				Listen []string `yaml:"listen"`
			} `yaml:"ports"`
		} `yaml:"spec"`
	}
	d, ok := r.decode(name, data, &o, &o.object)
	if !ok {
		return
	}
	for i, p := range o.Spec.Ports {
		path := at("spec.ports", i)
		one := snapshot.Import{
			Target: r.target(d, path, &o.object, p.port), PortName: p.Name,
			From: o.Spec.From, Confirm: o.Spec.Accept == acceptConfirmed,
		}
		if p.Name != "" && !isLabel(p.Name) {
			r.fail(d.Errorf(path+".name", "write up to 63 of a-z, 0-9 and -", "%q is not a name", p.Name))
		}
		one.Listen = r.listens(d, path+".listen", name, one.Target, p.Listen)
		r.into.Imports = append(r.into.Imports, one)
	}
	if accepts := []string{acceptEarly, acceptConfirmed}; o.Spec.Accept != "" && !slices.Contains(accepts, o.Spec.Accept) {
		r.fail(d.Errorf("spec.accept", nearest.Hint(o.Spec.Accept, accepts), "no way %q to accept", o.Spec.Accept))
	}
	if len(o.Spec.From) == 0 {
		r.fail(d.Errorf("spec.from", "name the clusters that export it", "%s comes from nowhere", o.Metadata.Name))
	}
	r.later = append(r.later, func() {
		for i, from := range o.Spec.From {
			if r.into.Peer(from) == nil {
				r.fail(d.Errorf(at("spec.from", i), nearest.Hint(from, r.peers()), "no peer %q", from))
			}
		}
	})
}

// listens reads where an import is called. Of two at one address clients would reach whichever
// happened to be first.
func (r *reader) listens(d *strict.Document, path, name string, t transport.Target, list []string) (all []netip.AddrPort) {
	for k, text := range list {
		path := at(path, k)
		address, err := netip.ParseAddrPort(text)
		if err != nil {
			r.fail(d.Errorf(path, "write ADDRESS:PORT, with an IPv6 address in brackets", "%q is no address with a port", text))
			continue
		}
		if address.Port() == 0 {
			r.fail(d.Errorf(path, "write 1 to 65535", "0 is no port"))
			continue
		}
		key := listenKey{t.Protocol, netip.AddrPortFrom(address.Addr().Unmap(), address.Port())}
		if owner, taken := r.listeners[key]; taken {
			r.fail(d.Errorf(path, "remove one, or listen at another", "%s is the import's %s already", text, owner))
			continue
		}
		line, _ := d.At(path)
		r.listeners[key] = fmt.Sprintf("%s in %s:%d", t, name, line)
		all = append(all, address)
	}
	return all
}

// listenKey is where clients call.
type listenKey struct {
	protocol string
	at       netip.AddrPort
}

func (r *reader) peers() (names []string) {
	for _, p := range r.into.Peers {
		names = append(names, p.Name)
	}
	return names
}

// selector is one of Kubernetes' form.
type selector struct {
	MatchLabels      map[string]string `yaml:"matchLabels,omitempty"`
	MatchExpressions []struct {
		Key      string   `yaml:"key"`
		Operator string   `yaml:"operator"`
		Values   []string `yaml:"values,omitempty"`
	} `yaml:"matchExpressions,omitempty"`
}

// priorityMax is the last of the priorities, as in Kubernetes' AdminNetworkPolicy.
const (
	priorityMax     = 1000
	priorityDefault = 500
)

// policy says who may call what.
func (r *reader) policy(name string, data []byte) {
	var o struct {
		object `yaml:",inline"`
		Spec   struct {
			Action     string     `yaml:"action"`
			Privileged bool       `yaml:"privileged,omitempty"`
			Priority   *int       `yaml:"priority,omitempty"`
			From       []selector `yaml:"from"`
			To         []selector `yaml:"to"`
		} `yaml:"spec"`
	}
	d, ok := r.decode(name, data, &o, &o.object)
	if !ok {
		return
	}
	p := policy.Policy{
		Name: o.Metadata.Name, Deny: o.Spec.Action == "Deny", Privileged: o.Spec.Privileged, Priority: priorityDefault,
		From: r.selectors(d, "spec.from", o.Spec.From), To: r.selectors(d, "spec.to", o.Spec.To),
	}
	if o.Spec.Priority != nil {
		p.Priority = *o.Spec.Priority
	}
	if actions := []string{"Allow", "Deny"}; !slices.Contains(actions, o.Spec.Action) {
		r.fail(d.Errorf("spec.action", nearest.Hint(o.Spec.Action, actions), "no action %q", o.Spec.Action))
	}
	if p.Priority < 0 || p.Priority > priorityMax {
		r.fail(d.Errorf("spec.priority", "write 0 to "+strconv.Itoa(priorityMax), "no priority %d", p.Priority))
	}
	r.into.Policies = append(r.into.Policies, p)
}

func (r *reader) selectors(d *strict.Document, path string, list []selector) (all []policy.Selector) {
	if len(list) == 0 {
		r.fail(d.Errorf(path, "write [{}] for everything", "it selects nothing"))
	}
	for i, s := range list {
		one := policy.Selector{}
		for key, value := range s.MatchLabels {
			one = append(one, policy.Requirement{Key: key, Operator: policy.In, Values: []string{value}})
		}
		slices.SortFunc(one, func(a, b policy.Requirement) int { return strings.Compare(a.Key, b.Key) })
		for k, e := range s.MatchExpressions {
			at := at(at(path, i)+".matchExpressions", k)
			operators := []string{string(policy.In), string(policy.NotIn), string(policy.Exists), string(policy.DoesNotExist)}
			compares := e.Operator == operators[0] || e.Operator == operators[1]
			switch {
			case !slices.Contains(operators, e.Operator):
				r.fail(d.Errorf(at+".operator", nearest.Hint(e.Operator, operators), "no operator %q", e.Operator))
			case compares && len(e.Values) == 0:
				r.fail(d.Errorf(at, "write values: [VALUE, …]", "%s compares with nothing", e.Operator))
			case !compares && len(e.Values) > 0:
				r.fail(d.Errorf(at+".values", "remove them", "%s takes no values", e.Operator))
			}
			one = append(one, policy.Requirement{Key: e.Key, Operator: policy.Operator(e.Operator), Values: e.Values})
		}
		all = append(all, one)
	}
	return all
}

// addresses holds texts to the form HOST:PORT.
func (r *reader) addresses(d *strict.Document, path string, list []string) {
	for i, text := range list {
		host, number, err := net.SplitHostPort(text)
		n, wrong := strconv.ParseUint(number, 10, 16)
		if err != nil || host == "" || wrong != nil || n == 0 {
			r.fail(d.Errorf(at(path, i), "write HOST:PORT, with an IPv6 address in brackets", "%q is no host with a port", text))
		}
	}
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
