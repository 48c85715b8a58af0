package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

const (
	helloName = "hello"
	helloPort = 30080
	// patience is longer than anything takes that comes about.
	patience = 40 * time.Second
)

// hello is a workload at the worker.
func hello(on site) cluster.Workload {
	return cluster.Workload{Name: helloName, Nodes: []topology.Ref{on.worker()}, Port: 8080, NodePort: helloPort, Args: []string{"serve", "hello-world", "--listen", "0.0.0.0:8080"}}
}

func open(t *testing.T, on site) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Open(on.lab, on.name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// deploy has the cluster serve hello until the test ends.
func deploy(t *testing.T, on site) cluster.PodState {
	t.Helper()
	c := open(t, on)
	deployAs(t, c, hello(on))
	return only(t, c, "default/hello")
}

// deployAs has a cluster serve a workload until the test ends.
func deployAs(t *testing.T, c *cluster.Cluster, w cluster.Workload) {
	t.Helper()
	if err := c.Deploy(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(context.Background(), w.Name); err != nil {
			t.Error(err)
		}
	})
}

// coalescesTimers holds that Kubernetes' own programs have few wake-ups, and pods the
// timers that every program has.
func coalescesTimers(t *testing.T, on site) {
	deploy(t, on)
	running, err := on.lab.Running()
	if err != nil {
		t.Fatal(err)
	}
	const usual, slack = "50000", "20000000"
	want := map[string]string{"kube-apiserver": slack, "kubelet": slack, "etcd": slack, "containerd": usual, "/skerry-agent": usual}
	seen := map[string]bool{}
	var pids []int
	for _, p := range running {
		pids = append(pids, p.Pids...)
	}
	for _, pid := range pids {
		at := fmt.Sprintf("/proc/%d/", pid)
		line, err := os.ReadFile(at + "cmdline")
		if err != nil {
			continue // it has ended
		}
		args := strings.Split(string(line), "\x00")
		for _, name := range []string{args[0], filepath.Base(args[0]), args[min(1, len(args)-1)]} {
			got, err := os.ReadFile(at + "timerslack_ns")
			if want[name] == "" || err != nil {
				continue
			}
			seen[name] = true
			if strings.TrimSpace(string(got)) != want[name] {
				t.Errorf("%s has a slack of %s ns, want %s", name, got, want[name])
			}
		}
	}
	if len(seen) != len(want) {
		t.Errorf("seen are %v", seen)
	}
}

func state(t *testing.T, c *cluster.Cluster) cluster.State {
	t.Helper()
	s, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// only is the one pod of a workload.
func only(t *testing.T, c *cluster.Cluster, target string) cluster.PodState {
	t.Helper()
	s := state(t, c)
	pods := s.Match(target)
	if len(pods) != 1 {
		t.Fatalf("%s has the pods %+v of %+v", target, pods, s.Pods)
	}
	return pods[0]
}

// eventually waits until something has come about.
func eventually(t *testing.T, what string, look func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := look()
		if err == nil {
			t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond))
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// awaitReady waits until all nodes and pods are ready, but for metrics-server, which is most
// of half a minute after it has begun.
func awaitReady(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	eventually(t, "all ready", func() error {
		s, err := c.State(t.Context())
		if err != nil {
			return err
		}
		for _, n := range s.Nodes {
			if !n.Ready {
				return fmt.Errorf("node %s: %s", n.Node, n.Why)
			}
		}
		for _, p := range s.Pods {
			if !p.Ready && p.Workload != "metrics-server" {
				return fmt.Errorf("pod %s: %s", p.Name, p.Status)
			}
		}
		return nil
	})
}

// answers asks once, and waits for an answer no longer than one takes.
func answers(t *testing.T, on site, address string) error {
	t.Helper()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return on.lab.Dial(ctx, on.head(), address)
	}}}
	response, err := client.Get("http://" + address + "/")
	if err == nil {
		err = response.Body.Close()
	}
	return err
}

// kubectl calls the cluster from the machine, as a user does.
func kubectl(t *testing.T, on site, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built(t)["kubernetes"], append([]string{"kubectl", "--kubeconfig", cluster.Kubeconfig(on.lab, on.name)}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mustKubectl(t *testing.T, on site, args ...string) string {
	t.Helper()
	out, err := kubectl(t, on, args...)
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return out
}

func seesState(t *testing.T, on site) {
	c := open(t, on)
	s := state(t, c)
	want := []cluster.NodeState{{Node: on.head(), Ready: true}, {Node: on.worker(), Ready: true}, {Node: small, Ready: true}}
	if !slices.Equal(s.Nodes, want) {
		t.Errorf("nodes are %+v", s.Nodes)
	}
	dns := only(t, c, "kube-system/coredns")
	if !dns.Ready || dns.Status != "Running" || dns.Node != on.head() || dns.IP == "" || dns.Pid == 0 || dns.CPU <= 0 || dns.Held <= 0 {
		t.Errorf("the DNS is %+v", dns)
	}
	if by := s.Match("kube-system/" + dns.Name); len(by) != 1 || by[0].Name != dns.Name {
		t.Errorf("by its name there is %+v", by)
	}
	for _, target := range []string{"default/coredns", "kube-system/core", "coredns"} {
		if found := s.Match(target); len(found) != 0 {
			t.Errorf("%s matches %+v", target, found)
		}
	}
	if _, err := cluster.Open(on.lab, "none"); !errors.Is(err, cluster.ErrNone) {
		t.Errorf("another cluster: %v", err)
	}
	if all, err := cluster.OpenAll(on.lab); err != nil || len(all) != 3 || all[0].Name != "c1" || all[2].Name != "c3" {
		t.Errorf("all are %v, %v", all, err)
	}
}

func readsLogs(t *testing.T, on site) {
	logs, err := cluster.Logs(on.lab)
	if err != nil {
		t.Fatal(err)
	}
	find := func(target string) cluster.Log {
		t.Helper()
		i := slices.IndexFunc(logs, func(l cluster.Log) bool { return l.Target == target })
		if i < 0 {
			t.Fatalf("no log of %s among %+v", target, logs)
		}
		return logs[i]
	}
	for _, target := range []string{"links", "c1/head:etcd", "c1/head:kube-apiserver", "c1/worker:containerd", "c2/worker:kube-proxy"} {
		find(target)
	}
	var kubelet, dns bytes.Buffer
	pod := only(t, open(t, on), "kube-system/coredns")
	err = errors.Join(find("c1/worker:kubelet").Copy(t.Context(), &kubelet, false), find("c1/kube-system/"+pod.Name).Copy(t.Context(), &dns, false))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(kubelet.String(), "Started kubelet") {
		t.Errorf("the kubelet said:\n%s", &kubelet)
	}
	if !strings.Contains(dns.String(), "\nCoreDNS-") {
		t.Errorf("the DNS said:\n%s", &dns)
	}
}

// A program of the machine has the network, the name and the DNS of the pod, and the
// machine keeps its own.
func runsInAPod(t *testing.T, on site) {
	c := open(t, on)
	pod := deploy(t, on)
	before, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Skip(err)
	}
	var said bytes.Buffer
	err = c.Run(t.Context(), pod, host.Command{
		Name: "look", Args: []string{"/bin/sh", "-c", "hostname; ip -4 -o address; cat /etc/resolv.conf; getent hosts hello"}, Stdout: &said, Stderr: &said,
	})
	if err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
	for _, want := range []string{pod.Name + "\n", " inet " + pod.IP + "/", "nameserver 10.96.0.10", "hello.default.svc.cluster.local"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &said)
		}
	}
	if after, err := os.ReadFile("/etc/resolv.conf"); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the machine's resolv.conf is %q, %v", after, err)
	}
	pod.Pid = 0
	if err := c.Run(t.Context(), pod, host.Command{Name: "look", Args: []string{"true"}}); !errors.Is(err, cluster.ErrNoPod) {
		t.Errorf("in a pod of nothing: %v", err)
	}
}

// loaded is an image that no cluster has from its start.
const loaded = "example.test/loaded:1"

func loadsImages(t *testing.T, on site) {
	agentTag, err := name.NewTag(cluster.AgentImage)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(filepath.Join(on.lab.Dir(), "images.tar"), &agentTag)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(loaded)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "loaded.tar")
	if err := tarball.WriteToFile(archive, tag, image); err != nil {
		t.Fatal(err)
	}
	clusters := []*cluster.Cluster{open(t, on)}
	names, err := cluster.Load(t.Context(), clusters, archive)
	if err != nil || !slices.Equal(names, []string{loaded}) {
		t.Fatalf("loaded %v, %v", names, err)
	}
	mustKubectl(t, on, "run", "loaded", "--image="+loaded, "--image-pull-policy=Never", "--overrides",
		`{"spec": {"nodeName": "`+on.host("worker")+`", "terminationGracePeriodSeconds": 1}}`, "--", "serve", "hello-world", "--listen", "0.0.0.0:8080")
	eventually(t, "it runs", func() error {
		if pod := only(t, clusters[0], "default/loaded"); !pod.Ready {
			return fmt.Errorf("it is %+v", pod)
		}
		return nil
	})
	// Its layers are of no archive: containerd itself refuses it.
	broken := filepath.Join(t.TempDir(), "broken.tar")
	writeTar(t, broken, "manifest.json", `[{"Config": "gone.json", "RepoTags": ["a:1"], "Layers": ["gone.tar"]}]`)
	if _, err := cluster.Load(t.Context(), clusters, broken); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "import images at node "+on.name+"/") {
		t.Errorf("an archive without layers: %v", err)
	}
}

// What is evicted is made anew, unless its budget says that it must stay.
func evicts(t *testing.T, on site) {
	c := open(t, on)
	before := deploy(t, on)
	mustKubectl(t, on, "create", "pdb", "hello", "--selector=app=hello", "--min-available=1")
	eventually(t, "the budget known", func() error {
		if got := mustKubectl(t, on, "get", "pdb", "hello", "-o", "jsonpath={.status.currentHealthy}"); got != "1" {
			return fmt.Errorf("it counts %q healthy pods", got)
		}
		return nil
	})
	if err := c.Evict(t.Context(), before); !errors.Is(err, cluster.ErrProtected) {
		t.Errorf("evicted against its budget: %v", err)
	}
	mustKubectl(t, on, "delete", "pdb", "hello")
	if err := c.Evict(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another pod", func() error {
		pods := state(t, c).Match("default/hello")
		if len(pods) != 1 || pods[0].Name == before.Name || !pods[0].Ready {
			return fmt.Errorf("there are %+v", pods)
		}
		return nil
	})
	ask(t, on.lab, on.head(), on.at("worker", helloPort))
}

func inject(t *testing.T, on site, f host.Fault) host.Fault {
	t.Helper()
	f, err := on.lab.Inject(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func undo(t *testing.T, on site, f host.Fault) {
	t.Helper()
	if err := cluster.Undo(t.Context(), on.lab, f.ID); err != nil {
		t.Fatal(err)
	}
}
