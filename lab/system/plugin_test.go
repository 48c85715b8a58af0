package system_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

// values are those of the service in c1, the client in c2, gateways at the heads.
func values(t *testing.T, dir string) system.Values {
	t.Helper()
	v, err := system.ValuesFor(&topology.Topology{
		Clusters: []topology.Cluster{
			{Name: "c1", Nodes: []string{"head", "worker"}},
			{Name: "c2", Nodes: []string{"head", "worker"}},
		},
		Service: "c1/worker", Client: "c2/worker",
	}, dir, 8080)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// plugin is a tree with one system, test, whose hosts part is as given.
func plugin(hosts string) fstest.MapFS {
	text := "name: test\nkind: interconnect\nsummary: is tested\nhosts:\n" + hosts
	return fstest.MapFS{"test/system.yaml": {Data: []byte(text)}}
}

const (
	route   = "  route: [client, service]\n"
	address = "  address: \"{{.Service.IP}}:{{.Service.Port}}\"\n"
)

func TestBrokenPlugins(t *testing.T) {
	cases := []struct{ name, hosts, want string }{
		{"unknown key", route + "  steps: []\n" + address, `test/system.yaml:6:3: unknown key "steps"`},
		{"no address", route, "address"},
		{"unknown protocol", route + address + "carries: [http/1.1, sctp]\n", `test/system.yaml:7:21: unknown protocol "sctp"`},
		{"unknown role in the route", "  route: [client, sevrice]\n" + address, `test/system.yaml:5:19: unknown role "sevrice"`},
		{"unknown role of a step", route + "  start:\n    - {at: moon, run: x}\n" + address, `test/system.yaml:7:7: unknown role "moon"`},
		{"step without run and tcp", route + "  ready:\n    - {at: client}\n" + address, "test/system.yaml:7:7: a step has either run or tcp"},
		{"step with run and tcp", route + "  stop:\n    - {at: client, run: x, tcp: y}\n" + address, "a step has either run or tcp"},
		{"daemons of one name", route + "  start:\n    - {at: client, run: x, daemon: d}\n    - {at: service, run: x, daemon: d}\n" + address, `two daemons are named "d"`},
	}
	for _, c := range cases {
		_, err := system.Load(plugin(c.hosts), "test")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := system.Load(fstest.MapFS{"other/system.yaml": plugin(route + address)["test/system.yaml"]}, "other"); err == nil || !strings.Contains(err.Error(), `system "test" lies in folder "other"`) {
		t.Errorf("another folder's name: %v", err)
	}
	for _, name := range []string{"nonesuch", "", "..", "/etc"} {
		if _, err := system.Load(plugin(route+address), name); !errors.Is(err, system.ErrUnknown) {
			t.Errorf("%q: got %v, want ErrUnknown", name, err)
		}
	}
}

// A system says what it carries; one that says nothing carries HTTP/1.1.
func TestCarries(t *testing.T) {
	for _, c := range []struct{ carries, protocol, want string }{
		{"", "", ""},
		{"", "http/1.1", ""},
		{"", "tcp", "system test carries http/1.1, not tcp"},
		{"carries: [tcp, http/2]\n", "http/2", ""},
		{"carries: [tcp, http/2]\n", "udp", "system test carries tcp, http/2, not udp"},
		{"carries: [tcp, http/2]\n", "", "system test carries tcp, http/2, not http/1.1"},
	} {
		p, err := system.Load(plugin(route+address+c.carries), "test")
		if err != nil {
			t.Fatal(err)
		}
		var l experiment.Load
		if c.protocol != "" {
			l.Protocol = experiment.List[string]{c.protocol}
		}
		got := ""
		if err := p.Check(l); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q asked for %q: %q, want %q", c.carries, c.protocol, got, c.want)
		}
	}
}

func TestBrokenTemplates(t *testing.T) {
	cases := []struct{ name, hosts, want string }{
		{"missing file", route + "  files: [gone.cfg]\n" + address, "system test: open gone.cfg"},
		{"field that there is not", route + "  address: \"{{.Gateway.IP}}:1\"\n", "can't evaluate field Gateway"},
		{"field of a file", route + "  files: [system.yaml]\n  start:\n    - {at: lab, run: \"{{.Nothing}}\"}\n" + address, "can't evaluate field Nothing"},
		{"template that does not end", route + "  ready:\n    - {at: lab, tcp: \"{{.Dir\"}\n" + address, "system test: template: ready:1"},
		{"value used before it is captured", route + "  prepare:\n    - {at: lab, run: \"{{.Captured.token}}\"}\n    - {at: lab, run: x, capture: token}\n" + address, `no entry for key "token"`},
	}
	for _, c := range cases {
		p, err := system.Load(plugin(c.hosts), "test")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, err := p.Render(values(t, "/dir")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// Every system that is built in renders, calls an address of the topology, and
// leaves no template unexpanded.
func TestBuiltInSystems(t *testing.T) {
	names, err := system.Names(systems.FS)
	if err != nil || len(names) < 2 {
		t.Fatalf("systems %v, %v", names, err)
	}
	for _, name := range names {
		p, err := system.Load(systems.FS, name)
		if err != nil {
			t.Error(err)
			continue
		}
		v := values(t, "/dir")
		files, err := p.Render(v)
		if err != nil {
			t.Error(err)
		}
		for file, text := range files {
			if strings.Contains(text, "{{") || strings.TrimSpace(text) == "" {
				t.Errorf("%s: %s renders as %q", name, file, text)
			}
		}
		if got, err := p.Address(v); err != nil || !strings.HasPrefix(got, "10.") {
			t.Errorf("%s: address %q, %v", name, got, err)
		}
		path := p.Path(v)
		if len(path) < 2 || path[0] != "c2/worker" || path[len(path)-1] != "c1/worker" {
			t.Errorf("%s: a request visits %v", name, path)
		}
		if entries, err := fs.ReadDir(systems.FS, name); err != nil || len(entries) != 1+len(files) {
			t.Errorf("%s: %d files lie in its folder, %d are rendered", name, len(entries)-1, len(files))
		}
	}
}

// What the systems that are built in let through: a relay of TCP takes all but UDP.
func TestBuiltInSystemsCarry(t *testing.T) {
	for name, refused := range map[string][]string{"direct": nil, "haproxy-mtls": {"udp"}} {
		p, err := system.Load(systems.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, protocol := range experiment.Protocols() {
			err := p.Check(experiment.Load{Protocol: experiment.List[string]{protocol}})
			if got := err != nil; got != slices.Contains(refused, protocol) {
				t.Errorf("%s and %s: %v", name, protocol, err)
			}
		}
	}
}

func TestNeedAndMissing(t *testing.T) {
	tree := plugin(route + "  busyLoops: 2\n  start:\n    - {at: client, run: x, daemon: a}\n    - {at: client, run: x, daemon: b}\n    - {at: client, run: x}\n" + address)
	text := strings.Replace(string(tree["test/system.yaml"].Data), "hosts:", "needs:\n  - {program: sh, package: dash}\n  - {program: no-such-program, package: some-package}\nhosts:", 1)
	tree["test/system.yaml"].Data = []byte(text)
	p, err := system.Load(tree, "test")
	if err != nil {
		t.Fatal(err)
	}
	if need := p.Need(); need.BusyLoops != 2 || need.Processes != 2 {
		t.Errorf("needs %+v", need)
	}
	missing := p.Missing()
	if len(missing) != 1 {
		t.Fatalf("missing %v", missing)
	}
	lack, ok := errors.AsType[*system.MissingError](missing[0])
	if !ok || lack.Need.Package != "some-package" {
		t.Errorf("missing %v", missing[0])
	}
	if _, err := p.Start(t.Context(), &fake{}, values(t, t.TempDir())); !errors.Is(err, missing[0]) && !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a system without its program starts: %v", err)
	}
}
