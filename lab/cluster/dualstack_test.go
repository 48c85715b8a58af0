package cluster_test

import (
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/topology"
)

// testDual has clusters of a dual lab serve by IPv6 as by IPv4: to a pod at another node by the
// Service's address, and to another cluster's nodes and pods by the NodePort, over a
// link that delays packets of either alike.
func testDual(t *testing.T, paths map[string]string) {
	topo := topology.Topology{Dual: true, Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"n"}}}}
	if err := preflight.Refuse(&topo, spec.Spec{}, time.Now()); err != nil {
		t.Skip(err)
	}
	lab, clusters := takeUp(t, "cluster-dual", topo, cluster.Options{Programs: paths})
	web := cluster.Workload{Name: "web", Nodes: []topology.Ref{"c1/worker"}, Port: 8080, NodePort: 30080, Args: []string{"serve", "hello-world", "--listen", "[::]:8080"}}
	near, far := web, web
	near.Name, near.NodePort, near.Nodes = "near", 30081, []topology.Ref{"c1/head"}
	far.Name, far.Nodes = "far", []topology.Ref{"c2/n"}
	for _, w := range []cluster.Workload{web, near} {
		if err := clusters[0].Deploy(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if err := clusters[1].Deploy(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	services, err := clusters[0].ServiceIPs(t.Context(), web.Name)
	if err != nil || len(services) != 2 {
		t.Fatalf("the Service has %v, %v", services, err)
	}
	if !topology.ServiceRange6(0).Contains(netip.MustParseAddr(services[1])) {
		t.Errorf("the Service has %s, not of %s", services[1], topology.ServiceRange6(0))
	}
	worker, err := lab.Topology.Node("c1/worker")
	if err != nil {
		t.Fatal(err)
	}
	inPod, inOther := podOf(t, clusters[0], near.Name).Pid, podOf(t, clusters[1], far.Name).Pid
	const said = len("Hello, World!")
	for what, ask := range map[string]struct {
		pid  int
		host string
		port string
	}{
		"a pod by the Service's address of IPv4":     {inPod, services[0], "8080"},
		"a pod by the Service's address of IPv6":     {inPod, services[1], "8080"},
		"a pod of another cluster by NodePort, IPv4": {inOther, worker.Data.Addr().String(), "30080"},
		"a pod of another cluster by NodePort, IPv6": {inOther, worker.Data6.Addr().String(), "30080"},
	} {
		if got := askFromPod(t, ask.pid, "http://"+net.JoinHostPort(ask.host, ask.port)+"/"); len(got) != said {
			t.Errorf("%s: the answer is %q", what, got)
		}
	}
	out, err := exec.Command("nsenter", "--net=/proc/"+strconv.Itoa(inPod)+"/ns/net", "ip", "-6", "route", "show", "default").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "congctl cubic") {
		t.Errorf("the pod's default route of IPv6 is %s, %v", out, err)
	}
	dualLink(t, lab, worker)
}

// dualLink holds that the NodePort answers another cluster's node over a link by
// either family alike.
func dualLink(t *testing.T, lab *host.Lab, worker topology.Node) {
	t.Helper()
	const delay = 20 * time.Millisecond
	does := impair.Impairment{Delay: quantity.Duration(delay)}
	if err := lab.SetLinks(t.Context(), []host.Link{{From: "c1", To: "c2", Does: does}, {From: "c2", To: "c1", Does: does}}, 1); err != nil {
		t.Fatal(err)
	}
	took := func(address netip.Addr) time.Duration {
		began := time.Now()
		conn, err := lab.Dial(t.Context(), "c2/n", netip.AddrPortFrom(address, 30080).String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return time.Since(began)
	}
	alike := func(four, six time.Duration) bool { return max(four, six) <= min(four, six)*6/5 }
	four, six := time.Hour, time.Minute
	for try := 0; try < 5 || try < 50 && !alike(four, six); try++ { // the least is without what else the machine does
		four, six = min(four, took(worker.Data.Addr())), min(six, took(worker.Data6.Addr()))
	}
	t.Logf("a connection takes %s by IPv4, %s by IPv6", four, six)
	if min(four, six) < 2*delay || !alike(four, six) {
		t.Errorf("a connection over a round trip of %s takes %s by IPv4, %s by IPv6", 2*delay, four, six)
	}
}
