package system_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

const (
	lower = `name: lower
kind: underlay
summary: gives each node an address
carries: [http/1.1, tcp, udp]
hosts:
  inner: "10.9.{{.Node.Site}}.{{.Node.Number}}"
  nodeFiles: [peers]
  start:
    - {at: each, daemon: tunnel, run: "tunnel {{.Node.IP}}"}
    - {at: exporter, run: "hub {{.Node.Host}} {{.Congestion}}"}
  ready:
    - {at: each, reach: "{{.Exporter.Inner}}"}
  stop:
    - {at: each, run: "untunnel {{.Node.Inner}}"}
`
	upper = `name: upper
kind: interconnect
summary: carries requests
carries: [http/1.1, http/2, tcp]
hosts:
  route: [client, importer, service]
  start:
    - {at: importer, daemon: gate, run: "gate {{.Dir}} {{.Service.IP}}"}
  ready:
    - {at: client, tcp: "{{.Importer.IP}}:7080"}
  stop:
    - {at: importer, run: "ungate"}
  address: "{{.Importer.IP}}:7080"
`
)

// layered is a tree with an underlay and an interconnect, and another of each.
func layered() fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range map[string]string{"lower": lower, "upper": upper} {
		tree[name+"/system.yaml"] = file(text)
		tree["other-"+name+"/system.yaml"] = file(strings.Replace(text, "name: "+name, "name: other-"+name, 1))
	}
	for _, name := range []string{"lower", "other-lower"} {
		tree[name+"/peers"] = file("{{.Node.Host}} has {{range .Nodes}}{{.Inner}}={{.IP}} {{end}}")
	}
	return tree
}

// A stack goes up from the bottom, with room for the workload below the last, and
// down from the top. What stands above an underlay has its addresses for the
// nodes' own, and steps at each node see theirs.
func TestStackInOrder(t *testing.T) {
	dir := t.TempDir()
	s, err := system.Load(layered(), "lower+upper")
	if err != nil {
		t.Fatal(err)
	}
	v := values(t, dir)
	if path := s.Path(v); !slices.Equal(path, []topology.Ref{"c2/worker", "c2/head", "c1/worker"}) {
		t.Errorf("a request visits %v", path)
	}
	lab := &fake{}
	r, err := s.Start(t.Context(), lab, v)
	if err != nil {
		t.Fatal(err)
	}
	if at := r.Values().Service; at.IP != "10.9.1.2" || at.Port != 8080 || at.Node != "c1/worker" {
		t.Errorf("the workload is to listen at %+v", at)
	}
	lab.log = append(lab.log, "workload")
	if err := r.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Address(); err != nil || got != "10.9.2.1:7080" {
		t.Errorf("the address is %q, %v", got, err)
	}
	const peers = "c2-head has 10.9.1.1=10.1.0.1 10.9.1.2=10.1.0.2 10.9.2.1=10.2.0.1 10.9.2.2=10.2.0.2 "
	if got, err := os.ReadFile(filepath.Join(dir, "lower/c2-head/peers")); err != nil || string(got) != peers {
		t.Errorf("the file of a node is %q, %v", got, err)
	}
	if uses, err := r.Stop(); err != nil || len(uses) != 5 || uses[0].Name != "gate" || uses[4].Name != "tunnel-c2-worker" {
		t.Errorf("uses %+v, %v", uses, err)
	}
	want := `start tunnel-c1-head at "c1/head": tunnel 10.1.0.1
start tunnel-c1-worker at "c1/worker": tunnel 10.1.0.2
start tunnel-c2-head at "c2/head": tunnel 10.2.0.1
start tunnel-c2-worker at "c2/worker": tunnel 10.2.0.2
run at "c1/head": hub c1-head cubic
dial from "c1/head": 10.9.1.1:1
dial from "c1/worker": 10.9.1.1:1
dial from "c2/head": 10.9.1.1:1
dial from "c2/worker": 10.9.1.1:1
workload
start gate at "c2/head": gate ` + dir + `/upper 10.9.1.2
dial from "c2/worker": 10.9.2.1:7080
run at "c2/head": ungate
stop gate
run at "c1/head": untunnel 10.9.1.1
run at "c1/worker": untunnel 10.9.1.2
run at "c2/head": untunnel 10.9.2.1
run at "c2/worker": untunnel 10.9.2.2
stop tunnel-c1-head
stop tunnel-c1-worker
stop tunnel-c2-head
stop tunnel-c2-worker`
	if got := strings.Join(lab.log, "\n"); got != want {
		t.Errorf("carried out:\n%s\nwant:\n%s", got, want)
	}
	if uses, err := r.Stop(); err != nil || len(uses) > 0 {
		t.Errorf("a second stop: %v, %v", uses, err)
	}
}

// What failed above takes down what is below.
func TestStackStopsBelowAFailure(t *testing.T) {
	s, err := system.Load(layered(), "lower+upper")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lab := &fake{fails: map[string]error{"gate " + dir + "/upper 10.9.1.2": errors.New("no such program")}}
	_, err = up(t.Context(), s, lab, values(t, dir))
	if err == nil || err.Error() != "system upper: start at importer: no such program" {
		t.Errorf("got %v", err)
	}
	if lab.log[len(lab.log)-1] != "stop tunnel-c2-worker" {
		t.Errorf("the last of %v", lab.log)
	}
}

// A node is reached when it refuses, and not while it is silent.
func TestReach(t *testing.T) {
	lab := &fake{refused: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}}
	s, err := system.Load(layered(), "lower+upper")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), lab, values(t, t.TempDir())); err != nil {
		t.Errorf("a node that refuses: %v", err)
	}
	silent := &fake{refused: syscall.ETIMEDOUT, dies: map[string]string{"tunnel-c2-head": "cannot bind\n"}}
	_, err = s.Start(t.Context(), silent, values(t, t.TempDir()))
	const want = "system lower: ready at c1/head: tunnel-c2-head has ended (exit status 1): cannot bind"
	if err == nil || err.Error() != want {
		t.Errorf("a node that is silent: %v", err)
	}
}

func TestStacksThatAreNone(t *testing.T) {
	tree := layered()
	tree["top/system.yaml"] = file(strings.NewReplacer("name: upper", "name: top", "kind: interconnect", "kind: platform").Replace(upper))
	tree["twin/system.yaml"] = file(strings.NewReplacer("name: upper", "name: twin", "daemon: gate", "daemon: tunnel").Replace(upper))
	for name, want := range map[string][2]string{
		"lower":             {"system lower: lower gives nodes addresses, and none that a client calls", "put a system above it that has an address: lower+SYSTEM"},
		"upper+lower":       {"system upper+lower: nothing stands above upper: it has the address that the client calls", "name it last"},
		"upper+other-upper": {"system upper+other-upper: nothing stands above upper: it has the address that the client calls", "name it last"},
		"lower+other-lower+upper": {
			"system lower+other-lower+upper: lower and other-lower are both of the kind underlay, of which a stack has one", "leave one of them out",
		},
		"lower+top": {
			"system lower+top: top is of the kind platform, which does not stand above underlay",
			"from the bottom the kinds are platform, underlay, interconnect, balancer, overlay",
		},
		"lower+twin": {`system lower+twin: lower and twin both have a daemon "tunnel"`, "rename one of them"},
	} {
		_, err := system.Load(tree, name)
		wrong, ok := errors.AsType[*system.StackError](err)
		if !ok || wrong.Error() != want[0] || wrong.Hint != want[1] {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := system.Load(tree, "lower+nonesuch"); !errors.Is(err, system.ErrUnknown) {
		t.Errorf("an unknown part: %v", err)
	}
}

// What gets through a stack is what gets through each of its plug-ins.
func TestStackCarries(t *testing.T) {
	s, err := system.Load(layered(), "lower+upper")
	if err != nil {
		t.Fatal(err)
	}
	for protocol, want := range map[string]string{
		"http/1.1": "", "tcp": "",
		"http/2": "system lower carries http/1.1, tcp, udp, not http/2",
		"udp":    "system upper carries http/1.1, http/2, tcp, not udp",
	} {
		got := ""
		if err := s.Check(experiment.Load{Protocol: experiment.List[string]{protocol}}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", protocol, got, want)
		}
	}
}

// Inner addresses are addresses, and no two nodes have the same.
func TestInnerAddresses(t *testing.T) {
	for inner, want := range map[string]string{
		"{{.Node.Host}}":        "system lower: inner address of c1/head: ParseAddr",
		"10.9.0.{{.Node.Site}}": "system lower: c1/head and c1/worker have the inner address 10.9.0.1",
		"{{.Node.Nothing}}":     "can't evaluate field Nothing",
	} {
		tree := layered()
		tree["lower/system.yaml"] = file(strings.Replace(lower, "10.9.{{.Node.Site}}.{{.Node.Number}}", inner, 1))
		s, err := system.Load(tree, "lower+upper")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Render(values(t, "/dir")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", inner, err, want)
		}
	}
}
