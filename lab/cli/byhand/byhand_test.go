package byhand

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/console"
	"skerry.dev/skerry/lab/cli/verb"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// demo is a lab that is not up.
func demo() *host.Lab {
	lab := &host.Lab{}
	lab.Name = "demo"
	lab.Topology = topology.Topology{Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head"}}}}
	return lab
}

// wrong checks that an error is of usage, with these words and this hint.
func wrong(t *testing.T, err error, want, hint string) {
	t.Helper()
	if _, usage := errors.AsType[console.UsageError](err); !usage || !strings.Contains(fmt.Sprint(err), want) || !strings.Contains(verb.Hint(err), hint) {
		t.Errorf("got %v, hint %q; want %q, %q", err, verb.Hint(err), want, hint)
	}
}

// Nodes, processes in them and ends of links are named as ps prints them.
func TestTargets(t *testing.T) {
	lab := demo()
	for name, want := range map[string]topology.Ref{"c1/worker": "c1/worker", "c2-head": "c2/head"} {
		if got, err := nodeOf(lab, name); err != nil || got != want {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
	_, err := nodeOf(lab, "c1/wroker")
	wrong(t, err, `no node "c1/wroker" in lab demo`, "did you mean c1/worker?")

	f, err := victim(lab, host.Freeze, "c1/head:haproxy")
	if err != nil || f.Node != "c1/head" || f.Process != "haproxy" || f.Kind != host.Freeze {
		t.Errorf("got %+v, %v", f, err)
	}
	_, err = victim(lab, host.Kill, "c1/head:")
	wrong(t, err, `"c1/head:" names no process`, "write NODE, or NODE:PROCESS")

	links, err := between(lab, "c1", "c2", false)
	if err != nil || len(links) != 2 || links[0].Name() != "c1>c2" || links[1].Name() != "c2>c1" {
		t.Errorf("got %v, %v", links, err)
	}
	if links, err = between(lab, "c2/head", "c1", true); err != nil || len(links) != 1 {
		t.Errorf("one way: got %v, %v", links, err)
	}
	_, err = between(lab, "c1", "c3", true)
	wrong(t, err, `no cluster or node "c3" in lab demo`, "did you mean c")
}

// A pod's log is found by the beginning of its name, where that is enough.
func TestLogOf(t *testing.T) {
	logs := []cluster.Log{{Target: "links"}, {Target: "c1/head:kubelet"}, {Target: "c1/default/web-1:web"}, {Target: "c1/default/web-2:web"}, {Target: "c1/kube-system/coredns-1:coredns"}}
	for target, want := range map[string]string{"links": "links", "c1/kube-system/coredns": "c1/kube-system/coredns-1:coredns", "c1/default/web-2": "c1/default/web-2:web"} {
		if got, err := logOf(demo(), logs, target); err != nil || got.Target != want {
			t.Errorf("%s is %s, %v", target, got.Target, err)
		}
	}
	_, err := logOf(demo(), logs, "c1/default/web")
	wrong(t, err, `"c1/default/web" has 2 logs in lab demo`, "name one: c1/default/web-1:web, c1/default/web-2:web")
	_, err = logOf(demo(), logs, "c1/head:kubelt")
	wrong(t, err, "no log of ", "did you mean c1/head:kubelet?")
}

// What no link can do is refused before a lab is looked for.
func TestLinkFlags(t *testing.T) {
	f := linkFlags{does: impair.Impairment{Jitter: 5e6}}
	wrong(t, f.check(), "jitter 5ms has no delay to vary", "set delay as well")
	f = linkFlags{unit: "frame"}
	wrong(t, f.check(), `unit "frame" is not known`, "write packet or superpacket")
	f = linkFlags{does: impair.Impairment{Delay: 5e6}, then: []impair.Impairment{{Loss: 0.1}}, oneWay: true}
	if err := f.check(); err != nil {
		t.Fatal(err)
	}
	links, err := f.directions(demo(), "c1", "c2")
	if err != nil || len(links) != 1 || links[0].Stages().String() != impair.Chain(f.does, f.then).String() {
		t.Errorf("got %v, %v", links, err)
	}
}
