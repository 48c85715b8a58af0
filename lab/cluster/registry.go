package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"skerry.dev/skerry/lab/host"
)

// RegistryName is what a lab's registry is called by in images: RegistryName/NAME:TAG.
const RegistryName = "registry.skerry.local"

const (
	registryPort = 5000
	// registryFile has where this machine reaches the registry.
	registryFile = "registry"
)

// ErrNoRegistry is of labs that were made without one.
var ErrNoRegistry = errors.New("the lab has no registry")

// Registry is the HOST:PORT that this machine pushes images to. Nodes know them by
// that name, too.
func Registry(lab *host.Lab) (string, error) {
	text, err := os.ReadFile(filepath.Join(lab.Dir(), registryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("lab %s: %w", lab.Name, ErrNoRegistry)
	}
	return strings.TrimSpace(string(text)), err
}

// startRegistry has the first node of the first cluster keep the images of all: at its
// address on mgmt, where no impairment reaches it.
func (c *Cluster) startRegistry() error {
	head := c.members[0]
	if !c.options.Registry || head.Node != c.lab.Topology.Nodes()[0] {
		return nil
	}
	if err := errors.Join(os.MkdirAll(c.plane.dir, 0o700), os.MkdirAll(c.dirOf(head), 0o755)); err != nil {
		return err
	}
	at := netip.AddrPortFrom(head.Mgmt.Addr(), registryPort).String()
	layers := filepath.Join(c.lab.Dir(), "layers")
	if err := c.startProgram(head, "registry", []string{c.options.Agent, "registry", "--listen", at, "--dir", layers}); err != nil {
		return err
	}
	address, err := c.forward("registry-forward", registryPort)
	if err != nil {
		return fmt.Errorf("reach the registry: %w", err)
	}
	// Clients take "localhost" to have no certificate, by whatever name they know 127.0.0.1.
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	address = net.JoinHostPort("localhost", port)
	for _, other := range c.lab.Topology.Clusters {
		for _, name := range []string{RegistryName, address} {
			if err := writeHosts(filepath.Join(dirOf(c.lab, other.Name), "registries", name), at); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(c.lab.Dir(), registryFile), []byte(address+"\n"), 0o644)
}

// writeHosts tells a containerd that the registry of a name is at an address, and
// has no certificate.
func writeHosts(dir, at string) error {
	text := fmt.Sprintf("server = %[1]q\n\n[host.%[1]q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+at)
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o644))
}
