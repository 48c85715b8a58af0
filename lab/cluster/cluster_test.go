package cluster_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/programs"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

var agent string

func TestMain(m *testing.M) {
	flag.Parse()
	// Labs wait most of their time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(programs.Main(m, func(dir string) { agent = filepath.Join(dir, "skerry-agent") }))
}

// built are the programs of clusters, without which there is nothing to test.
func built(t *testing.T) map[string]string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: a lab is made")
	}
	b := gobuild.Builder{Catalogue: kube.Catalogue()}
	if lacking := b.Lacking(t.Context()); len(lacking) > 0 {
		t.Skipf("%v are not built: 'skerry kube build' does", lacking)
	}
	paths, err := b.Paths(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// machine is what of it no node may have changed: sysctls, and what lies in /run and
// among the control groups.
func machine(t *testing.T) (all []string) {
	t.Helper()
	for _, name := range []string{
		"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "vm/panic_on_oom", "kernel/keys/root_maxkeys",
		"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/default/accept_dad",
	} {
		text, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(name, "net/ipv6/") {
			continue // a kernel without it
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name+" "+strings.TrimSpace(string(text)))
	}
	for _, pattern := range []string{"/run/*", "/usr/libexec/*", "/sys/fs/cgroup/skerry", "/sys/fs/cgroup/*/skerry"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// takeUp takes a lab and its clusters up until the test ends.
func takeUp(t *testing.T, name string, topo topology.Topology, o cluster.Options) (*host.Lab, []*cluster.Cluster) {
	t.Helper()
	lab, err := host.Up(t.Context(), topo, host.Options{Name: name, Agent: agent, Backend: "auto", Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(); err != nil {
			t.Error(err)
		}
	})
	o.Agent, o.Now = agent, time.Now()
	clusters, err := cluster.Up(t.Context(), lab, o)
	if err != nil {
		t.Fatal(err)
	}
	return lab, clusters
}

// oneOfTwo is a cluster of two nodes.
func oneOfTwo() topology.Topology {
	return topology.Topology{Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}}}
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

// Clusters of labs of their own, side by side: they wait most of their time. Afterwards
// the machine is as before.
func TestClusters(t *testing.T) {
	paths := built(t)
	leavesNothing(t)
	t.Run("serves", func(t *testing.T) { t.Parallel(); testServes(t, paths) })
	t.Run("waits", func(t *testing.T) {
		t.Parallel()
		lab, _ := takeUp(t, "cluster-waits", oneOfTwo(), cluster.Options{Programs: paths})
		for _, test := range waiting {
			t.Run(test.name, func(t *testing.T) { test.run(t, lab) })
		}
	})
	t.Run("resources", func(t *testing.T) { t.Parallel(); testResources(t, paths) })
	t.Run("networks", func(t *testing.T) {
		t.Parallel()
		t.Run("chosen", func(t *testing.T) { testChosen(t, paths) })
		t.Run("dual", func(t *testing.T) { testDual(t, paths) })
	})
}

// testServes has a cluster of two nodes serve a workload at one of them to a client at
// the other, by its NodePort, and do all that onOne asks of it.
func testServes(t *testing.T, paths map[string]string) {
	lab, clusters := takeUp(t, "cluster-test", oneOfTwo(), cluster.Options{Programs: paths, PodPrograms: []string{filepath.Join(filepath.Dir(agent), "skerry-proxy")}})
	const port, nodePort = 8080, 30080
	w := cluster.Workload{Name: "hello", Nodes: []topology.Ref{"c1/worker"}, Port: port, NodePort: nodePort, Args: []string{"serve", "hello-world", "--listen", "0.0.0.0:8080"}}
	for range 2 { // also after it was taken away
		if err := clusters[0].Deploy(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if said := ask(t, lab, "c1/head", "10.1.0.2:30080"); said == "" {
			t.Error("the workload says nothing")
		}
		pods, err := clusters[0].Pods(t.Context(), w.Name)
		if err != nil || len(pods) != 1 || pods[0].Node != w.Nodes[0] || pods[0].Use.CPU <= 0 || pods[0].Ended != "" {
			t.Fatalf("its pods are %+v, %v", pods, err)
		}
		wantCubic(t, pods[0].Pid)
		if err := clusters[0].Remove(t.Context(), w.Name); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("replicas", func(t *testing.T) { testReplicas(t, lab, clusters[0]) })
	t.Run("job", func(t *testing.T) { testJob(t, clusters[0]) })
	for _, test := range onOne { // these end programs, and open the cluster anew
		t.Run(test.name, func(t *testing.T) { test.run(t, lab) })
	}
	if info, err := os.Stat(cluster.Kubeconfig(lab, "c1")); err != nil || info.Mode().Perm() != 0o600 {
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

// A program that ends while its cluster starts is told at once, with its last words.
func TestProgramThatEnds(t *testing.T) {
	paths := built(t)
	broken := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no space left >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	paths["etcd"] = broken
	topo := topology.Topology{Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head"}}}}
	lab, err := host.Up(t.Context(), topo, host.Options{Name: "cluster-broken", Agent: agent, Backend: "auto", Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lab.Down(); err != nil {
			t.Error(err)
		}
	}()
	began := time.Now()
	_, err = cluster.Up(t.Context(), lab, cluster.Options{Programs: paths, Agent: agent, Now: began, Logs: filepath.Join(t.TempDir(), "kept")})
	if want := "cluster c1: etcd-c1-head has ended (exit status 3): no space left"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it was told after %s", took)
	}
	start, ok := errors.AsType[*cluster.StartError](err)
	if !ok {
		t.Fatal("no logs are kept")
	}
	if text, err := os.ReadFile(filepath.Join(start.Logs, "c1/head/etcd.log")); err != nil || string(text) != "no space left\n" {
		t.Errorf("kept of etcd is %q, %v", text, err)
	}
}

// ask requests a page from a node until there is an answer: rules follow a pod that
// is ready by some time.
func ask(t *testing.T, lab *host.Lab, from topology.Ref, address string) string {
	t.Helper()
	// A connection that began towards a pod that has ended since leads nowhere.
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return lab.Dial(ctx, from, address)
	}}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			continue
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v", response.Status, err)
		}
		return string(body)
	}
}
