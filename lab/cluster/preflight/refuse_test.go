package preflight

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/topology"
)

// pairs is a lab of two clusters of two nodes.
var pairs = topology.Topology{Clusters: []topology.Cluster{
	{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head", "worker"}},
}}

// roomy is a machine that nothing speaks against.
func roomy() machine {
	return machine{
		now:   time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC),
		built: time.Date(2026, time.November, 21, 12, 30, 0, 0, time.UTC), // by a clock that is ahead by less than the slack
		dir:   "/run/skerry", memory: 8e9, disk: 8e9, watchers: 54, cores: 2, total: 1 << 30,
		subnets: []subnet{{"eth0", netip.MustParsePrefix("192.0.2.0/24")}},
	}
}

func capacityOf(head spec.Capacity) map[topology.Ref]spec.Capacity {
	return map[topology.Ref]spec.Capacity{"c1/head": head}
}

// spoilt is a machine, or what is asked of it, that something speaks against; for what
// is taken there is nothing to want.
type spoilt struct {
	spoil      func(m *machine, s *spec.Spec)
	want, hint string
}

func refuses(t *testing.T, cases map[string]spoilt) {
	t.Helper()
	for name, c := range cases {
		m, s := roomy(), spec.Spec{}
		c.spoil(&m, &s)
		err := m.refuse(&pairs, s)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		hinted, ok := errors.AsType[interface {
			error
			Hint() string
		}](err)
		if !ok || hinted.Error() != c.want || hinted.Hint() != c.hint {
			t.Errorf("%s: got %v, want %s; hint %s", name, err, c.want, c.hint)
		}
	}
}

// A dual lab wants its ranges of IPv6 to be free, too; they cannot be chosen.
func TestRefuseDual(t *testing.T) {
	dual := pairs
	dual.Dual = true
	m := roomy()
	m.subnets = append(m.subnets, subnet{"eth0", netip.MustParsePrefix("fd00::/64")})
	if err := m.refuse(&dual, spec.Spec{}); err != nil {
		t.Error(err)
	}
	m.subnets = append(m.subnets, subnet{"eth1", netip.MustParsePrefix("fd73:6b65:7279:102::/64")})
	if err := m.refuse(&pairs, spec.Spec{}); err != nil {
		t.Errorf("a lab without IPv6: %v", err)
	}
	overlap, ok := errors.AsType[*OverlapError](m.refuse(&dual, spec.Spec{}))
	if want := "services of cluster c2, fd73:6b65:7279:102::/112, overlap fd73:6b65:7279:102::/64, the network of this machine's interface eth1"; !ok || overlap.Error() != want {
		t.Fatalf("got %v, want %s", overlap, want)
	}
	if want := "take kubernetes.family out of the file: those of IPv6 are the same in every lab"; overlap.Hint() != want {
		t.Errorf("hint %s, want %s", overlap.Hint(), want)
	}
}

func TestRefuse(t *testing.T) {
	refuses(t, map[string]spoilt{
		"nothing": {func(*machine, *spec.Spec) {}, "", ""},
		"the network of eth0 is that of pods": {
			func(m *machine, _ *spec.Spec) {
				m.subnets = append(m.subnets, subnet{"eth1", netip.MustParsePrefix("10.102.3.0/24")})
			},
			"pods of cluster c2, 10.102.0.0/16, overlap 10.102.3.0/24, the network of this machine's interface eth1",
			"write kubernetes: {pods: 172.16.0.0/16} in the file, or another range that is free here",
		},
		"few instances of inotify": {
			func(m *machine, _ *spec.Spec) { m.watchers = 53 },
			"Kubernetes on 4 nodes of 2 clusters wants 54 instances of inotify, and 53 instances are free",
			"raise it by 'sysctl --write fs.inotify.max_user_instances=1024', or take clusters or nodes out of the topology",
		},
		"a network that holds all of 10": {
			func(m *machine, s *spec.Spec) {
				m.subnets = []subnet{{"wan0", netip.MustParsePrefix("10.0.0.0/8")}, {"docker0", netip.MustParsePrefix("172.16.0.0/15")}}
				s.Pods = netip.MustParsePrefix("172.18.0.0/16")
			},
			"services of cluster c1, 10.201.0.0/16, overlap 10.0.0.0/8, the network of this machine's interface wan0",
			"write kubernetes: {services: 172.19.0.0/16} in the file, or another range that is free here",
		},
		"chosen ranges that are free": {
			func(m *machine, s *spec.Spec) {
				m.subnets = []subnet{{"wan0", netip.MustParsePrefix("10.0.0.0/8")}}
				s.Pods, s.Services = netip.MustParsePrefix("172.18.0.0/16"), netip.MustParsePrefix("172.19.0.0/16")
			}, "", "",
		},
		"no range to name": {
			func(m *machine, _ *spec.Spec) { m.subnets = []subnet{{"tun0", netip.MustParsePrefix("0.0.0.0/0")}} },
			"pods of cluster c1, 10.101.0.0/16, overlap 0.0.0.0/0, the network of this machine's interface tun0",
			"set kubernetes.pods in the file to a range that is free here",
		},
		"memory": {
			func(m *machine, _ *spec.Spec) { m.memory = 1.79e9 },
			"Kubernetes on 4 nodes of 2 clusters wants 1.80 GB of memory, and 1.79 GB are free",
			"free some, or take clusters or nodes out of the topology",
		},
		"memory that is enough": {func(m *machine, _ *spec.Spec) { m.memory = 1.8e9 }, "", ""},
		"disk": {
			func(m *machine, _ *spec.Spec) { m.disk = 1e6 },
			"Kubernetes on 4 nodes of 2 clusters wants 0.58 GB of disk at /run/skerry, and 0.00 GB are free",
			"free some, or take clusters or nodes out of the topology",
		},
		"a clock of 1970": {
			func(m *machine, _ *spec.Spec) { m.now, m.built = time.Unix(0, 0), time.Unix(0, 0) },
			"the clock says 1970-01-01T00:00:00Z, before 2026-01-01T00:00:00Z, which is past: certificates of clusters would not hold",
			"set the machine's clock; 'date --set' does, or a client of NTP",
		},
		"a clock before this program": {
			func(m *machine, _ *spec.Spec) { m.built = m.now.Add(2 * time.Hour) },
			"the clock says 2026-11-21T12:00:00Z, before 2026-11-21T14:00:00Z, which is past: certificates of clusters would not hold",
			"set the machine's clock; 'date --set' does, or a client of NTP",
		},
	})
}

func TestRefuseCapacity(t *testing.T) {
	refuses(t, map[string]spoilt{
		"a node of more cores than there are": {
			func(_ *machine, s *spec.Spec) { s.Capacity = capacityOf(spec.Capacity{MilliCPU: 2001}) },
			"node c1/head is to have 2.001 cores, and this machine has 2",
			"write at most 2 for its cpu in kubernetes.nodes, or leave that out for all there is",
		},
		"a node of more memory than there is": {
			func(_ *machine, s *spec.Spec) { s.Capacity = capacityOf(spec.Capacity{Memory: 2 << 30}) },
			"node c1/head is to have 2048 MiB of memory, and this machine has 1024 MiB",
			"write at most 1024 MiB for its memory in kubernetes.nodes, or leave that out for all there is",
		},
		"a node of all there is": {
			func(_ *machine, s *spec.Spec) {
				s.Capacity = capacityOf(spec.Capacity{MilliCPU: 2000, Memory: 1 << 30})
			}, "", "",
		},
	})
}

// What the machine says of itself is read as it is.
func TestLook(t *testing.T) {
	before := time.Now()
	m, err := look(filepath.Join(t.TempDir(), "not", "there"), before)
	if err != nil || m.memory == 0 || m.disk == 0 || m.cores == 0 || m.total < m.memory || m.now != before || m.built.After(time.Now()) {
		t.Errorf("%+v, %v", m, err)
	}
	for text, want := range map[string]uint64{
		"MemTotal:       24731068 kB\nMemFree:        20610992 kB\nMemAvailable:   1024 kB\n": 1 << 20,
		"MemTotal: 1 kB\n":        0,
		"MemAvailable:   many kB": 0,
		"":                        0,
	} {
		got, err := available(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
}

// Each choice tries what it needs and no more, and what is not there is named with
// what brings it.
func TestNeeds(t *testing.T) {
	always := []string{"control group controller cpu", "control group controller memory", "control group controller pids", "overlayfs", "nf_tables that nft can use"}
	six := []string{"IPv6", "nf_tables of IPv6 that nft can use"}
	for _, c := range []struct {
		spec.Spec
		dual bool
		more []string
	}{
		{spec.Spec{}, false, nil},
		{spec.Spec{Proxy: spec.ProxyNone}, false, nil},
		{spec.Spec{CNI: spec.CNIBridge}, false, []string{"bridge", "br_netfilter"}},
		{spec.Spec{CNI: spec.CNIFlannel}, false, []string{"bridge", "br_netfilter", "vxlan"}},
		{spec.Spec{Proxy: spec.ProxyIPTables}, false, []string{"ip_tables that iptables can use"}},
		{spec.Spec{Proxy: spec.ProxyIPVS}, false, []string{"ip_vs", "dummy", "ip_set that ipset can use", "ip_tables that iptables can use"}},
		{spec.Spec{}, true, six},
		{spec.Spec{Proxy: spec.ProxyIPTables}, true, append(six[:2:2], "ip_tables that iptables can use", "ip6_tables that ip6tables can use")},
	} {
		s, err := c.Complete(&pairs)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range needs(s, c.dual) {
			got = append(got, n.what)
		}
		if want := append(always[:len(always):len(always)], c.more...); strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%+v needs %q, want %q", c.Spec, got, want)
		}
	}
}

func TestMissing(t *testing.T) {
	n := need{what: "ip_vs", by: "proxy: ipvs", remedy: module("ip_vs", "CONFIG_IP_VS"), instead: "proxy: nftables"}
	for err, want := range map[error][2]string{
		nil: {},
		unix.ENOENT: {
			"this kernel has no ip_vs, which proxy: ipvs needs: no such file or directory",
			"modprobe ip_vs, or a kernel with CONFIG_IP_VS; proxy: nftables does without",
		},
		&exec.Error{Name: "ipset", Err: exec.ErrNotFound}: {
			"the program ipset is not installed, which proxy: ipvs needs", "apt-get install ipset; './setup kube' does",
		},
	} {
		n.try = func() error { return err }
		got := n.missing()
		if err == nil {
			if got != nil {
				t.Errorf("what is there is missing: %v", got)
			}
			continue
		}
		hinted, ok := errors.AsType[interface {
			error
			Hint() string
		}](got)
		if !ok || [2]string{hinted.Error(), hinted.Hint()} != want {
			t.Errorf("got %v, want %q", got, want)
		}
	}
}

// Trials answer for this machine, and leave nothing. What a kernel or a machine has not
// is taken from it by a program that says no.
func TestTrials(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces are made")
	}
	before, err := filepath.Glob("/run/*")
	if err != nil {
		t.Fatal(err)
	}
	tries := []func() error{fresh(tryOverlay), fresh(tryNFTables)}
	if _, err := os.Stat("/proc/sys/net/ipv6/conf"); err == nil {
		tries = append(tries, fresh(tryIPv6), fresh(tryNFTables6))
	}
	for _, try := range tries {
		if err := try(); err != nil {
			t.Errorf("clusters of this machine have it: %v", err)
		}
	}
	dir := t.TempDir()
	refuse := "#!/bin/sh\ncat >/dev/null\necho 'Could not process rule: Operation not supported' >&2\necho more >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "nft"), []byte(refuse), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	if err := fresh(tryNFTables)(); err == nil || err.Error() != "nft: Could not process rule: Operation not supported" {
		t.Errorf("a program that says no: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := fresh(tryNFTables)(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("no program: %v", err)
	}
	if after, err := filepath.Glob("/run/*"); err != nil || strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("/run has %v, and had %v", after, before)
	}
}
