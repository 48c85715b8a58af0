package system

import (
	"fmt"
	"slices"
	"strings"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/nearest"
	"skerry.dev/skerry/internal/strict"
	"skerry.dev/skerry/lab/experiment"
)

// labNames are the control groups of steps, of the load, of the link emulator, of what
// holds the namespaces, and of the workload, whose replicas have serviceNames with the
// host name behind it. Several loads at the same time
// have loadNames with a number behind it.
var labNames = []string{"step", "load", "links", "holders", "service"}

const (
	serviceNames = "service-"
	loadNames    = "load"
	digits       = "0123456789"
)

// check says the first thing that is wrong with a manifest, at its place.
func (p *Plugin) check(document *strict.Document, folder string) error {
	if p.Name != folder {
		return document.Errorf("name", "name it as its folder", "system %q lies in folder %q", p.Name, folder)
	}
	if !slices.Contains(kinds, p.Kind) {
		return document.Errorf("kind", nearest.Hint(p.Kind, kinds), "unknown kind %q", p.Kind)
	}
	for i, protocol := range p.Carries {
		if known := experiment.Carried(); !slices.Contains(known, protocol) {
			return document.Errorf(fmt.Sprintf("carries[%d]", i), "protocols are "+strings.Join(known, ", "), "unknown protocol %q", protocol)
		}
	}
	if err := p.checkNeeds(document); err != nil {
		return err
	}
	if p.Hosts == nil && p.Kubernetes == nil {
		return document.Errorf("", "add hosts: or kubernetes:, with how it runs there", "system %q runs nowhere", p.Name)
	}
	for _, on := range []string{experiment.SubstrateHosts, experiment.SubstrateKubernetes} {
		s := p.on(on)
		if s == nil {
			continue
		}
		if err := s.check(document, on); err != nil {
			return err
		}
		if carries := slices.Contains(p.Carries, experiment.ProtocolOneWay); s.OneWay != nil && !carries || s.OneWay == nil && carries && s.Address != "" {
			return document.Errorf(on, "oneway: {sends: spin}, beside carries: [oneway]", "a system that carries oneway says how packets are sent, and no other does")
		}
		if err := p.checkPods(document, *s, on); err != nil {
			return err
		}
	}
	return nil
}

// checkNeeds says the first thing that is wrong with what it needs of the machine.
func (p *Plugin) checkNeeds(document *strict.Document) error {
	for i, need := range p.Needs {
		at := fmt.Sprintf("needs[%d]", i)
		from := 0
		for _, is := range []bool{need.Package != "", need.Module, need.Own} {
			if is {
				from++
			}
		}
		if from != 1 {
			return document.Errorf(at, "write package: NAME of Debian, module: true, or own: true for one of Skerry's", "the program %q comes from a package, from a module or with Skerry, one of the three", need.Program)
		}
		if known := gobuild.Names(); need.Module && !slices.Contains(known, need.Program) {
			return document.Errorf(at+".program", nearest.Hint(need.Program, known), "no module is pinned for the program %q", need.Program)
		}
	}
	if i := slices.Index(p.Qdiscs, ""); i >= 0 {
		return document.Errorf(fmt.Sprintf("qdiscs[%d]", i), "write its kind, as tc does: etf", "a queueing discipline has no name")
	}
	return nil
}

// check says the first thing that is wrong with a substrate, which stands below a
// key.
func (s Substrate) check(document *strict.Document, key string) error {
	if (s.Address == "") == (s.Inner == "") {
		return document.Errorf(key, "write address for what the client calls, or inner for the addresses that nodes get",
			"a system has either address or inner")
	}
	if (s.Address == "") != (len(s.Route) == 0) {
		return document.Errorf(key, "a route names the roles that a request visits on its way through the address", "route and address go together")
	}
	for i, role := range s.Route {
		if !slices.Contains(wayRoles, role) {
			return document.Errorf(fmt.Sprintf("%s.route[%d]", key, i), roleHint(wayRoles), "unknown role %q", role)
		}
	}
	if s.Proxy != "" && !slices.Contains(wayRoles, s.Proxy) {
		return document.Errorf(key+".proxy", roleHint(wayRoles), "unknown role %q", s.Proxy)
	}
	if s.OneWay != nil && !slices.Contains(sendings, s.OneWay.Sends) {
		return document.Errorf(key+".oneway", "a talker's ways are "+strings.Join(sendings, ", "), "packets are not sent by %q", s.OneWay.Sends)
	}
	return s.checkSteps(document, key)
}

func (s Substrate) checkSteps(document *strict.Document, key string) error {
	roles := slices.Concat(placeRoles, []Role{Machine, Each})
	daemons := map[string]bool{}
	for _, ph := range s.phases() {
		for i, step := range ph.steps {
			at := fmt.Sprintf("%s.%s[%d]", key, ph.name, i)
			if !slices.Contains(roles, step.At) {
				return document.Errorf(at, roleHint(roles), "unknown role %q", step.At)
			}
			if forms := []string{step.Run, step.TCP, step.Reach, step.Install}; len(slices.DeleteFunc(forms, func(s string) bool { return s == "" })) != 1 {
				return document.Errorf(at, "write one of the four", "a step has either run, tcp, reach or install")
			}
			if step.At == Each && step.Capture != "" {
				return document.Errorf(at, "capture at one node", "a step at each node has more than one output")
			}
			if step.Daemon != "" && daemons[step.Daemon] {
				return document.Errorf(at, "each has a log of its name", "two daemons are named %q", step.Daemon)
			}
			daemons[step.Daemon] = true
			if err := step.checkDaemon(document, at); err != nil {
				return err
			}
			if err := s.checkInstall(document, step, key, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDaemon holds that a daemon is a command that goes on, under a name that is
// not the lab's own.
func (s Step) checkDaemon(document *strict.Document, at string) error {
	switch {
	case s.Daemon == "":
		return nil
	case s.Run == "" && s.Install == "":
		return document.Errorf(at, "write run beside daemon, and the probe as a step behind it", "the daemon %q has no command", s.Daemon)
	case s.Capture != "":
		return document.Errorf(at, "capture by a step that ends", "the output of the daemon %q goes to its log", s.Daemon)
	case slices.Contains(labNames, s.Daemon), strings.HasPrefix(s.Daemon, serviceNames), strings.TrimRight(s.Daemon, digits) == loadNames:
		return document.Errorf(at, "the lab's own control groups have that name", "a daemon cannot be named %q", s.Daemon)
	}
	return nil
}

// checkInstall holds that what is installed is a file of the system, in a cluster.
func (s Substrate) checkInstall(document *strict.Document, step Step, key, at string) error {
	switch {
	case step.Install == "":
		return nil
	case key != experiment.SubstrateKubernetes:
		return document.Errorf(at, "write the step below kubernetes", "nothing is installed on %s", key)
	case step.Daemon == "" || step.Pod != nil || !slices.Contains(placeRoles, step.At):
		return document.Errorf(at, "write daemon beside it, no pod, and a role that is one node of the cluster", "what is installed is a daemon of a cluster")
	case !slices.ContainsFunc(s.Files, func(name string) bool { return rendered(name) == step.Install }):
		return document.Errorf(at+".install", "add it to files", "%q is no file of the system", step.Install)
	}
	return nil
}

func roleHint(roles []Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return "roles are " + strings.Join(names, ", ")
}
