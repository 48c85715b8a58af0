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

// check says the first thing that is wrong with a manifest, at its place.
func (p *Plugin) check(document *strict.Document, folder string) error {
	if p.Name != folder {
		return document.Errorf("name", "name it as its folder", "system %q lies in folder %q", p.Name, folder)
	}
	if !slices.Contains(kinds, p.Kind) {
		return document.Errorf("kind", nearest.Hint(p.Kind, kinds), "unknown kind %q", p.Kind)
	}
	for i, protocol := range p.Carries {
		if known := experiment.Protocols(); !slices.Contains(known, protocol) {
			return document.Errorf(fmt.Sprintf("carries[%d]", i), "protocols are "+strings.Join(known, ", "), "unknown protocol %q", protocol)
		}
	}
	for i, need := range p.Needs {
		at := fmt.Sprintf("needs[%d]", i)
		if need.Module == (need.Package != "") {
			return document.Errorf(at, "write package: NAME of Debian, or module: true", "the program %q comes from a package or a module, one of the two", need.Program)
		}
		if known := gobuild.Names(); need.Module && !slices.Contains(known, need.Program) {
			return document.Errorf(at+".program", nearest.Hint(need.Program, known), "no module is pinned for the program %q", need.Program)
		}
	}
	if (p.Hosts.Address == "") == (p.Hosts.Inner == "") {
		return document.Errorf("hosts", "write address for what the client calls, or inner for the addresses that nodes get",
			"a system has either address or inner")
	}
	if (p.Hosts.Address == "") != (len(p.Hosts.Route) == 0) {
		return document.Errorf("hosts", "a route names the roles that a request visits on its way through the address", "route and address go together")
	}
	for i, role := range p.Hosts.Route {
		if !slices.Contains(placeRoles, role) {
			return document.Errorf(fmt.Sprintf("hosts.route[%d]", i), roleHint(placeRoles), "unknown role %q", role)
		}
	}
	return p.checkSteps(document)
}

func (p *Plugin) checkSteps(document *strict.Document) error {
	roles := slices.Concat(placeRoles, []Role{Machine, Each})
	daemons := map[string]bool{}
	for _, ph := range p.Hosts.phases() {
		for i, step := range ph.steps {
			at := fmt.Sprintf("hosts.%s[%d]", ph.name, i)
			if !slices.Contains(roles, step.At) {
				return document.Errorf(at, roleHint(roles), "unknown role %q", step.At)
			}
			if forms := []string{step.Run, step.TCP, step.Reach}; len(slices.DeleteFunc(forms, func(s string) bool { return s == "" })) != 1 {
				return document.Errorf(at, "write one of the three", "a step has either run, tcp or reach")
			}
			if step.At == Each && step.Capture != "" {
				return document.Errorf(at, "capture at one node", "a step at each node has more than one output")
			}
			if step.Daemon != "" && daemons[step.Daemon] {
				return document.Errorf(at, "each has a log of its name", "two daemons are named %q", step.Daemon)
			}
			daemons[step.Daemon] = true
		}
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
