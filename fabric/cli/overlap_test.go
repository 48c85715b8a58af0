package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/fabric/identity/identitytest"
	"skerry.dev/skerry/internal/conntest"
	"skerry.dev/skerry/internal/thread"
)

// cluster is a network namespace in which all of 10.0.0.0/24 is local.
type cluster struct {
	name, wan string
	netns     *os.File
}

func (c cluster) within(f func() error) error {
	return thread.InNet(int(c.netns.Fd()), f)
}

// newClusters makes two, with a link between them and nothing else in common.
func newClusters(t *testing.T) [2]cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces")
	}
	all := [2]cluster{{name: "c1", wan: "192.0.2.1"}, {name: "c2", wan: "192.0.2.2"}}
	for i := range all {
		err := thread.InFreshNet(func() (err error) {
			if all[i].netns, err = os.Open("/proc/thread-self/ns/net"); err != nil || i == 0 {
				return err
			}
			return netlink.LinkAdd(&netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: "wan"}, PeerName: "wan", PeerNamespace: netlink.NsFd(int(all[0].netns.Fd())),
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { all[i].netns.Close() })
	}
	for _, c := range all {
		err := c.within(func() error {
			for device, address := range map[string]string{"lo": "10.0.0.1/24", "wan": c.wan + "/24"} {
				link, err := netlink.LinkByName(device)
				if err != nil {
					return err
				}
				a, err := netlink.ParseAddr(address)
				if err != nil {
					return err
				}
				if err := netlink.AddrAdd(link, a); err != nil {
					return err
				}
				if err := netlink.LinkSetUp(link); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// resources have a cluster export its service, and import that of the other.
const resources = `apiVersion: fabric.skerry.dev/v1alpha1
kind: Peer
metadata: {name: %[1]s}
spec: {gateways: ["%[2]s:4443"]}
---
apiVersion: fabric.skerry.dev/v1alpha1
kind: ServiceExport
metadata: {name: web}
spec: {ports: [{port: 80, backends: ["10.0.0.5:8080"]}]}
---
apiVersion: fabric.skerry.dev/v1alpha1
kind: ServiceImport
metadata: {name: web}
spec: {from: [%[1]s], ports: [{port: 80, listen: ["10.0.0.1:80"]}]}
---
apiVersion: fabric.skerry.dev/v1alpha1
kind: Workload
metadata: {name: cart-of-%[3]s}
spec: {addresses: [10.0.0.9]}
---
apiVersion: fabric.skerry.dev/v1alpha1
kind: AccessPolicy
metadata: {name: carts}
spec:
  action: Allow
  from:
    - {matchLabels: {cluster: c1, workload: cart-of-c1}}
    - {matchLabels: {cluster: c2, workload: cart-of-c2}}
  to: [{}]
`

// run runs a cluster's gateway and its service, which says where it is, until the test
// ends.
func (c cluster) run(t *testing.T, identity string, peer cluster) {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(resources, peer.name, peer.wan, c.name)
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "skerry-gateway"), "--identity", identity, "--resources", dir, "--listen", c.wan+":4443", "--drain", "0s")
	cmd.Stderr = &said
	var service net.Listener
	err := c.within(func() (err error) { // what is begun on a thread is in its namespace
		if service, err = net.Listen("tcp", "10.0.0.5:8080"); err != nil {
			return err
		}
		return cmd.Start()
	})
	if err != nil {
		t.Fatal(err)
	}
	go conntest.Accept(service, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "the service in "+c.name)
		conn.Close()
	})
	t.Cleanup(func() {
		service.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the gateway of %s:\n%s", c.name, said.String())
		}
	})
}

// call is what a client at an address of the cluster hears of its import.
func (c cluster) call(from string) (said string) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	_ = c.within(func() error { // what cannot be reached says nothing
		conn, err := dialer.Dial("tcp", "10.0.0.1:80")
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		text, err := io.ReadAll(conn)
		said = string(text)
		return err
	})
	return said
}

// Two clusters that use the same addresses, for services, clients and gateways, call one
// another: no address of one is ever used in the other, and who a client is does not
// depend on its address alone.
func TestOverlappingAddresses(t *testing.T) {
	clusters := newClusters(t)
	folders := identitytest.New(t, "c1", "c2")
	for i, c := range clusters {
		c.run(t, folders[c.name], clusters[1-i])
	}
	for i, c := range clusters {
		want := "the service in " + clusters[1-i].name
		got := ""
		if !conntest.Eventually(func() bool { // gateways take their time to find one another
			got = c.call("10.0.0.9")
			return got != ""
		}) || got != want {
			t.Errorf("a client in %s hears %q, want %q", c.name, got, want)
		}
		if got := c.call("10.0.0.8"); strings.Contains(got, "service") {
			t.Errorf("a client in %s that is no workload hears %q", c.name, got)
		}
	}
}
