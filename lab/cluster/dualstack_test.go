package cluster_test

import (
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// servesBoth has a cluster of a dual lab serve by IPv6 as by IPv4, to a pod at another node by
// the Service's address.
func servesBoth(t *testing.T, on site) {
	if !on.lab.Topology.Dual {
		t.Skip("the kernel has no IPv6")
	}
	c := open(t, on)
	web := hello(on)
	web.Args = []string{"serve", "hello-world", "--listen", "[::]:8080"}
	near := web
	near.Name, near.NodePort, near.Nodes = "near", 30081, []topology.Ref{on.head()}
	for _, w := range []cluster.Workload{web, near} {
		deployAs(t, c, w)
	}
	services, err := c.ServiceIPs(t.Context(), web.Name)
	if err != nil || len(services) != 2 {
		t.Fatalf("the Service has %v, %v", services, err)
	}
	own := topology.ServiceRange6(slices.IndexFunc(on.lab.Topology.Clusters, func(c topology.Cluster) bool { return c.Name == on.name }))
	if !own.Contains(netip.MustParseAddr(services[1])) {
		t.Errorf("the Service has %s, not of %s", services[1], own)
	}
	inPod := podOf(t, c, near.Name).Pid
	for _, service := range services {
		if got := askFromPod(t, inPod, "http://"+net.JoinHostPort(service, "8080")+"/"); len(got) != len("Hello, World!") {
			t.Errorf("%s: the answer is %q", service, got)
		}
	}
	out, err := exec.Command("nsenter", "--net=/proc/"+strconv.Itoa(inPod)+"/ns/net", "ip", "-6", "route", "show", "default").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "congctl cubic") {
		t.Errorf("the pod's default route of IPv6 is %s, %v", out, err)
	}
}

// dualLink holds that a NodePort of c2 answers a pod of c1 by either family, and its node
// over a link that delays packets of either alike.
func dualLink(t *testing.T, on site, pod cluster.Pod) {
	t.Helper()
	const delay = 20 * time.Millisecond
	does := impair.Impairment{Delay: quantity.Duration(delay)}
	if err := on.lab.SetLinks(t.Context(), []host.Link{{From: "c1", To: "c2", Does: does}, {From: "c2", To: "c1", Does: does}}, 1); err != nil {
		t.Fatal(err)
	}
	node, err := on.lab.Topology.Node(on.worker())
	if err != nil {
		t.Fatal(err)
	}
	at := [2]string{netip.AddrPortFrom(node.Data.Addr(), besidePort).String(), netip.AddrPortFrom(node.Data6.Addr(), besidePort).String()}
	took := [2]time.Duration{time.Hour, time.Minute}
	alike := func() bool { return max(took[0], took[1]) <= min(took[0], took[1])*6/5 }
	for try := 0; try < 5 || try < 50 && !alike(); try++ { // the least is without what else the machine does
		for i, address := range at {
			began := time.Now()
			conn, err := on.lab.Dial(t.Context(), "c1/worker", address)
			if err != nil {
				t.Fatal(err)
			}
			took[i] = min(took[i], time.Since(began))
			_ = conn.Close()
		}
	}
	t.Logf("a connection takes %s by IPv4, %s by IPv6", took[0], took[1])
	if min(took[0], took[1]) < 2*delay || !alike() {
		t.Errorf("a connection over a round trip of %s takes %s by IPv4, %s by IPv6", 2*delay, took[0], took[1])
	}
	for _, address := range at {
		if got := askFromPod(t, pod.Pid, "http://"+address+"/"); len(got) != len("Hello, World!") {
			t.Errorf("from the other cluster's pod %s answers %q", address, got)
		}
	}
}
