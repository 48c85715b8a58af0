package systems_test

import (
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

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
		if _, err := system.Load(systems.FS, f.Name()); err != nil {
			t.Error(err)
		}
	}
}

// TestHAProxy makes the gateways' certificates and has HAProxy read its files.
func TestHAProxy(t *testing.T) {
	p, err := system.Load(systems.FS, "haproxy-mtls")
	if err != nil {
		t.Fatal(err)
	}
	for _, lack := range p.Missing() {
		t.Skip(lack)
	}
	dir := t.TempDir()
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
	for name, text := range files {
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
