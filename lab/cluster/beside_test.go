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
	"skerry.dev/skerry/lab/topology"
)

const besidePort = 30085

// servesBeside has two clusters of the same ranges stand side by side: each serves its own by
// the very same address of a Service, also from pod to pod of one node, where the answer would
// go past that address if the bridge were not filtered; and the other by its NodePort.
func servesBeside(t *testing.T, on site) {
	type answer struct {
		workload string
		bytes    int
	}
	for name, want := range map[string]answer{"c1": {"static-reply", 1000}, on.name: {"hello-world", 13}} {
		at := site{on.lab, name}
		c := open(t, at)
		web := cluster.Workload{Name: "beside", Nodes: []topology.Ref{at.worker()}, Port: 8080, NodePort: besidePort, Args: []string{"serve", want.workload, "--listen", ":8080"}}
		from := web
		from.Name, from.NodePort = "asker", besidePort+1
		for _, w := range []cluster.Workload{web, from} {
			deployAs(t, c, w)
		}
		const same = "10.96.77.77"
		mustKubectl(t, at, "expose", "deployment", web.Name, "--name=same", "--cluster-ip="+same, "--port=8080")
		service, err := c.ServiceIP(t.Context(), web.Name)
		if err != nil {
			t.Fatal(err)
		}
		pod := podOf(t, c, web.Name)
		for ranges, address := range map[netip.Prefix]string{alike().Services: service, alike().Pods: pod.IP} {
			if !ranges.Contains(netip.MustParseAddr(address)) {
				t.Errorf("%s: %s is not of %s", name, address, ranges)
			}
		}
		asker := podOf(t, c, from.Name)
		for _, address := range []string{pod.IP, service, same} {
			if got := askFromPod(t, asker.Pid, "http://"+address+":8080/"); len(got) != want.bytes {
				t.Errorf("%s: %s answers %q, want %d bytes", name, address, got, want.bytes)
			}
		}
		if name == on.name {
			refusals(t, at)
		}
	}
	if on.lab.Topology.Dual {
		dualLink(t, on, podOf(t, open(t, site{on.lab, "c1"}), "asker"))
	}
}

// refusals are of workloads that cannot be: told at once, by what is wrong.
func refusals(t *testing.T, on site) {
	t.Helper()
	c := open(t, on)
	w := cluster.Workload{Name: "late", Nodes: []topology.Ref{on.worker()}, Port: 8080, NodePort: besidePort, Args: []string{"serve", "hello-world", "--listen", "0.0.0.0:8080"}}
	err := c.Deploy(t.Context(), w)
	if taken, ok := errors.AsType[*cluster.PortError](err); !ok || taken.Port != besidePort || taken.Service != "default/beside" {
		t.Errorf("a port that is taken: %v", err)
	}
	if pods, err := c.Pods(t.Context(), w.Name); err != nil || len(pods) > 0 {
		t.Errorf("it has left %v, %v", pods, err)
	}
	w.NodePort, w.Image = besidePort+2, "example/none:1"
	began := time.Now()
	err = c.Deploy(t.Context(), w)
	if lacks, ok := errors.AsType[*cluster.ImageError](err); !ok || !strings.Contains(lacks.Image, w.Image) || lacks.Node != on.host("worker") {
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
