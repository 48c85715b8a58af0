package cluster

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"skerry.dev/skerry/lab/cluster/pki"
	"skerry.dev/skerry/lab/cluster/spec"
)

// flannelUser is who flanneld calls the API server as; its manifest gives it rights.
const flannelUser = "flannel"

// annotations of a node as it is registered. flanneld adds its own, and needs some to
// be there.
func annotations(s spec.Spec, m member) map[string]string {
	if !s.Tunnels() {
		return nil
	}
	all := map[string]string{"flannel.alpha.coreos.com/public-ip-overwrite": m.Data.Addr().String()}
	if m.Data6.IsValid() {
		all["flannel.alpha.coreos.com/public-ipv6-overwrite"] = m.Data6.Addr().String()
	}
	return all
}

// startFlannel has flanneld carry packets from the pods of one node to those of
// another, by VXLAN over the data network, and waits until it does.
func (c *Cluster) startFlannel(ctx context.Context, a pki.Authority) error {
	if !c.options.Tunnels() {
		return nil
	}
	manifest, err := c.settings().render("manifests/flannel.yaml")
	if err != nil {
		return err
	}
	if err := c.apply(ctx, manifest); err != nil {
		return err
	}
	for _, m := range c.members {
		if err := c.startFlanneld(a, m); err != nil {
			return err
		}
	}
	for _, m := range c.members {
		if err := c.await(ctx, "flanneld at node "+m.String(), func(context.Context) error { return c.tunnelled(m) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startFlanneld(a pki.Authority, m member) error {
	dir := c.dirOf(m)
	kubeconfig, network := filepath.Join(dir, "flannel.kubeconfig"), filepath.Join(dir, "flannel.json")
	if err := c.writeKubeconfig(a, pkix.Name{CommonName: flannelUser}, kubeconfig, apiAt(c.plane.address)); err != nil {
		return err
	}
	text, err := c.settings().render("files/flannel.json")
	if err != nil {
		return err
	}
	if err := os.WriteFile(network, text, 0o644); err != nil {
		return err
	}
	// It is told which node it is at by its environment alone.
	return c.startProgram(m, "flanneld", []string{
		"env", "NODE_NAME=" + m.Host(), c.options.Programs["flannel"],
		"--kube-subnet-mgr", "--kubeconfig-file=" + kubeconfig, "--net-config-path=" + network,
		"--iface=data", "--iptables-forward-rules=false",
	})
}

var errNoTunnel = errors.New("it has no tunnel to the other nodes")

// tunnelled looks whether a node has a route to the pods of each other.
func (c *Cluster) tunnelled(m member) error {
	there := map[netip.Prefix]bool{}
	err := c.lab.Within(m.Ref(), func() error {
		routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
		for _, r := range routes {
			if r.Dst == nil {
				continue
			}
			ones, _ := r.Dst.Mask.Size()
			if address, ok := netip.AddrFromSlice(r.Dst.IP); ok {
				there[netip.PrefixFrom(address.Unmap(), ones)] = true
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("routes of node %s: %w", m, err)
	}
	for _, other := range c.members {
		if other.Node != m.Node && (!there[other.pods] || other.pods6.IsValid() && !there[other.pods6]) {
			return errNoTunnel
		}
	}
	return nil
}
