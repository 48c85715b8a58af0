package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteHosts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), RegistryName)
	if err := writeHosts(dir, "172.31.1.1:5000"); err != nil {
		t.Fatal(err)
	}
	const want = `server = "http://172.31.1.1:5000"

[host."http://172.31.1.1:5000"]
capabilities = ["pull", "resolve"]
`
	if text, err := os.ReadFile(filepath.Join(dir, "hosts.toml")); err != nil || string(text) != want {
		t.Errorf("got %v\n%s", err, text)
	}
}
