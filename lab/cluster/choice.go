package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
)

// Choice is what can be chosen of clusters; all of a lab have the same. Its zero value
// is the default.
type Choice struct {
	// CNI gives pods their addresses and ways: one of CNIs; ptp where it is empty.
	CNI string
	// Proxy is how kube-proxy leads to the pods of Services: one of Proxies; nftables
	// where it is empty.
	Proxy string
	// Pods and Services are the ranges of addresses of every cluster alike. Of one that
	// is not valid, each cluster has its own.
	Pods, Services netip.Prefix
}

// Names of a CNI.
const (
	// CNIPtp gives each pod a link to its node, which routes between them.
	CNIPtp = "ptp"
	// CNIBridge joins the pods of a node by a bridge; the nodes route.
	CNIBridge = "bridge"
	// CNIFlannel is a bridge in each node, and tunnels between them.
	CNIFlannel = "flannel"
)

// Names of a proxy: modes of kube-proxy, or that there is none.
const (
	ProxyNFTables = "nftables"
	ProxyIPTables = "iptables"
	ProxyIPVS     = "ipvs"
	ProxyNone     = "none"
)

// CNIs lists the names that a Choice may have.
func CNIs() []string { return []string{CNIPtp, CNIBridge, CNIFlannel} }

// Proxies lists the names that a Choice may have.
func Proxies() []string { return []string{ProxyNFTables, ProxyIPTables, ProxyIPVS, ProxyNone} }

// complete has the defaults in place of what is empty, and refuses names that there
// are not.
func (c Choice) complete() (Choice, error) {
	c.CNI, c.Proxy = cmp.Or(c.CNI, CNIPtp), cmp.Or(c.Proxy, ProxyNFTables)
	switch {
	case !slices.Contains(CNIs(), c.CNI):
		return c, fmt.Errorf("there is no CNI %q", c.CNI)
	case !slices.Contains(Proxies(), c.Proxy):
		return c, fmt.Errorf("there is no proxy %q", c.Proxy)
	}
	return c, nil
}

// programs that belong to one CNI alone.
var ofCNI = map[string][]string{
	"bridge":  {CNIBridge, CNIFlannel},
	"flannel": {CNIFlannel},
}

// Needs says whether clusters start a program of kube.Catalogue.
func (c Choice) Needs(program string) bool {
	of, some := ofCNI[program]
	return !some || slices.Contains(of, c.CNI)
}

// Bridged says that the pods of a node share a bridge.
func (c Choice) Bridged() bool { return c.CNI == CNIBridge || c.CNI == CNIFlannel }

// plugins of CNI that containerd calls.
func (c Choice) plugins() []string {
	main := CNIPtp
	if c.Bridged() {
		main = CNIBridge
	}
	return []string{main, "loopback", "host-local", "portmap", "tuning"}
}

// MTU of pods' interfaces, 0 for that of their node's: a tunnel takes its headers of
// each packet.
func (c Choice) MTU() int {
	const ethernet, vxlan = 1500, 50
	if c.CNI == CNIFlannel {
		return ethernet - vxlan
	}
	return 0
}

// tunnels says that what goes from node to node does so by routes that are not ours.
func (c Choice) tunnels() bool { return c.CNI == CNIFlannel }

// filterBridged has the rules of the calling thread's node apply to what passes its
// bridge, too: a pod that was asked by a Service's address answers another of its node
// without the detour on which that address is put back.
func (c Choice) filterBridged(dual bool) error {
	if !c.Bridged() {
		return nil
	}
	filters := []string{bridgeFilter}
	if dual {
		filters = append(filters, bridgeFilter6)
	}
	for _, filter := range filters {
		if err := os.WriteFile(filter, []byte("1"), 0); err != nil {
			return fmt.Errorf("filter what passes the bridge: %w", err)
		}
	}
	return nil
}

// Sysctls that br_netfilter brings.
const (
	bridgeFilter  = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	bridgeFilter6 = "/proc/sys/net/bridge/bridge-nf-call-ip6tables"
)
