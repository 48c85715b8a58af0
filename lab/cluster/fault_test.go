package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// A program that was killed alone starts again where it is asked for, and only then; the
// cluster is whole when its nodes have reported after that.
func repairs(t *testing.T, on site) {
	c := open(t, on)
	deploy(t, on)
	inject(t, on, host.Fault{Kind: host.Kill, Node: on.worker(), Process: "kubelet-" + on.host("worker")})
	for _, want := range []bool{true, false} {
		if repaired, err := c.Repair(t.Context(), on.worker()); repaired != want || err != nil {
			t.Fatalf("repaired: %v, %v, want %v", repaired, err, want)
		}
	}
	if err := c.Ended(); err != nil {
		t.Error(err)
	}
	since := time.Now()
	awaitWhole(t, c, since)
	heard := mustKubectl(t, on, "get", "lease", on.host("worker"), "-n", "kube-node-lease", "-o", "jsonpath={.spec.renewTime}")
	if at, err := time.Parse(time.RFC3339, heard); err != nil || at.Before(since) {
		t.Errorf("its kubelet has reported at %q, %v, and was repaired at %s", heard, err, since)
	}
}

// Without a control plane pods serve on; with it again they are the same.
func stopsPlane(t *testing.T, on site) {
	c := open(t, on)
	before := deploy(t, on)
	ask(t, on.lab, on.head(), on.at("worker", helloPort))
	f := inject(t, on, c.StopPlane())
	if _, err := c.State(t.Context()); !errors.Is(err, cluster.ErrNoAnswer) {
		t.Errorf("a control plane that was stopped says %v", err)
	}
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(200 * time.Millisecond) { // longer than a lease
		if err := answers(t, on, on.at("worker", helloPort)); err != nil {
			t.Fatalf("the workload does not serve: %v", err)
		}
	}
	undo(t, on, f)
	awaitWhole(t, c, time.Now())
	after := only(t, c, "default/hello")
	if after.Name != before.Name || after.Restarts != 0 || after.IP != before.IP {
		t.Errorf("the pod was %+v and is %+v", before, after)
	}
	if err := answers(t, on, on.at("worker", helloPort)); err != nil {
		t.Error(err)
	}
}

func awaitWhole(t *testing.T, c *cluster.Cluster, since time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.AwaitWhole(ctx, cluster.Setback{Since: since}, helloName); err != nil {
		t.Fatal(err)
	}
}

// A cluster is not whole while a kube-proxy does not follow its API server, and is when
// it does again, whatever the wait before has left.
func awaitsProxies(t *testing.T, on site) {
	c := open(t, on)
	deploy(t, on)
	f := inject(t, on, host.Fault{Kind: host.Freeze, Node: on.worker(), Process: "kube-proxy-" + on.host("worker")})
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error)
	go func() { given <- c.AwaitWhole(ctx, cluster.Setback{Since: time.Now()}, helloName) }()
	eventually(t, "the workload of the trial", func() error {
		if served, err := c.Endpoints(ctx, "skerry-whole"); err != nil || served < 2 {
			return fmt.Errorf("%d pods, %w", served, err)
		}
		return nil
	})
	time.Sleep(2 * time.Second) // in which a proxy that follows has its rules
	cancel()
	if err := <-given; err == nil || !strings.HasPrefix(err.Error(), "kube-proxy of "+string(on.worker())+" is not ready") {
		t.Errorf("with a kube-proxy that is frozen the cluster is whole: %v", err)
	}
	undo(t, on, f)
	awaitWhole(t, c, time.Now())
}

func awaitNotReady(t *testing.T, c *cluster.Cluster, node topology.Ref) {
	t.Helper()
	eventually(t, string(node)+" not ready", func() error {
		if c.Ready(t.Context(), node) == nil {
			return errors.New("it is ready")
		}
		return nil
	})
}

// A node that is frozen is frozen with its pods, and goes on with them.
func freezes(t *testing.T, on site) {
	c := open(t, on)
	before := deploy(t, on)
	ask(t, on.lab, on.head(), before.IP+":8080")
	f := inject(t, on, host.Fault{Kind: host.Freeze, Node: on.worker()})
	if err := answers(t, on, before.IP+":8080"); err == nil {
		t.Error("its pod answers")
	}
	awaitNotReady(t, c, on.worker())
	undo(t, on, f)
	awaitReady(t, c)
	if after := only(t, c, "default/hello"); after.Restarts != 0 || after.Name != before.Name {
		t.Errorf("the pod was %+v and is %+v", before, after)
	}
	ask(t, on.lab, on.head(), on.at("worker", helloPort))
}

// A node that was killed boots when that is undone, and has its pods again.
func killsANode(t *testing.T, on site) {
	c := open(t, on)
	before := deploy(t, on)
	f := inject(t, on, host.Fault{Kind: host.Kill, Node: on.worker()})
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", before.Pid)); err == nil { // which one that nobody has waited for yet has not
		t.Error("a process of its pod lives")
	}
	awaitNotReady(t, c, on.worker())
	undo(t, on, f)
	awaitRestarted(t, c, before)
	ask(t, on.lab, on.head(), on.at("worker", helloPort))
	if running, err := on.lab.Running(); err != nil || !slices.ContainsFunc(running, func(r host.Running) bool { return r.Name == "kube-proxy-"+on.host("worker") }) {
		t.Errorf("running are %v, %v", running, err)
	}
}

// awaitRestarted waits until a pod was started again, and all are ready.
func awaitRestarted(t *testing.T, c *cluster.Cluster, before cluster.PodState) {
	t.Helper()
	eventually(t, "restart of "+before.Name, func() error {
		s, err := c.State(t.Context())
		if err != nil {
			return err
		}
		pods := s.Match(before.Namespace + "/" + before.Name)
		if len(pods) != 1 || pods[0].Restarts <= before.Restarts {
			return fmt.Errorf("there are %+v", pods)
		}
		return nil
	})
	awaitReady(t, c)
}

// Each node boots: the worker with the image that was loaded into it, the head with
// all that its control plane knew, and where the machine finds it.
func reboots(t *testing.T, on site) {
	c := open(t, on)
	deploy(t, on)
	image := only(t, c, "default/loaded")
	if err := cluster.Reboot(t.Context(), on.lab, on.worker()); err != nil {
		t.Fatal(err)
	}
	awaitRestarted(t, c, image)
	ask(t, on.lab, on.head(), on.at("worker", helloPort))
	dns := only(t, c, "kube-system/coredns")
	if err := cluster.Reboot(t.Context(), on.lab, on.head()); err != nil {
		t.Fatal(err)
	}
	awaitRestarted(t, c, dns)
	ask(t, on.lab, on.head(), on.at("worker", helloPort))
	if got := mustKubectl(t, on, "get", "nodes", "-o", "name"); got != "node/"+on.host("head")+"\nnode/"+on.host("worker")+"\n" {
		t.Errorf("the nodes are %q", got)
	}
	if i := slices.IndexFunc(on.lab.Faults, func(f host.Fault) bool { return strings.HasPrefix(string(f.Node), on.name+"/") }); i >= 0 {
		t.Errorf("in force is %+v", on.lab.Faults[i])
	}
	// Its interfaces are the node's own and one for each pod.
	var said bytes.Buffer
	if err := on.lab.Run(t.Context(), host.Command{Node: on.worker(), Name: "look", Args: []string{"ip", "-o", "link", "show", "type", "veth"}, Stdout: &said}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(said.String(), "\n"); n != 2+2 {
		t.Errorf("with two pods the node has %d interfaces:\n%s", n, &said)
	}
	mustKubectl(t, on, "delete", "pod", "loaded")
}
