package cluster_test

import (
	"errors"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/topology"
)

// testChosen has two clusters with the same ranges, pods on bridges and Services by iptables
// stand side by side: each serves its own, also from pod to pod of one node over a Service,
// where the answer would go past the Service's address if its bridge were not filtered; and the
// other by its NodePort.
func testChosen(t *testing.T, paths map[string]string) {
	s := spec.Spec{CNI: spec.CNIBridge, Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16")}
	if _, err := exec.LookPath("iptables"); err == nil {
		s.Proxy = spec.ProxyIPTables
	}
	topo := topology.Topology{Dual: true, Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"n"}}, {Name: "c2", Nodes: []string{"n"}}}}
	if preflight.Refuse(&topo, s, time.Now()) != nil {
		topo.Dual = false // a kernel without IPv6
	}
	if err := preflight.Refuse(&topo, s, time.Now()); err != nil {
		t.Skip(err)
	}
	lab, clusters := takeUp(t, "cluster-chosen", topo, cluster.Options{Programs: paths, Spec: s})
	addresses := map[string]bool{}
	for i, workload := range []string{"hello-world", "static-reply"} { // of 13 and 1000 bytes
		c := clusters[i]
		w := cluster.Workload{Name: "web", Nodes: []topology.Ref{topology.Ref(c.Name + "/n")}, Port: 8080, NodePort: 30080, Args: []string{"serve", workload, "--listen", ":8080"}}
		asker := w
		asker.Name, asker.NodePort = "asker", 30081
		for _, w := range []cluster.Workload{w, asker} {
			if err := c.Deploy(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		service, err := c.ServiceIP(t.Context(), w.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Services.Contains(netip.MustParseAddr(service)) {
			t.Errorf("%s: the Service has %s, not of %s", c.Name, service, s.Services)
		}
		pod, from := podOf(t, c, w.Name), podOf(t, c, asker.Name)
		addresses[pod.IP] = true
		for what, address := range map[string]string{"pod": pod.IP, "Service": service} {
			want := map[string]int{"hello-world": 13, "static-reply": 1000}[workload]
			if got := askFromPod(t, from.Pid, "http://"+address+":8080/"); len(got) != want {
				t.Errorf("%s: its %s answers %q, want %d bytes", c.Name, what, got, want)
			}
		}
	}
	if len(addresses) != 1 {
		t.Errorf("pods of the two clusters have %v, want one address for both", addresses)
	}
	if topo.Dual {
		dualLink(t, lab, 30080, podOf(t, clusters[1], "asker"))
	}
	refusals(t, clusters[0])
}

// refusals are of workloads that cannot be: told at once, by what is wrong.
func refusals(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	w := cluster.Workload{Name: "late", Nodes: []topology.Ref{"c1/n"}, Port: 8080, NodePort: 30080, Args: []string{"serve", "hello-world", "--listen", "0.0.0.0:8080"}}
	err := c.Deploy(t.Context(), w)
	if taken, ok := errors.AsType[*cluster.PortError](err); !ok || taken.Port != 30080 || taken.Service != "default/web" {
		t.Errorf("a port that is taken: %v", err)
	}
	if pods, err := c.Pods(t.Context(), w.Name); err != nil || len(pods) > 0 {
		t.Errorf("it has left %v, %v", pods, err)
	}
	w.NodePort, w.Image = 30090, "example/none:1"
	began := time.Now()
	err = c.Deploy(t.Context(), w)
	if lacks, ok := errors.AsType[*cluster.ImageError](err); !ok || !strings.Contains(lacks.Image, w.Image) || lacks.Node != "c1-n" {
		t.Errorf("an image that is not there: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it was told after %s", took)
	}
	if err := c.Remove(t.Context(), w.Name); err != nil {
		t.Error(err)
	}
}

// podOf is the one pod of a workload.
func podOf(t *testing.T, c *cluster.Cluster, name string) cluster.Pod {
	t.Helper()
	pods, err := c.Pods(t.Context(), name)
	if err != nil || len(pods) != 1 {
		t.Fatalf("pods of %s are %+v, %v", name, pods, err)
	}
	return pods[0]
}

// askFromPod requests a page from within a pod until there is an answer: rules follow a
// pod that is ready by some time.
func askFromPod(t *testing.T, pid int, url string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, err := exec.CommandContext(t.Context(), "nsenter", "--net=/proc/"+strconv.Itoa(pid)+"/ns/net",
			"curl", "--silent", "--noproxy", "*", "--max-time", "1", url).Output()
		if err == nil {
			return string(out)
		}
		if time.Now().After(deadline) {
			t.Errorf("ask %s: %v", url, err)
			return ""
		}
	}
}
