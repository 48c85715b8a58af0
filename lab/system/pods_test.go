package system_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

// On kubernetes an ingress calls the pods that serve; one of another cluster it calls
// at its node. Until pods are known, and on hosts, each is called at its node.
func TestEndpoints(t *testing.T) {
	lab := &topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "w1", "w2"}}, {Name: "c2", Nodes: []string{"n"}}},
		Service:  "c1/w1", Replicas: []topology.Ref{"c1/w2", "c1/head", "c2/n"}, Client: "c2/n",
	}
	const port = 30080
	pods := map[topology.Ref]string{"c1/w1": "10.101.2.7:8080", "c1/w2": "10.101.3.7:8080", "c1/head": "10.101.1.7:8080"}
	for name, want := range map[string]string{
		"ingress":      "service 10.101.2.7:8080, c1-w2 10.101.3.7:8080, c2-n 10.2.0.1:30080",
		"ingress-head": "service 10.101.2.7:8080, c1-w2 10.101.3.7:8080, c1-head 10.101.1.7:8080, c2-n 10.2.0.1:30080",
	} {
		dir := t.TempDir()
		v, err := system.ValuesFor(lab, dir, port)
		if err != nil {
			t.Fatal(err)
		}
		stack, err := system.Load(systems.FS, name)
		if err == nil {
			err = stack.On(experiment.SubstrateKubernetes)
		}
		if err != nil {
			t.Fatal(err)
		}
		if stack.Missing() != nil {
			t.Skip(stack.Missing())
		}
		running, err := stack.Start(t.Context(), &fake{}, v)
		if err != nil {
			t.Fatal(err)
		}
		running.Serve(pods)
		if err := running.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "haproxy.cfg"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(servers(string(text)), ", "); got != want {
			t.Errorf("%s calls %s, want %s", name, got, want)
		}
		if _, err := running.Stop(); err != nil {
			t.Error(err)
		}
	}
	if got := (system.Place{IP: "10.1.0.2", Port: port}).Endpoint(); got != "10.1.0.2:30080" {
		t.Errorf("without a pod a node is called at %s", got)
	}
}

// servers are the servers of a configuration of HAProxy, each with its address.
func servers(config string) (all []string) {
	for line := range strings.Lines(config) {
		if server, ok := strings.CutPrefix(strings.TrimSpace(line), "server "); ok {
			all = append(all, server)
		}
	}
	return all
}

// A request crosses pods and kube-proxy on kubernetes, and what calls pods by their
// own addresses leaves kube-proxy out. Other tools are in no pod.
func TestWithin(t *testing.T) {
	v, hey := values(t, "/dir"), experiment.Cell{}
	hey.Tool = experiment.ToolHey
	for _, c := range []struct {
		system, substrate string
		cell              experiment.Cell
		want              string
	}{
		{"direct", experiment.SubstrateKubernetes, experiment.Cell{}, "c2/worker pod → c1/worker kube-proxy → pod"},
		{"direct", experiment.SubstrateKubernetes, hey, "c2/worker → c1/worker kube-proxy → pod"},
		{"ingress", experiment.SubstrateKubernetes, experiment.Cell{}, "c2/worker pod → c1/head → c1/worker pod"},
		{"ingress-service", experiment.SubstrateKubernetes, experiment.Cell{}, "c2/worker pod → c1/head kube-proxy → c1/worker pod"},
		{"native", experiment.SubstrateKubernetes, experiment.Cell{}, "c2/worker pod → c2/head kube-proxy → pod → c1/head kube-proxy → pod → c1/worker kube-proxy → pod"},
		{"ingress", experiment.SubstrateHosts, experiment.Cell{}, "c2/worker → c1/head → c1/worker"},
	} {
		stack, err := system.Load(systems.FS, c.system)
		if err == nil {
			err = stack.On(c.substrate)
		}
		if err != nil {
			t.Fatal(err)
		}
		way := experiment.Scenario{}.HopMap(stack.Path(v))
		way.Within = stack.Within(v, c.cell)
		if got := way.String(); got != c.want {
			t.Errorf("%s on %s: %s, want %s", c.system, c.substrate, got, c.want)
		}
	}
	// The client beside the service: both pods are at one node.
	one := v
	one.Client = one.Service
	stack, err := system.Load(systems.FS, "direct")
	if err == nil {
		err = stack.On(experiment.SubstrateKubernetes)
	}
	if err != nil {
		t.Fatal(err)
	}
	way := experiment.Scenario{}.HopMap(stack.Path(one))
	if way.Within = stack.Within(one, experiment.Cell{}); way.String() != "c1/worker pod → kube-proxy → pod" {
		t.Errorf("beside the service: %s", way)
	}
}

// A plug-in that runs on one substrate alone says so on the other, and one that knows
// pods as it starts where they come and go.
func TestWhereAStackRuns(t *testing.T) {
	for _, c := range []struct{ system, substrate, want string }{
		{"ingress-service", experiment.SubstrateKubernetes, ""},
		{"ingress-service", experiment.SubstrateHosts, "system ingress-service: ingress-service does not run on hosts"},
		{"ingress-service", "", "does not run on hosts"},
		{"haproxy-mtls", experiment.SubstrateKubernetes, "does not run on kubernetes"},
		{"ingress", experiment.SubstrateKubernetes, "ingress knows the pods that serve as it starts"},
	} {
		stack, err := system.Load(systems.FS, c.system)
		if err != nil {
			t.Fatal(err)
		}
		if err = stack.On(c.substrate); err == nil {
			err = stack.Scales()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s on %s, with an autoscaler: %v, want %q", c.system, c.substrate, err, c.want)
		}
	}
}

// A daemon in a pod is made of a program of its system, has its folders and its log in the
// working directory, and is one of the stack's daemons.
func TestDaemonInAPod(t *testing.T) {
	const pod = "{at: exporter, daemon: gw, run: \"nebula --for {{.Exporter.IP}} -v\", pod: {port: 7443, nodePort: 30443, folders: [keys]}}"
	stack, err := system.Load(podPlugin(pod), "test")
	if err == nil {
		err = stack.On(experiment.SubstrateKubernetes)
	}
	if err == nil {
		err = stack.Build(t.Context(), func(context.Context, string) (string, error) { return "/programs/nebula", nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := stack.PodPrograms(); err != nil || !slices.Equal(got, []string{"/programs/nebula"}) {
		t.Errorf("images are made of %v, %v", got, err)
	}
	dir := t.TempDir()
	lab := &fake{}
	running, err := stack.Start(t.Context(), lab, values(t, dir))
	if err == nil {
		err = running.Connect(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	want := system.Deployment{
		Name: "gw", Node: "c1/head", Program: "/programs/nebula", Args: []string{"--for", "10.1.0.1", "-v"},
		Port: 7443, NodePort: 30443, Folders: []string{filepath.Join(dir, "keys")}, Log: filepath.Join(dir, "gw.log"),
	}
	if len(lab.deployed) != 1 || !reflect.DeepEqual(lab.deployed[0], want) {
		t.Errorf("deployed is %+v, want %+v", lab.deployed, want)
	}
	if uses, err := running.Stop(); err != nil || len(uses) != 1 {
		t.Errorf("it has used %+v, %v", uses, err)
	}
}

// podPlugin is a tree with one system, test, of one step on kubernetes.
func podPlugin(step string) fstest.MapFS {
	text := "name: test\nkind: interconnect\nsummary: is tested\nneeds: [{program: nebula, module: true}]\nkubernetes:\n" + route + "  start:\n    - " + step + "\n" + address
	return fstest.MapFS{"test/system.yaml": {Data: []byte(text)}}
}

func TestBrokenPods(t *testing.T) {
	for _, c := range []struct{ step, want string }{
		{"{at: exporter, run: nebula, pod: {port: 1, nodePort: 30000}}", "a pod is that of a daemon at one node"},
		{"{at: each, daemon: d, run: nebula, pod: {port: 1, nodePort: 30000}}", "a pod is that of a daemon at one node"},
		{"{at: exporter, daemon: d, run: nebula, pod: {port: 0, nodePort: 30000}}", "port 0 is none"},
		{"{at: exporter, daemon: d, run: nebula, pod: {port: 1, nodePort: 80}}", "nodes give port 80 to no Service"},
		{"{at: exporter, daemon: GW_1, run: nebula, pod: {port: 1, nodePort: 30000}}", `Kubernetes takes no "GW_1" for a name`},
		{"{at: exporter, daemon: d, run: nebula, pod: {port: 1, nodePort: 30000, folders: [../keys]}}", `Kubernetes takes no "../keys" for a name`},
		{"{at: exporter, daemon: d, run: sh, pod: {port: 1, nodePort: 30000}}", `there is no image of "sh"`},
		{"{at: exporter, daemon: d, run: \" \", pod: {port: 1, nodePort: 30000}}", `there is no image of ""`},
	} {
		if _, err := system.LoadPlugin(podPlugin(c.step), "test"); err == nil || !strings.Contains(err.Error(), "test/system.yaml:8:") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.step, err, c.want)
		}
	}
	hosts := podPlugin("{at: exporter, daemon: d, run: nebula, pod: {port: 1, nodePort: 30000}}")
	hosts["test/system.yaml"].Data = bytes.Replace(hosts["test/system.yaml"].Data, []byte("kubernetes:"), []byte("hosts:"), 1)
	if _, err := system.LoadPlugin(hosts, "test"); err == nil || !strings.Contains(err.Error(), "there are no pods on hosts") {
		t.Errorf("got %v", err)
	}
}
