package systems_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

func TestEveryFolderIsASystem(t *testing.T) {
	folders, err := fs.ReadDir(systems.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if _, err := system.LoadPlugin(systems.FS, f.Name()); err != nil {
			t.Error(err)
		}
	}
}

// The addresses that an underlay gives are of no network of the lab, whatever the
// number of clusters and nodes, and two underlays share none.
func TestUnderlayAddresses(t *testing.T) {
	most := &topology.Topology{}
	for i := range 32 {
		c := topology.Cluster{Name: fmt.Sprintf("c%d", i+1)}
		for j := range 6 {
			c.Nodes = append(c.Nodes, fmt.Sprintf("n%d", j+1))
		}
		most.Clusters = append(most.Clusters, c)
	}
	most.Client = "c1/n1"
	if problems := len(most.Check()); problems != 1 { // it names no service yet
		t.Fatalf("the topology has %d problems: %v", problems, most.Check())
	}
	seen := map[string]string{}
	for _, underlay := range []string{"nebula", "wireguard"} {
		s, err := system.Load(systems.FS, underlay+"+direct")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range most.Nodes() {
			most.Service = n.Ref()
			v, err := system.ValuesFor(most, "/dir", 8080)
			if err != nil {
				t.Fatal(err)
			}
			address, err := s.Address(v)
			if err != nil {
				t.Fatal(err)
			}
			inner := netip.MustParseAddrPort(address).Addr()
			if other := seen[inner.String()]; other != "" {
				t.Errorf("%s of %s is that of %s too", inner, underlay, other)
			}
			seen[inner.String()] = underlay + " at " + n.String()
			for _, m := range most.Nodes() {
				if m.Data.Masked().Contains(inner) || m.Mgmt.Masked().Contains(inner) {
					t.Errorf("%s, which %s gives %s, is in the network of %s", inner, underlay, n, m)
				}
			}
		}
	}
}

// TestNebula makes the certificates of every node. The CA's key is not kept, and
// no node's is for others to read.
func TestNebula(t *testing.T) {
	s, err := system.Load(systems.FS, "nebula+direct")
	if err != nil {
		t.Fatal(err)
	}
	for _, lack := range s.Missing() {
		t.Skip(lack)
	}
	if err := s.Build(t.Context(), gobuild.Path); err != nil {
		t.Skip(err)
	}
	dir := folder(t)
	for name, text := range rendered(t, "nebula", dir) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := s.Programs()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(programs["nebula-cert"])+":"+os.Getenv("PATH"))
	run(t, dir, "sh", "certificates.sh")
	if _, err := os.Stat(filepath.Join(dir, "ca")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the CA's key is there: %v", err)
	}
	for _, host := range []string{"c1-n", "c2-n"} {
		run(t, dir, "nebula-cert", "verify", "-ca", "ca.crt", "-crt", host+"/node.crt")
		if info, err := os.Stat(filepath.Join(dir, host, "node.key")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key of %s may be read by others: %v", host, err)
		}
		run(t, dir, programs["nebula"], "-test", "-config", host+"/config.yml")
	}
}

// folder is one as a user may name it for a run.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a run's folder")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rendered are the files of a system for two clusters of a node each.
func rendered(t *testing.T, name, dir string) map[string]string {
	t.Helper()
	p, err := system.LoadPlugin(systems.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := system.ValuesFor(&topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"n"}}, {Name: "c2", Nodes: []string{"n"}}},
		Service:  "c1/n", Client: "c2/n",
	}, dir, 8080)
	if err != nil {
		t.Fatal(err)
	}
	files, err := p.Render(v)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestHAProxy makes the gateways' certificates and has HAProxy read its files.
func TestHAProxy(t *testing.T) {
	p, err := system.LoadPlugin(systems.FS, "haproxy-mtls")
	if err != nil {
		t.Fatal(err)
	}
	for _, lack := range p.Missing() {
		t.Skip(lack)
	}
	dir := folder(t)
	for name, text := range rendered(t, "haproxy-mtls", dir) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "sh", "certificates.sh")
	ca := x509.NewCertPool()
	ca.AddCert(certificate(t, filepath.Join(dir, "ca.crt")))
	for _, name := range []string{"exporter", "importer"} {
		c := certificate(t, filepath.Join(dir, name+".pem"))
		if _, err := c.Verify(x509.VerifyOptions{Roots: ca, DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(filepath.Join(dir, name+".pem")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key of %s may be read by others: %v, %v", name, info.Mode(), err)
		}
		run(t, dir, "haproxy", "-c", "-f", name+".cfg")
	}
}

// TestIngress holds which nodes the forms of the ingress pass requests to, and
// has HAProxy read their file.
func TestIngress(t *testing.T) {
	lab := &topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "w1", "w2"}}, {Name: "users", Nodes: []string{"tester"}}},
		Service:  "c1/w1", Replicas: []topology.Ref{"c1/w2", "c1/head"}, Client: "users/tester",
	}
	for name, want := range map[string]string{
		"ingress":      "service 10.1.0.2:8080, c1-w2 10.1.0.3:8080",
		"ingress-head": "service 10.1.0.2:8080, c1-w2 10.1.0.3:8080, c1-head 10.1.0.1:8080",
		// The Service, at the head's own port of it, by three backends in turn.
		"ingress-service": "service 10.1.0.1:8080, service 10.1.0.1:8080, service 10.1.0.1:8080",
	} {
		p, err := system.LoadPlugin(systems.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := system.ValuesFor(lab, t.TempDir(), 8080)
		if err != nil {
			t.Fatal(err)
		}
		files, err := p.Render(v)
		if err != nil {
			t.Fatal(err)
		}
		var servers []string
		for line := range strings.Lines(files["haproxy.cfg"]) {
			if server, ok := strings.CutPrefix(strings.TrimSpace(line), "server "); ok {
				servers = append(servers, server)
			}
		}
		if got := strings.Join(servers, ", "); got != want {
			t.Errorf("%s passes requests to %s, want %s", name, got, want)
		}
		if p.Missing() != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(v.Dir, "haproxy.cfg"), []byte(files["haproxy.cfg"]), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, v.Dir, "haproxy", "-c", "-f", "haproxy.cfg")
	}
}

func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s holds no certificate", path)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What the lab has a cluster run is what Skerry ships for any.
func TestProxyIsAsShipped(t *testing.T) {
	text, err := fs.ReadFile(systems.FS, "skerry-proxy/proxy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"rbac.yaml", "daemonset.yaml"} {
		shipped, err := os.ReadFile(filepath.Join("../deploy/proxy", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), string(shipped)) {
			t.Errorf("skerry-proxy/proxy.yaml does not have deploy/proxy/%s as it is: put it there again", file)
		}
	}
}
