package preflight

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair/classify"
)

// need is something that clusters need of the kernel, or a program of the machine.
type need struct {
	// what it is called, and by what it is needed.
	what, by string
	// remedy is what brings it, instead what does without; that may be empty.
	remedy, instead string
	// try does, in namespaces of its own, what clusters will do.
	try func() error
}

// FeatureError says that the kernel lacks what clusters need.
type FeatureError struct {
	// Feature by the name of its module or controller, and what needs it.
	Feature, By string
	// Remedy is what brings it, and does without where something does.
	Remedy string
	// Err is what the kernel, or the program that asked it, said.
	Err error
}

// Error names the feature, what needs it, and what the kernel said.
func (e *FeatureError) Error() string {
	return fmt.Sprintf("this kernel has no %s, which %s needs: %v", e.Feature, e.By, e.Err)
}

// Unwrap gives what the kernel said.
func (e *FeatureError) Unwrap() error { return e.Err }

// Hint says what brings the feature, or does without.
func (e *FeatureError) Hint() string { return e.Remedy }

// ProgramError says that a program of the machine is not there.
type ProgramError struct{ Program, Package, By string }

// Error names the program and what needs it.
func (e *ProgramError) Error() string {
	return fmt.Sprintf("the program %s is not installed, which %s needs", e.Program, e.By)
}

// Hint says what installs it.
func (e *ProgramError) Hint() string { return "apt-get install " + e.Package + "; './setup kube' does" }

// packages of Debian that have the programs which rules are set by.
var packages = map[string]string{"nft": "nftables", "iptables": "iptables", "ip6tables": "iptables", "ipset": "ipset"}

// missing tries a need: nil where it is met.
func (n need) missing() error {
	err := n.try()
	if err == nil {
		return nil
	}
	if gone, ok := errors.AsType[*exec.Error](err); ok && errors.Is(err, exec.ErrNotFound) {
		return &ProgramError{Program: gone.Name, Package: packages[gone.Name], By: n.by}
	}
	remedy := n.remedy
	if n.instead != "" {
		remedy += "; " + n.instead + " does without"
	}
	return &FeatureError{Feature: n.what, By: n.by, Remedy: remedy, Err: err}
}

// module is the remedy where a feature is a module of the kernel.
func module(name, option string) string {
	return "modprobe " + name + ", or a kernel with " + option
}

// needs of a spec, on nodes with IPv6 or without, in the order in which they are tried.
func needs(s spec.Spec, dual bool) []need {
	var all []need
	for _, controller := range []string{"cpu", "memory", "pids"} {
		all = append(all, need{
			"control group controller " + controller, "a kubelet",
			"mount its hierarchy, or cgroup2 on /sys/fs/cgroup, and start the kernel without cgroup_disable=" + controller, "", tryController(controller),
		})
	}
	all = append(all,
		need{"overlayfs", "containerd", module("overlay", "CONFIG_OVERLAY_FS"), "", fresh(tryOverlay)},
		need{"nf_tables that nft can use", "a node", module("nf_tables", "CONFIG_NF_TABLES, CONFIG_NFT_MASQ, CONFIG_NFT_REJECT and CONFIG_NFT_FIB_INET"), "", fresh(tryNFTables)})
	if dual {
		family := func(what, remedy string, try func() error) {
			all = append(all, need{what, "family: dual", remedy, "family: ipv4", fresh(try)})
		}
		family("IPv6", "start it without ipv6.disable=1, or take one with CONFIG_IPV6", tryIPv6)
		family("nf_tables of IPv6 that nft can use", module("nf_tables", "CONFIG_NF_TABLES_IPV6 and CONFIG_NFT_FIB_IPV6"), tryNFTables6)
	}
	cni := func(what, remedy string, try func() error) {
		all = append(all, need{what, "cni: " + s.CNI, remedy, "cni: " + spec.CNIPtp, fresh(try)})
	}
	proxy := func(what, remedy string, try func() error) {
		all = append(all, need{what, "proxy: " + s.Proxy, remedy, "proxy: " + spec.ProxyNFTables, fresh(try)})
	}
	if s.Bridged() {
		cni("bridge", module("bridge", "CONFIG_BRIDGE"), tryLink(&netlink.Bridge{}))
		cni("br_netfilter", module("br_netfilter", "CONFIG_BRIDGE_NETFILTER"), tryBridgeFilter)
	}
	if s.Tunnels() {
		cni("vxlan", module("vxlan", "CONFIG_VXLAN"), tryLink(&netlink.Vxlan{VxlanId: 1}))
	}
	if s.Proxy == spec.ProxyIPVS {
		proxy("ip_vs", module("ip_vs", "CONFIG_IP_VS"), tryIPVS)
		proxy("dummy", module("dummy", "CONFIG_DUMMY"), tryLink(&netlink.Dummy{}))
		proxy("ip_set that ipset can use", module("ip_set_hash_ipport", "CONFIG_IP_SET_HASH_IPPORT"), tryIPSet)
	}
	if s.Proxy == spec.ProxyIPTables || s.Proxy == spec.ProxyIPVS {
		proxy("ip_tables that iptables can use", module("ip_tables", "CONFIG_IP_NF_NAT, or CONFIG_NFT_COMPAT"), tryIPTables("iptables"))
		if dual {
			proxy("ip6_tables that ip6tables can use", module("ip6_tables", "CONFIG_IP6_NF_NAT, or CONFIG_NFT_COMPAT"), tryIPTables("ip6tables"))
		}
	}
	return all
}

// fresh has a trial leave nothing.
func fresh(try func() error) func() error { return func() error { return host.Fresh(try) } }

var errNoGroup = errors.New("no control group has it")

func tryController(name string) func() error {
	return func() error {
		lacking, err := host.LackingControllers(name)
		if err == nil && len(lacking) > 0 {
			err = errNoGroup
		}
		return err
	}
}

// tryOverlay mounts one as containerd does in nodes: all of it on a tmpfs.
func tryOverlay() error {
	const at = "/run"
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	var options []string
	for _, part := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(at, part), 0o755); err != nil {
			return err
		}
		options = append(options, part+"dir="+filepath.Join(at, part))
	}
	if err := unix.Mount("overlay", filepath.Join(at, "merged"), "overlay", 0, strings.Join(options[:3], ",")); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	return nil
}

// tryNFTables sets rules of the kinds that nodes and kube-proxy have.
func tryNFTables() error {
	return rules(`table ip skerry {
	map services { type ipv4_addr . inet_proto . inet_service : verdict; }
	chain endpoint { meta l4proto tcp dnat to 192.0.2.1:80; }
	chain nobody { reject; }
	chain service { numgen random mod 1 vmap { 0 : goto endpoint }; }
	chain prerouting { type nat hook prerouting priority dstnat; fib daddr type local ip daddr . meta l4proto . th dport vmap @services; }
	chain postrouting { type nat hook postrouting priority srcnat; masquerade; }
}
`, "nft", "-f", "-")
}

// tryIPv6 has a network pass packets of IPv6 on.
func tryIPv6() error {
	return os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0)
}

// tryNFTables6 sets rules of the kinds that dual nodes have besides.
func tryNFTables6() error {
	return rules(`table ip6 skerry {
	chain nobody { reject; }
	chain prerouting { type nat hook prerouting priority dstnat; fib daddr type local meta l4proto tcp dnat to [2001:db8::1]:80; }
	chain postrouting { type nat hook postrouting priority srcnat; masquerade; }
}
`, "nft", "-f", "-")
}

// tryIPTables sets a rule of the kinds that kube-proxy has, by the program of a family.
// The folder of its lock is one of its own.
func tryIPTables(program string) func() error {
	return func() error {
		if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("mount tmpfs: %w", err)
		}
		return rules("", program, "-t", "nat", "-A", "POSTROUTING", "-m", "comment", "--comment", "skerry",
			"-m", "statistic", "--mode", "random", "--probability", "0.5", "-m", "addrtype", "--src-type", "LOCAL", "-j", "MASQUERADE", "--random-fully")
	}
}

func tryIPSet() error { return rules("", "ipset", "create", "skerry", "hash:ip,port") }

// rules runs a program that sets rules, with what it reads; its error is the first
// line that it says.
func rules(text, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(text)
	said, err := cmd.CombinedOutput()
	if line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n"); err != nil && line != "" {
		return fmt.Errorf("%s: %s", name, strings.TrimSuffix(line, "."))
	}
	return err
}

// tryLink makes a link of a kind.
func tryLink(link netlink.Link) func() error {
	return func() error {
		link.Attrs().Name = "skerry0"
		if err := netlink.LinkAdd(link); err != nil {
			return fmt.Errorf("make a link of kind %s: %w", link.Type(), err)
		}
		return nil
	}
}

// tryBridgeFilter looks for the sysctl by which a node has rules see what passes its
// bridge.
func tryBridgeFilter() error {
	_, err := os.Stat(classify.BridgeCall)
	return err
}

func tryIPVS() error {
	if _, err := netlink.GenlFamilyGet("IPVS"); err != nil {
		return fmt.Errorf("ask for its family of generic netlink: %w", err)
	}
	return nil
}
