package file_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/source/file"
	"skerry.dev/skerry/fabric/transport"
)

const (
	version = "apiVersion: fabric.skerry.dev/v1alpha1\n"
	peer    = version + "kind: Peer\nmetadata: {name: c1}\nspec: {gateways: [\"10.0.0.1:4443\"]}\n"
	export  = version + "kind: ServiceExport\nmetadata: {name: web, namespace: shop}\nspec:\n  ports:\n  - {port: 80, proxyProtocol: v2, backends: [\"10.1.0.2:8080\", \"[fd00::1]:8080\"]}\n"
	imports = version + "kind: ServiceImport\nmetadata: {name: web}\nspec:\n  accept: confirmed\n  from: [c1]\n  ports:\n  - {port: 53, name: dns, protocol: UDP, listen: [\"127.0.0.1:5353\", \"[::1]:5353\"]}\n"
	access  = version + "kind: AccessPolicy\nmetadata: {name: p}\nspec:\n  action: Deny\n  privileged: true\n  priority: 0\n  from: [{matchLabels: {cluster: c2, a: b}, matchExpressions: [{key: x, operator: Exists}]}]\n  to: [{}]\n"
	clients = version + "kind: Workload\nmetadata: {name: cart, namespace: shop}\nspec:\n  addresses: [10.2.0.7, \"10.2.1.0/24\", \"fd00::7\"]\n  labels: {app: cart}\n"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "# what we import\n" + imports + "---\n# nothing here\n---\n" + access,
		"b.yaml": export + "---\r\n" + peer, "d.yaml": clients, "c.txt": "not ours",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := file.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &snapshot.Snapshot{
		Peers:   []snapshot.Peer{{Name: "c1", Gateways: []string{"10.0.0.1:4443"}, Transport: snapshot.Native}},
		Exports: []snapshot.Export{{Target: transport.Target{Namespace: "shop", Name: "web", Port: 80, Protocol: "tcp"}, Backends: []string{"10.1.0.2:8080", "[fd00::1]:8080"}, ProxyProtocol: true}},
		Imports: got.Imports,
		Policies: []policy.Policy{{
			Name: "p", Deny: true, Privileged: true,
			From: []policy.Selector{{
				{Key: "a", Operator: policy.In, Values: []string{"b"}}, {Key: "cluster", Operator: policy.In, Values: []string{"c2"}}, {Key: "x", Operator: policy.Exists},
			}},
			To: []policy.Selector{{}},
		}},
		Workloads: []snapshot.Workload{{
			Name: "cart", Namespace: "shop", Labels: map[string]string{"app": "cart"},
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.2.0.7/32"), netip.MustParsePrefix("10.2.1.0/24"), netip.MustParsePrefix("fd00::7/128")},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	i := got.Imports[0]
	if i.String() != "default/web:53/udp" || i.PortName != "dns" || fmt.Sprint(i.Listen) != "[127.0.0.1:5353 [::1]:5353]" || i.From[0] != "c1" || !i.Confirm {
		t.Errorf("got %+v", i)
	}
	if _, err := file.Read(filepath.Join(dir, "missing")); err == nil {
		t.Error("a folder that is not there is read")
	}
}

// What is wrong is told with its place in the file, whichever document it is in.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{peer + "---\n" + strings.Replace(export, "port: 80", "port: 0", 1), "f.yaml:11:12: 0 is no port\nhint: write 1 to 65535"},
		{strings.Replace(export, "port: 80", "port: 80, protocol: SCTP", 1), `f.yaml:6:26: no protocol "SCTP"`},
		{strings.Replace(export, `"10.1.0.2:8080", "[fd00::1]:8080"`, "", 1), "nothing serves shop/web:80"},
		{strings.Replace(export, "10.1.0.2:8080", "fd00::1:8080", 1), `"fd00::1:8080" is no host with a port`},
		{strings.Replace(export, "8080\"]}", "8080\"]}\n  - {port: 80, backends: [\"a:1\"]}", 1), "shop/web:80 is exported already"},
		{export + "---\n" + export, "f.yaml:10:18: the ServiceExport web is in f.yaml:3 already\nhint: remove one"},
		{strings.Replace(export, "backends", "backend", 1), "did you mean backends?"},
		{imports, `f.yaml:6:10: no peer "c1"` + "\nhint: there are none"},
		{peer + "---\n" + strings.Replace(imports, "confirmed", "late", 1), `no way "late" to accept`},
		{peer + "---\n" + strings.Replace(imports, "[c1]", "[]", 1), "web comes from nowhere"},
		{peer + "---\n" + strings.Replace(imports, "127.0.0.1:5353", "localhost", 1), `"localhost" is no address with a port`},
		{peer + "---\n" + strings.Replace(imports, "[::1]:5353", "[::1]:0", 1), "f.yaml:13:69: 0 is no port\nhint: write 1 to 65535"},
		{peer + "---\n" + imports + "---\n" + strings.Replace(imports, "name: web", "name: other", 1), "f.yaml:22:51: 127.0.0.1:5353 is the import's default/web:53/udp in f.yaml:13 already\nhint: remove one"},
		{peer + "---\n" + strings.Replace(imports, "[::1]", "[::ffff:127.0.0.1]", 1), "[::ffff:127.0.0.1]:5353 is the import's default/web:53/udp in f.yaml:13 already"},
		{strings.Replace(peer, "Peer", "Pear", 1), `f.yaml:2:7: no kind "Pear"` + "\nhint: did you mean Peer?"},
		{strings.Replace(peer, "{gateways", "{transport: httpconnect, reverse: true, gateways", 1), `f.yaml:4:41: httpconnect opens no connections for a peer` + "\nhint: use the transport native"},
		{"apiVersion: fabric.skerry.dev/v1alpha1\nkind: Peer\nmetadata: {name: c1}\nspec: {reverse: true}\n", "f.yaml:4:17: there are no gateways to open connections to\nhint: name them in spec.gateways"},
		{strings.Replace(peer, "{gateways", "{transport: nativ, gateways", 1), `f.yaml:4:19: no transport "nativ"` + "\nhint: did you mean native?"},
		{strings.Replace(peer, "v1alpha1", "v1", 1), `no version "fabric.skerry.dev/v1" of Peer`},
		{strings.Replace(peer, "name: c1", "name: C1", 1), `"C1" is not a name`},
		{"spec: {}\n", `the key "apiVersion" is missing`},
		{strings.Replace(access, "Deny", "deny", 1), "did you mean Deny?"},
		{strings.Replace(access, "priority: 0", "priority: 1001", 1), "no priority 1001\nhint: write 0 to 1000"},
		{strings.Replace(access, "to: [{}]", "to: []", 1), "it selects nothing\nhint: write [{}] for everything"},
		{strings.Replace(access, "Exists", "In", 1), "In compares with nothing"},
		{strings.Replace(access, "Exists", "Exists, values: [a]", 1), "Exists takes no values"},
		{strings.Replace(export, "v2", "v1", 1), `no version "v1" of the PROXY protocol` + "\nhint: write v2, or remove it"},
		{peer + "---\n" + strings.Replace(imports, "name: dns", "name: D", 1), `"D" is not a name`},
		{clients + "---\n" + strings.Replace(clients, "cart, namespace", "carts, namespace", 1), "f.yaml:12:15: 10.2.0.7/32 is the workload's shop/cart in f.yaml:5 already\nhint: remove one"},
		{strings.Replace(clients, "10.2.0.7", "10.2.1.0/24", 1), "10.2.1.0/24 is the workload's shop/cart in f.yaml:5 already"},
		{strings.Replace(clients, "10.2.0.7", "cart:80", 1), `"cart:80" is no address and no CIDR` + "\nhint: write them as"},
		{strings.Replace(clients, "10.2.1.0/24", "10.2.1.1/24", 1), "hint: write 10.2.1.0/24"},
		{strings.Replace(clients, "fd00::7", "fe80::7%eth0", 1), "hint: remove the zone"},
		{strings.Replace(clients, "fd00::7", "::ffff:10.0.0.0/104", 1), "hint: write the address of IPv4 alone"},
		{strings.Replace(clients, "10.2.0.7, \"10.2.1.0/24\", \"fd00::7\"", "", 1), "nothing is cart"},
		{strings.Replace(clients, "app: cart", "app: "+strings.Repeat("x", 5000), 1), "1 labels of 5003 bytes\nhint: 32 labels of 4096 bytes are the most"},
		{strings.Replace(clients, "app: cart", "\"\": cart", 1), `f.yaml:6:11: no label "": "cart"` + "\nhint: write KEY: VALUE"},
		{strings.Replace(clients, "app: cart", "example.org/app: a cart", 1), `no label "example.org/app": "a cart"`},
		{strings.Replace(access, "Exists", "Gt", 1), `no operator "Gt"`},
	} {
		_, err := file.Decode("f.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot %v\nwant %s", c.text, err, c.want)
		}
	}
}

// An address may have an import of TCP and one of UDP, as ports of a name do.
func TestListenByProtocol(t *testing.T) {
	text := peer + "---\n" + imports + "---\n" + strings.Replace(strings.Replace(imports, "name: web", "name: other", 1), ", protocol: UDP", "", 1)
	if _, err := file.Decode("f.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
}

// Whatever is in a file, what is read of it can be acted on.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{peer, export, peer + "---\n" + imports, access, clients, "---\n---\n", "kind: {"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := file.Decode("f.yaml", data)
		if err != nil {
			return
		}
		for _, i := range s.Imports {
			for _, from := range i.From {
				if s.Peer(from) == nil {
					t.Errorf("%s comes from %s, which is no peer", i.Target, from)
				}
			}
		}
		for _, e := range s.Exports {
			if len(e.Backends) == 0 || e.Port == 0 {
				t.Errorf("nothing serves %+v", e)
			}
		}
		for _, w := range s.Workloads {
			for _, p := range w.Addresses {
				if p != p.Masked() || p.Addr().Is4In6() {
					t.Errorf("%s at %s", w.Name, p)
				}
			}
		}
		policy.Compile(s.Policies).Decide(nil, nil)
	})
}
