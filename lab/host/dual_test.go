package host_test

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/capture"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// dual is square with IPv6.
func dual(t *testing.T) topology.Topology {
	t.Helper()
	if _, err := os.Stat("/proc/sys/net/ipv6/conf"); err != nil {
		t.Skip("needs a kernel with IPv6")
	}
	shape := square()
	shape.Dual = true
	return shape
}

// address6 is a node's of IPv6.
func address6(t *testing.T, lab *host.Lab, node topology.Ref) string {
	t.Helper()
	n, err := lab.Topology.Node(node)
	if err != nil {
		t.Fatal(err)
	}
	return n.Data6.Addr().String()
}

// Nodes of a dual lab see each other by IPv6, at once and by the congestion control of
// the lab; their names lead to their addresses of IPv4.
func TestDualLab(t *testing.T) {
	lab := up(t, "dual", dual(t))
	for _, from := range lab.Topology.Nodes() {
		for _, to := range lab.Topology.Nodes() {
			mustSh(t, lab, from.Ref(), "ping -c 1 -W 2 "+to.Data6.Addr().String())
			mustSh(t, lab, from.Ref(), "ping -4 -c 1 -W 2 "+to.Host())
		}
		if out := mustSh(t, lab, from.Ref(), "ip -6 address show tentative"); out != "" {
			t.Errorf("addresses of %s do not hold yet:\n%s", from, out)
		}
		for _, to := range []topology.Ref{"c1/head", "c2/worker"} {
			if to == from.Ref() {
				continue
			}
			if out := mustSh(t, lab, from.Ref(), "ip -6 route get "+address6(t, lab, to)); !strings.Contains(out, "congctl cubic") {
				t.Errorf("%s sends to %s by\n%s", from, to, out)
			}
		}
	}
	again, err := host.Open(lab.Name)
	if err != nil || !again.Topology.Dual {
		t.Errorf("another process takes it for %+v, %v", again.Topology, err)
	}
}

// A lab that nobody asked for IPv6 has none, and passes none on.
func TestSingleLabHasNoIPv6(t *testing.T) {
	lab := up(t, "single", square())
	for _, n := range lab.Topology.Nodes() {
		if out := mustSh(t, lab, n.Ref(), "ip -6 address; ip -6 route"); out != "" {
			t.Errorf("%s has\n%s", n, out)
		}
	}
	set(t, lab, both("c1", "c2", delay(1))...)
	if out := mustSh(t, lab, "c1/head", fmt.Sprintf("nsenter --net=/proc/%d/ns/net sh -c 'ip -6 address; nft list tables ip6'", lab.WAN.Pid)); out != "" {
		t.Errorf("the WAN has\n%s", out)
	}
}

// A link does the same to packets of either family, be it of clusters, of two nodes of
// different ones, or of two nodes of the same; and nothing to those beside it.
func TestDualLinks(t *testing.T) {
	lab := up(t, "dual-links", dual(t))
	alike := func(from, to topology.Ref, want time.Duration) {
		t.Helper()
		n, err := lab.Topology.Node(to)
		if err != nil {
			t.Fatal(err)
		}
		slow(t, rtt(t, lab, from, n.Data.Addr().String()), want)
		slow(t, rtt(t, lab, from, n.Data6.Addr().String()), want)
	}
	beside := func(from, to topology.Ref) {
		t.Helper()
		fast(t, rtt(t, lab, from, address6(t, lab, to)), 10*time.Millisecond)
	}
	set(t, lab, both("c1", "c2", delay(10))...)
	alike("c1/worker", "c2/worker", 20*time.Millisecond)
	beside("c1/worker", "c1/head")
	const pings = 20
	for _, name := range []string{"c1>c2", "c2>c1"} {
		// The questions who has which address are of no link.
		if c := seen(t, lab, name); c.Packets != pings || c.Lost+c.Overflowed+c.Missed > 0 {
			t.Errorf("%s: %+v after %d pings", name, c, pings)
		}
	}
	set(t, lab, host.Link{From: "c1/worker", To: "c2/worker", Does: delay(10)})
	alike("c1/worker", "c2/worker", 10*time.Millisecond)
	beside("c1/worker", "c2/head")
	beside("c1/head", "c2/worker")
	if _, err := os.Stat("/proc/sys/net/bridge"); err == nil {
		set(t, lab, both("c1/head", "c1/worker", delay(10))...)
		alike("c1/head", "c1/worker", 20*time.Millisecond)
		beside("c2/head", "c2/worker")
	}
	set(t, lab)
	beside("c1/worker", "c2/worker")
}

// Nodes of one cluster find one another over a link that loses everything, by IPv6 as
// by IPv4: what says who has which address is no packet of the link.
func TestDualNeighbours(t *testing.T) {
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		t.Skip("needs br_netfilter: packets inside a cluster are bridged")
	}
	lab := upWith(t, dual(t), host.Options{Name: labName("neighbours"), Agent: agent, Backend: "userspace"})
	set(t, lab, both("c1/head", "c1/worker", impair.Impairment{Loss: 1})...)
	for _, to := range []string{"10.1.0.2", address6(t, lab, "c1/worker")} {
		if out, err := sh(t, lab, "c1/head", "ping -c 2 -i 0.05 -W 1 "+to); err == nil {
			t.Errorf("%s answers over a link that loses everything:\n%s", to, out)
		}
		if out := mustSh(t, lab, "c1/head", "ip neighbour show "+to); !strings.Contains(out, "lladdr") {
			t.Errorf("%s is not found: %q", to, out)
		}
	}
	if c := seen(t, lab, "c1/head>c1/worker"); c.Packets != 4 || c.Lost != 4 {
		t.Errorf("of 4 pings the link counts %+v", c)
	}
}

// A duplicated packet of IPv6 arrives twice, over a routed and over a bridged link.
func TestDualDuplicates(t *testing.T) {
	lab := upWith(t, dual(t), host.Options{Name: labName("twice6"), Agent: agent, Backend: "userspace"})
	for _, to := range []topology.Ref{"c2/head", "c1/worker"} {
		if _, err := os.Stat("/proc/sys/net/bridge"); err != nil && to == "c1/worker" {
			t.Skip("needs br_netfilter: packets inside a cluster are bridged")
		}
		does := delay(2)
		does.Duplicate = 1
		set(t, lab, host.Link{From: "c1/head", To: to, Does: does})
		const n = 50
		from := openSocket(t, lab, "c1/head", address6(t, lab, "c1/head"), true)
		all := between(from, openSocket(t, lab, to, address6(t, lab, to), true)).cross(t, n, time.Millisecond)
		if len(all) != 2*n {
			t.Errorf("to %s %d datagrams arrived, want each of %d twice: %+v", to, len(all), n, seen(t, lab, "c1/head>"+string(to)))
			continue
		}
		for i, a := range all {
			if a.number != i/2 || a.flipped > 0 {
				t.Errorf("to %s: number %d is datagram %d, with %d other bits", to, i, a.number, a.flipped)
			}
		}
	}
}

// A node that was killed keeps its addresses of IPv6, and is found by them again.
func TestDualNodeComesBack(t *testing.T) {
	lab := up(t, "dual-kill", dual(t))
	to := address6(t, lab, "c1/worker")
	f, err := lab.Inject(t.Context(), host.Fault{Kind: host.Kill, Node: "c1/worker"})
	if err != nil {
		t.Fatal(err)
	}
	if reaches(t, lab, "c2/head", to) || reaches(t, lab, "c1/head", to) {
		t.Error("a killed node answers")
	}
	if err := lab.Undo(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
	// Also for those who asked for it meanwhile, in vain.
	if !reaches(t, lab, "c2/head", to) || !reaches(t, lab, "c1/head", to) {
		t.Error("it is not found at once")
	}
}

// A capture of a link has its packets of both families, and no others.
func TestDualCapture(t *testing.T) {
	lab := up(t, "dual-capture", dual(t))
	set(t, lab, both("c1", "c2", delay(2))...)
	const pings = 3
	file, _ := record(t, lab, []topology.Ref{"c1/head", "c2/head"}, capture.Options{}, func() {
		for _, to := range []string{"10.2.0.1", address6(t, lab, "c2/head"), address6(t, lab, "c2/worker")} {
			mustSh(t, lab, "c1/head", "ping -c 3 -i 0.02 -W 2 "+to)
		}
	})
	const families, points = 2, 4
	packets, _ := read(t, file)
	if len(packets) != families*points*pings {
		t.Errorf("%d packets are captured, want %d at %d points of %d families", len(packets), pings, points, families)
	}
	six := 0
	for _, p := range packets {
		const typeAt, sourceAt = 12, 22
		if p.data[typeAt] != 0x86 {
			continue
		}
		six++
		if a, ok := netip.AddrFromSlice(p.data[sourceAt : sourceAt+16]); !ok || a.String() != address6(t, lab, "c1/head") && a.String() != address6(t, lab, "c2/head") {
			t.Errorf("one is of %s", a)
		}
	}
	if six != points*pings {
		t.Errorf("%d of them are of IPv6", six)
	}
}
