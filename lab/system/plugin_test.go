package system_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"skerry.dev/skerry/internal/gobuild"
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
		{"unknown protocol", route + address + "carries: [http/1.1, sctp]\n", `test/system.yaml:7:21: unknown protocol "sctp"`},
		{"no address and no inner one", "  files: []\n", "test/system.yaml:4:1: a system has either address or inner"},
		{"both addresses", route + address + "  inner: \"10.9.{{.Node.Site}}.{{.Node.Number}}\"\n", "a system has either address or inner"},
		{"address without a route", address, "route and address go together"},
		{"route without an address", route + "  inner: \"{{.Node.IP}}\"\n", "route and address go together"},
		{"no program of a module", route + address + "needs: [{program: nebulla, module: true}]\n", `test/system.yaml:7:19: no module is pinned for the program "nebulla"`},
		{"a program of nowhere", route + address + "needs: [{program: x}]\n", `the program "x" comes from a package, from a module or with Skerry`},
		{"a program of both", route + address + "needs: [{program: nebula, package: nebula, module: true}]\n", `the program "nebula" comes from a package, from a module or with Skerry`},
		{"a queueing discipline without a name", route + address + "qdiscs: [etf, \"\"]\n", `test/system.yaml:7:15: a queueing discipline has no name`},
		{"unknown role in the route", "  route: [client, sevrice]\n" + address, `test/system.yaml:5:19: unknown role "sevrice"`},
		{"unknown role of a step", route + "  start:\n    - {at: moon, run: x}\n" + address, `test/system.yaml:7:7: unknown role "moon"`},
		{"route over each node", "  route: [client, each]\n" + address, `unknown role "each"`},
		{"step that does nothing", route + "  ready:\n    - {at: client}\n" + address, "test/system.yaml:7:7: a step has either run, tcp, reach or install"},
		{"step with run and tcp", route + "  stop:\n    - {at: client, run: x, tcp: y}\n" + address, "a step has either run, tcp, reach or install"},
		{"step with tcp and reach", route + "  stop:\n    - {at: client, tcp: x, reach: y}\n" + address, "a step has either run, tcp, reach or install"},
		{"one value of many nodes", route + "  start:\n    - {at: each, run: x, capture: c}\n" + address, "a step at each node has more than one output"},
		{"daemons of one name", route + "  start:\n    - {at: client, run: x, daemon: d}\n    - {at: service, run: x, daemon: d}\n" + address, `two daemons are named "d"`},
		{"a daemon named as the lab's own", route + "  start:\n    - {at: client, run: x, daemon: load}\n" + address, `test/system.yaml:7:7: a daemon cannot be named "load"`},
		{"a daemon named as a load among others", route + "  start:\n    - {at: client, run: x, daemon: load2}\n" + address, `test/system.yaml:7:7: a daemon cannot be named "load2"`},
		{"a daemon named as the link emulator", route + "  start:\n    - {at: client, run: x, daemon: links}\n" + address, `a daemon cannot be named "links"`},
		{"a daemon named as what holds namespaces", route + "  start:\n    - {at: client, run: x, daemon: holders}\n" + address, `a daemon cannot be named "holders"`},
		{"a daemon named as a step", route + "  start:\n    - {at: each, run: x, daemon: step}\n" + address, `a daemon cannot be named "step"`},
		{"a daemon named as the workload", route + "  start:\n    - {at: client, run: x, daemon: service}\n" + address, `a daemon cannot be named "service"`},
		{"a daemon named as a replica", route + "  start:\n    - {at: client, run: x, daemon: service-c1-head}\n" + address, `a daemon cannot be named "service-c1-head"`},
		{"output of a daemon", route + "  start:\n    - {at: client, run: x, daemon: d, capture: token}\n" + address, `the output of the daemon "d" goes to its log`},
		{"daemon that probes", route + "  ready:\n    - {at: client, tcp: \"x:1\", daemon: d}\n" + address, `the daemon "d" has no command`},
		{"daemon that reaches", route + "  ready:\n    - {at: client, reach: x, daemon: d}\n" + address, `the daemon "d" has no command`},
	}
	for _, c := range cases {
		_, err := system.LoadPlugin(plugin(c.hosts), "test")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := system.Load(fstest.MapFS{"other/system.yaml": plugin(route + address)["test/system.yaml"]}, "other"); err == nil || !strings.Contains(err.Error(), `system "test" lies in folder "other"`) {
		t.Errorf("another folder's name: %v", err)
	}
	unkind := plugin(route + address)
	unkind["test/system.yaml"].Data = bytes.Replace(unkind["test/system.yaml"].Data, []byte("kind: interconnect"), []byte("kind: underlag"), 1)
	if _, err := system.Load(unkind, "test"); err == nil || !strings.Contains(err.Error(), "test/system.yaml:2:7: unknown kind \"underlag\"") ||
		!strings.Contains(err.Error(), "did you mean underlay?") {
		t.Errorf("an unknown kind: %v", err)
	}
	for _, name := range []string{"nonesuch", "", "..", "/etc", "test+", "+test", "test+nonesuch"} {
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
		{"carries: [tcp]\n", "mqtt", ""},
		{"carries: [tcp]\n", "amqp", ""},
		{"", "mqtt", "system test carries http/1.1, not mqtt"},
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
		{"missing file", route + "  files: [gone.cfg]\n" + address, "system test: open test/gone.cfg"},
		{"field that there is not", route + "  address: \"{{.Gateway.IP}}:1\"\n", "can't evaluate field Gateway"},
		{"field of a file", route + "  files: [system.yaml]\n  start:\n    - {at: lab, run: \"{{.Nothing}}\"}\n" + address, "can't evaluate field Nothing"},
		{"node of a step at the machine", route + "  prepare:\n    - {at: lab, run: \"{{.Node.IP}}\"}\n" + address, "nil pointer evaluating *system.Place.IP"},
		{"node of a file that is for all", route + "  files: [system.yaml]\n  stop:\n    - {at: client, run: \"{{.Node.IP}}\"}\n" + address, "nil pointer evaluating *system.Place.IP"},
		{"template that does not end", route + "  ready:\n    - {at: lab, tcp: \"{{.Dir\"}\n" + address, "system test: template: ready:1"},
		{"value used before it is captured", route + "  prepare:\n    - {at: lab, run: \"{{.Captured.token}}\"}\n    - {at: lab, run: x, capture: token}\n" + address, `no entry for key "token"`},
	}
	for _, c := range cases {
		p, err := system.LoadPlugin(plugin(c.hosts), "test")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, err := p.Render(values(t, "/dir")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// Every system that is built in renders, calls an address of the topology or gives
// each node one of its own, and leaves no template unexpanded and no file unused.
// A plug-in says at least for one substrate how it runs there.
func TestRunsSomewhere(t *testing.T) {
	const nowhere = "name: test\nkind: interconnect\nsummary: is tested\n"
	_, err := system.LoadPlugin(fstest.MapFS{"test/system.yaml": {Data: []byte(nowhere)}}, "test")
	if err == nil || !strings.Contains(err.Error(), `system "test" runs nowhere`) {
		t.Errorf("got %v", err)
	}
	const odd = nowhere + "kubernetes: {route: [client, service], address: \"{{.Service.IP}}:1\", proxy: moon}\n"
	_, err = system.LoadPlugin(fstest.MapFS{"test/system.yaml": {Data: []byte(odd)}}, "test")
	if err == nil || !strings.Contains(err.Error(), `unknown role "moon"`) {
		t.Errorf("got %v", err)
	}
}

// What carries timed packets says how they are sent, and nothing else does.
func TestOneWay(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"  oneway: {sends: spin}\ncarries: [oneway]\n", ""},
		{"carries: [oneway]\n", "says how packets are sent"},
		{"  oneway: {sends: spin}\n", "says how packets are sent"},
		{"  oneway: {sends: now}\ncarries: [oneway]\n", `packets are not sent by "now"`},
	} {
		_, err := system.Load(plugin(route+address+c.text), "test")
		if got := err != nil && strings.Contains(err.Error(), c.want); got != (c.want != "") || (err != nil) != got {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestBuiltInSystems(t *testing.T) {
	names, err := system.Names(systems.FS)
	if err != nil || len(names) < 2 {
		t.Fatalf("systems %v, %v", names, err)
	}
	for _, name := range names {
		p, err := system.LoadPlugin(systems.FS, name)
		if err != nil {
			t.Error(err)
			continue
		}
		v, how := values(t, "/dir"), cmp.Or(p.Hosts, p.Kubernetes)
		files, err := p.Render(v)
		if err != nil {
			t.Error(err)
		}
		for file, text := range files {
			if strings.Contains(text, "{{") || strings.TrimSpace(text) == "" {
				t.Errorf("%s: %s renders as %q", name, file, text)
			}
		}
		own := slices.DeleteFunc(slices.Concat(how.Files, how.NodeFiles), func(file string) bool { return strings.HasPrefix(file, "../") })
		if entries, err := fs.ReadDir(systems.FS, name); err != nil || len(entries) != 1+len(own) {
			t.Errorf("%s: %d files lie in its folder, %v are rendered", name, len(entries)-1, own)
		}
		if how.Inner != "" {
			continue
		}
		if got, err := p.Address(v); err != nil || !strings.HasPrefix(got, "10.") {
			t.Errorf("%s: address %q, %v", name, got, err)
		}
		path := p.Path(v)
		if len(path) < 2 || path[0] != "c2/worker" || path[len(path)-1] != "c1/worker" {
			t.Errorf("%s: a request visits %v", name, path)
		}
	}
}

// What the systems that are built in let through: a relay of TCP takes all but UDP.
func TestBuiltInSystemsCarry(t *testing.T) {
	for name, refused := range map[string][]string{
		"direct": nil, "haproxy-mtls": {"udp"}, "nebula+direct": nil, "wireguard+direct": nil, "nebula+haproxy-mtls": {"udp"},
	} {
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
	tree := plugin(route + "  busyLoops: 2\n  start:\n    - {at: client, run: x, daemon: a}\n    - {at: each, run: x, daemon: b}\n    - {at: client, run: x}\n" + address)
	text := strings.Replace(string(tree["test/system.yaml"].Data), "hosts:", "needs:\n  - {program: sh, package: dash}\n  - {program: no-such-program, package: some-package}\nhosts:", 1)
	tree["test/system.yaml"].Data = []byte(text)
	s, err := system.Load(tree, "test")
	if err != nil {
		t.Fatal(err)
	}
	if need := s.Need(4); need.BusyLoops != 2 || need.Processes != 5 {
		t.Errorf("needs %+v", need)
	}
	missing := s.Missing()
	if len(missing) != 1 {
		t.Fatalf("missing %v", missing)
	}
	lack, ok := errors.AsType[*system.MissingError](missing[0])
	if !ok || lack.Need.Package != "some-package" {
		t.Errorf("missing %v", missing[0])
	}
	if _, err := s.Start(t.Context(), &fake{}, values(t, t.TempDir())); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a system without its program starts: %v", err)
	}
	if paths, err := s.Programs(); err != nil || len(paths) != 1 || !strings.HasSuffix(paths["sh"], "/sh") {
		t.Errorf("programs %v, %v", paths, err)
	}
}

// A program of a Go module is missing only where there is no Go; it is built
// before anything starts, and first on the path of the steps.
func TestBuiltNeed(t *testing.T) {
	tree := plugin(route + "  prepare:\n    - {at: lab, run: make-keys}\n  start:\n    - {at: client, run: serve, daemon: d}\n" + address)
	tree["test/system.yaml"].Data = append(tree["test/system.yaml"].Data, "needs: [{program: nebula, module: true}]\n"...)
	s, err := system.Load(tree, "test")
	if err != nil {
		t.Fatal(err)
	}
	if missing := s.Missing(); len(missing) > 0 {
		t.Errorf("missing %v", missing)
	}
	if _, err := s.Start(t.Context(), &fake{}, values(t, t.TempDir())); !errors.Is(err, system.ErrNotBuilt) {
		t.Errorf("starts before it is built: %v", err)
	}
	broken := errors.New("no network")
	fails := func(context.Context, string) (string, error) { return "", broken }
	const want = "system test needs the program nebula, which is built from its Go module: no network"
	if err := s.Build(t.Context(), fails); !errors.Is(err, broken) || err.Error() != want {
		t.Errorf("a build that fails: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, lacks := errors.AsType[*system.MissingError](s.Build(ended, fails)); lacks {
		t.Error("a build that is ended counts as something that this machine lacks")
	}
	builds := func(_ context.Context, name string) (string, error) { return "/cache/" + name + "-1/" + name, nil }
	if err := s.Build(t.Context(), builds); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/bin")
	lab := &fake{}
	r, err := s.Start(t.Context(), lab, values(t, t.TempDir()))
	if err == nil {
		err = r.Connect(t.Context())
	}
	if want := []string{"PATH=/cache/nebula-1:/bin", "PATH=/cache/nebula-1:/bin"}; err != nil || !slices.Equal(lab.env, want) {
		t.Errorf("the steps have %q, %v", lab.env, err)
	}
	if paths, err := s.Programs(); err != nil || paths["nebula"] != "/cache/nebula-1/nebula" {
		t.Errorf("programs %v, %v", paths, err)
	}
	if again, err := system.Load(tree, "test"); err != nil || len(again.Missing()) != 1 {
		t.Errorf("without Go on the path nothing is missing: %v", err)
	} else if missing := again.Missing()[0]; !errors.Is(missing, gobuild.ErrNoGo) {
		t.Errorf("missing %v", missing)
	}
}

// A program of Skerry's own lies beside the one that runs, and is on the path of the
// steps.
func TestOwnNeed(t *testing.T) {
	tree := plugin(route + "  start:\n    - {at: client, run: serve, daemon: d}\n" + address)
	tree["test/system.yaml"].Data = append(tree["test/system.yaml"].Data, "needs: [{program: skerry-test, own: true}]\n"...)
	s, err := system.Load(tree, "test")
	if err != nil {
		t.Fatal(err)
	}
	if missing := s.Missing(); len(missing) != 1 || !strings.Contains(missing[0].Error(), "needs Skerry's program skerry-test: ") {
		t.Errorf("missing %v", missing)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(self), "skerry-test")
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
	t.Setenv("PATH", "/bin")
	lab := &fake{}
	r, err := s.Start(t.Context(), lab, values(t, t.TempDir()))
	if err == nil {
		err = r.Connect(t.Context())
	}
	if want := []string{"PATH=" + filepath.Dir(self) + ":/bin"}; err != nil || len(s.Missing()) > 0 || !slices.Equal(lab.env, want) {
		t.Errorf("the steps have %q, %v", lab.env, err)
	}
}

func TestDigest(t *testing.T) {
	digest := func(manifest, rendered, node, beside string) string {
		tree := plugin(route + "  files: [a.cfg]\n  nodeFiles: [n.cfg]\n" + address)
		tree["test/system.yaml"].Data = append(tree["test/system.yaml"].Data, manifest...)
		tree["test/a.cfg"], tree["test/n.cfg"], tree["test/README.md"] = file(rendered), file(node), file(beside)
		s, err := system.Load(tree, "test")
		if err != nil {
			t.Fatal(err)
		}
		sum, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := digest("# a", "b", "n", "c")
	if len(first) != 64 || first != digest("# a", "b", "n", "other") {
		t.Errorf("a file that is not rendered counts: %s", first)
	}
	for _, other := range []string{
		digest("# other", "b", "n", "c"), digest("# a", "other", "n", "c"), digest("# a", "b", "other", "c"), digest("# a", "bn", "", "c"),
	} {
		if other == first {
			t.Error("a change is not seen")
		}
	}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
