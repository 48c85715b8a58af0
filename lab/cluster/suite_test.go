package cluster_test

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// small is the node of c1 that has less than the machine.
const small topology.Ref = "c1/small"

// suite is the topology that tests of clusters share: a cluster whose nodes stay up, one whose
// programs wait for each other, and one whose nodes boot.
func suite() topology.Topology {
	return topology.Topology{Dual: true, Clusters: []topology.Cluster{
		{Name: "c1", Nodes: []string{"head", "worker", "small"}}, {Name: "c2", Nodes: []string{"head", "worker"}}, {Name: "c3", Nodes: []string{"head", "worker"}},
	}}
}

// alike has all clusters of the lab have the same ranges of IPv4, with pods on bridges and, where
// the machine has it, Services by iptables. (Those that 'skerry up' and 'skerry run' are tested
// with have what is chosen where nothing is: ranges apart, point to point, nftables.)
func alike() spec.Spec {
	s := spec.Spec{
		CNI: spec.CNIBridge, Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16"), Metrics: true, Registry: true,
		Capacity: map[topology.Ref]spec.Capacity{small: {MilliCPU: smallMilli, Memory: smallMemory}},
	}
	if _, err := exec.LookPath("iptables"); err == nil {
		s.Proxy = spec.ProxyIPTables
	}
	return s
}

// site is a cluster of the suite's lab, which each that uses it opens as another process
// does.
type site struct {
	lab  *host.Lab
	name string
}

func (s site) ref(node string) topology.Ref { return topology.Ref(s.name + "/" + node) }
func (s site) head() topology.Ref           { return s.ref("head") }
func (s site) worker() topology.Ref         { return s.ref("worker") }

// host is what Kubernetes calls a node.
func (s site) host(node string) string { return s.name + "-" + node }

// at is a port of a node, at6 the same by IPv6.
func (s site) at(node string, port int) string {
	return s.port(node, port, func(n topology.Node) netip.Prefix { return n.Data })
}

func (s site) at6(node string, port int) string {
	return s.port(node, port, func(n topology.Node) netip.Prefix { return n.Data6 })
}

func (s site) port(node string, port int, of func(topology.Node) netip.Prefix) string {
	n, err := s.lab.Topology.Node(s.ref(node))
	if err != nil {
		return err.Error()
	}
	return net.JoinHostPort(of(n).Addr().String(), strconv.Itoa(port))
}

// named is a test on a cluster that others have, too.
type named struct {
	name string
	run  func(*testing.T, site)
}

// tracks are tests that share the suite's lab, each row in its order and beside the others:
// they wait most of their time.
var tracks = []struct {
	name, cluster string
	tests         []named
}{
	{"waits", "c2", []named{{"stop-plane", stopsPlane}, {"awaits-proxies", awaitsProxies}, {"dual", servesBoth}, {"beside", servesBeside}}},
	{"serves", "c1", []named{
		{"deploy", deploys}, {"replicas", replicates}, {"job", runsAJob}, {"state", seesState}, {"logs", readsLogs}, {"run", runsInAPod},
		{"stand", stands}, {"install", installs}, {"timers", coalescesTimers}, {"evict", evicts},
	}},
	{"bounded", "c1", []named{{"resources", bounded}}},
	{"boots", "c3", []named{{"load", loadsImages}, {"repair", repairs}, {"freeze", freezes}, {"kill", killsANode}, {"reboot", reboots}}},
}

// leavesNothing wants the machine to be as it is now when the test has ended. What is
// taken up after it goes before.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := machine(t)
	t.Cleanup(func() {
		if after := machine(t); !slices.Equal(after, before) {
			t.Errorf("the machine has %v, and had %v", after, before)
		}
	})
}

// All that clusters do is asked of one lab. Afterwards the machine is as before.
func TestClusters(t *testing.T) {
	paths := built(t)
	leavesNothing(t)
	topo, s := suite(), alike()
	if preflight.Refuse(&topo, s, time.Now()) != nil {
		topo.Dual = false // a kernel without IPv6
	}
	if err := preflight.Refuse(&topo, s, time.Now()); err != nil {
		t.Skip(err)
	}
	lab, err := host.Up(t.Context(), topo, host.Options{Name: "cluster-test", Agent: agent, Backend: "auto", Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(); err != nil {
			t.Error(err)
		}
	})
	_, err = cluster.Up(t.Context(), lab, cluster.Options{
		Agent: agent, Now: time.Now(), Programs: paths, PodPrograms: []string{filepath.Join(filepath.Dir(agent), "skerry-proxy")}, Spec: s,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, track := range tracks {
		t.Run(track.name, func(t *testing.T) {
			t.Parallel()
			lab, err := host.Open(lab.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range track.tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, site{lab, track.cluster}) })
			}
		})
	}
}

// deploys has a cluster serve a workload at one node to a client at another, by its
// NodePort, also after it was taken away.
func deploys(t *testing.T, on site) {
	c := open(t, on)
	for range 2 {
		if err := c.Deploy(t.Context(), hello(on)); err != nil {
			t.Fatal(err)
		}
		if said := ask(t, on.lab, on.head(), on.at("worker", helloPort)); said == "" {
			t.Error("the workload says nothing")
		}
		pods, err := c.Pods(t.Context(), helloName)
		if err != nil || len(pods) != 1 || pods[0].Node != on.worker() || pods[0].Use.CPU <= 0 || pods[0].Ended != "" {
			t.Fatalf("its pods are %+v, %v", pods, err)
		}
		wantCubic(t, pods[0].Pid)
		if err := c.Remove(t.Context(), helloName); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(cluster.Kubeconfig(on.lab, on.name)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v", info, err)
	}
}

// wantCubic wants a pod to send as nodes do, whatever the machine does.
func wantCubic(t *testing.T, pid int) {
	t.Helper()
	out, err := exec.Command("nsenter", "--net=/proc/"+strconv.Itoa(pid)+"/ns/net", "ip", "-4", "route", "show", "default").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "congctl cubic") {
		t.Errorf("the pod's default route is %s, %v", out, err)
	}
}
