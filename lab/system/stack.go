package system

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/topology"
)

// Stack is what an experiment calls a system: plug-ins of which each sees the
// nodes by the addresses that those below it give them.
type Stack struct {
	// Name is those of the plug-ins, bottom first, with "+" between them.
	Name string
	// Plugins, bottom first; the last has the address that the client calls.
	Plugins []*Plugin
	// inPods says that the workload is served by pods, and requested from one.
	inPods bool
}

// StackError says why plug-ins do not make a stack.
type StackError struct{ Stack, Message, Hint string }

// Error names the stack, then what is wrong.
func (e *StackError) Error() string { return "system " + e.Stack + ": " + e.Message }

// Load reads the plug-ins of a stack, such as "upper" or "lower+upper", from a
// tree with one folder per system. The error wraps ErrUnknown, or is a
// *StackError or of a plug-in's file.
func Load(tree fs.FS, name string) (*Stack, error) {
	s := &Stack{Name: name}
	for _, part := range experiment.Parts(name) {
		folder, variant := experiment.Plugin(part)
		p, err := LoadPlugin(tree, folder)
		if err != nil {
			return nil, err
		}
		p.variant = variant
		s.Plugins = append(s.Plugins, p)
	}
	return s, s.check()
}

// checkVariant holds that a plug-in which has variants is one of them.
func (s *Stack) checkVariant(p *Plugin) error {
	switch {
	case len(p.Variants) == 0 && p.variant == "", slices.Contains(p.Variants, p.variant):
		return nil
	case len(p.Variants) == 0:
		return s.wrong("write "+p.Name, "%s has no variants", p.Name)
	default:
		return s.wrong("write "+p.Name+":"+p.Variants[0]+", or another of "+strings.Join(p.Variants, ", "), "%s has no variant %q", p.Name, p.variant)
	}
}

// WorkloadService is what the stack wants of the workload's Service: the last of its
// plug-ins that wants something.
func (s *Stack) WorkloadService(v Values) (WorkloadService, error) {
	layers, err := s.layers(v)
	if err != nil {
		return WorkloadService{}, err
	}
	for _, l := range slices.Backward(layers) {
		if l.how.Service != nil {
			return l.workloadService(l.values)
		}
	}
	return WorkloadService{}, nil
}

// workloadService is what the plug-in wants, rendered.
func (p *Plugin) workloadService(v Values) (w WorkloadService, err error) {
	w.Anywhere = p.how.Service.Anywhere
	for _, part := range []struct {
		to   *map[string]string
		from map[string]string
	}{{&w.Labels, p.how.Service.Labels}, {&w.Annotations, p.how.Service.Annotations}} {
		*part.to = map[string]string{}
		for key, text := range part.from {
			if (*part.to)[key], err = p.expand("service", text, v); err != nil {
				return w, err
			}
		}
	}
	return w, nil
}

// On has the stack run on a substrate: until then it is on hosts, or where it does run.
func (s *Stack) On(substrate string) error {
	for _, p := range s.Plugins {
		how := p.on(substrate)
		switch {
		case how == nil && substrate == experiment.SubstrateKubernetes:
			return s.wrong("run it on hosts, or say in its system.yaml, under kubernetes, how it runs there", "%s does not run on %s", p.Name, substrate)
		case how == nil:
			return s.wrong("run it on kubernetes, or say in its system.yaml, under hosts, how it runs there", "%s does not run on %s", p.Name, experiment.SubstrateHosts)
		}
		p.how = *how
	}
	s.inPods = substrate == experiment.SubstrateKubernetes
	return s.check()
}

// Balances says that what carries requests to the workload finds that by itself, whether or
// not it is there yet.
func (s *Stack) Balances() bool { return s.Plugins[len(s.Plugins)-1].Kind == KindBalancer }

// Scales says that the stack goes on when pods come and go: nil, or which plug-in
// knows those alone that served as it started.
func (s *Stack) Scales() error {
	for _, p := range s.Plugins {
		if p.how.Endpoints {
			return s.wrong("take a system that calls their Service, such as ingress-service, or leave this one out of kubernetes.autoscale.systems",
				"%s knows the pods that serve as it starts, and none that an autoscaler adds", p.Name)
		}
	}
	return nil
}

// wrong is an error about the stack.
func (s *Stack) wrong(hint, format string, args ...any) error {
	return &StackError{s.Name, fmt.Sprintf(format, args...), hint}
}

// check holds that one plug-in, the last, has the address that the client calls,
// and that kinds come once and in their order.
func (s *Stack) check() error {
	for i, p := range s.Plugins {
		if err := s.checkVariant(p); err != nil {
			return err
		}
		switch last := i == len(s.Plugins)-1; {
		case last && p.how.Address == "":
			return s.wrong("put a system above it that has an address: "+s.Name+"+SYSTEM",
				"%s gives nodes addresses, and none that a client calls", p.Name)
		case !last && p.how.Address != "":
			return s.wrong("name it last", "nothing stands above %s: it has the address that the client calls", p.Name)
		}
		if i == 0 {
			continue
		}
		below := s.Plugins[i-1]
		switch order := slices.Index(kinds, p.Kind) - slices.Index(kinds, below.Kind); {
		case order == 0:
			return s.wrong("leave one of them out", "%s and %s are both of the kind %s, of which a stack has one", below.Name, p.Name, p.Kind)
		case order < 0:
			return s.wrong("from the bottom the kinds are "+strings.Join(kinds, ", "), "%s is of the kind %s, which does not stand above %s", p.Name, p.Kind, below.Kind)
		}
	}
	return s.checkDaemons()
}

// checkDaemons holds that the control groups of two plug-ins have two names.
func (s *Stack) checkDaemons() error {
	owner := map[string]string{}
	for _, p := range s.Plugins {
		for _, name := range p.daemons() {
			if owner[name] != "" {
				return s.wrong("rename one of them", "%s and %s both have a daemon %q", owner[name], p.Name, name)
			}
			owner[name] = p.Name
		}
	}
	return nil
}

// layer is a plug-in in its stack, with the values that its templates see.
type layer struct {
	*Plugin
	values Values
}

// layers lists the plug-ins with their values, bottom first.
func (s *Stack) layers(v Values) ([]layer, error) {
	all := make([]layer, len(s.Plugins))
	dir := v.Dir
	v.Kubernetes = s.inPods
	for i, p := range s.Plugins {
		if v.Dir = dir; len(s.Plugins) > 1 {
			v.Dir = filepath.Join(dir, p.Name)
		}
		v.Captured, v.Variant = map[string]string{}, p.variant
		inside, err := p.inside(v)
		if err != nil {
			return nil, err
		}
		all[i] = layer{p, inside}
		v = inside.above()
	}
	return all, nil
}

// inside are the values with the inner addresses that the plug-in gives to nodes.
func (p *Plugin) inside(v Values) (Values, error) {
	if p.how.Inner == "" {
		return v, nil
	}
	inner, owner := map[topology.Ref]string{}, map[netip.Addr]topology.Ref{}
	for _, place := range v.Nodes {
		text, err := p.expand("inner", p.how.Inner, v.at(place))
		if err != nil {
			return v, err
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			return v, fmt.Errorf("system %s: inner address of %s: %w", p.Name, place.Node, err)
		}
		if other, twice := owner[address]; twice {
			return v, fmt.Errorf("system %s: %s and %s have the inner address %s", p.Name, other, place.Node, address)
		}
		inner[place.Node], owner[address] = address.String(), place.Node
	}
	return v.mapped(func(place Place) Place {
		place.Inner = inner[place.Node]
		return place
	}), nil
}

// top is the layer that the client calls.
func (s *Stack) top(v Values) (layer, error) {
	layers, err := s.layers(v)
	if err != nil {
		return layer{}, err
	}
	return layers[len(layers)-1], nil
}

// Render renders every template of the stack without carrying anything out, to
// find what is wrong with one.
func (s *Stack) Render(v Values) error {
	layers, err := s.layers(v)
	if err != nil {
		return err
	}
	for _, l := range layers {
		if _, err := l.Render(l.values); err != nil {
			return err
		}
	}
	return nil
}

// Path is the nodes that a request visits, of several entries by the first.
func (s *Stack) Path(v Values) []topology.Ref { return s.Plugins[len(s.Plugins)-1].Path(v) }

// Within is what a request of a cell crosses inside of nodes, in order, by node; nil
// on hosts.
func (s *Stack) Within(v Values, c experiment.Cell) map[topology.Ref][]string {
	if !s.inPods {
		return nil
	}
	return s.Plugins[len(s.Plugins)-1].within(v, c.FromPod())
}

// Address that the client calls, of several entries at the first.
func (s *Stack) Address(v Values) (string, error) {
	top, err := s.top(v)
	if err != nil {
		return "", err
	}
	return top.Address(top.values)
}

// CarryError says that a system does not let a protocol through.
type CarryError struct {
	System, Protocol string
	// Carries is what it does.
	Carries []string
}

// Error names both and what the system carries.
func (e *CarryError) Error() string {
	return fmt.Sprintf("system %s carries %s, not %s", e.System, strings.Join(e.Carries, ", "), e.Protocol)
}

// Check says what of a load the stack does not carry: what gets through all of
// its plug-ins does. The error joins a *CarryError for each protocol and plug-in.
func (s *Stack) Check(l experiment.Load) error {
	var wrong []error
	for _, p := range s.Plugins {
		wrong = append(wrong, p.refuses(l)...)
	}
	return errors.Join(wrong...)
}

// refuses are a *CarryError for each protocol of the load that the plug-in lacks.
func (p *Plugin) refuses(l experiment.Load) (wrong []error) {
	carries, asked := p.Carries, []string(l.Protocol)
	if len(carries) == 0 {
		carries = []string{experiment.ProtocolHTTP1}
	}
	if len(asked) == 0 {
		asked = []string{experiment.ProtocolHTTP1}
	}
	for _, protocol := range asked {
		below := protocol
		if _, broker := experiment.Broker(protocol); broker {
			below = experiment.ProtocolTCP
		}
		if !slices.Contains(carries, below) {
			wrong = append(wrong, &CarryError{System: p.Name, Protocol: protocol, Carries: carries})
		}
	}
	return wrong
}

// Need is what the stack takes of the machine's cores, with so many nodes.
func (s *Stack) Need(nodes int) (need experiment.Need) {
	for _, p := range s.Plugins {
		need.BusyLoops += p.how.BusyLoops
		for _, ph := range p.how.startPhases() {
			for _, step := range ph.steps {
				switch {
				case step.Install != "", step.Daemon != "" && step.At == Each:
					need.Processes += nodes
				case step.Daemon != "":
					need.Processes++
				}
			}
		}
	}
	return need
}

// Digest is the SHA-256, in hexadecimal, of all that a run takes from the folders
// of the plug-ins: their system.yaml and the files that they render.
func (s *Stack) Digest() (string, error) {
	sum := sha256.New()
	for _, p := range s.Plugins {
		for _, name := range slices.Concat([]string{manifest}, p.how.Files, p.how.NodeFiles) {
			data, err := p.read(name)
			if err != nil {
				return "", fmt.Errorf("digest of system %s: %w", p.Name, err)
			}
			_, _ = fmt.Fprintf(sum, "%q %d\n", name, len(data)) // a hash takes all
			_, _ = sum.Write(data)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
