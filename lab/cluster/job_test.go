package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/topology"
)

// replicates holds that each node serves by a pod of its own, to which its NodePort
// leads and no other.
func replicates(t *testing.T, on site) {
	c := open(t, on)
	const nodePort, asked = 30081, 30
	w := cluster.Workload{
		Name: "both", Nodes: []topology.Ref{on.head(), on.worker()}, Port: 8080, NodePort: nodePort,
		Args: []string{"serve", "hello-world", "--listen", "0.0.0.0:8080"},
	}
	if err := c.Deploy(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	pods, err := c.Pods(t.Context(), w.Name)
	if err != nil || len(pods) != len(w.Nodes) || pods[0].Node == pods[1].Node {
		t.Fatalf("its pods are %+v, %v", pods, err)
	}
	if pods[0].Node != on.worker() {
		slices.Reverse(pods)
	}
	ask(t, on.lab, on.head(), on.at("worker", nodePort)) // the rules are there
	before := [2]int{accepted(t, pods[0]), accepted(t, pods[1])}
	for range asked {
		ask(t, on.lab, on.head(), on.at("worker", nodePort))
	}
	near, far := accepted(t, pods[0])-before[0], accepted(t, pods[1])-before[1]
	const probes = 5 // its kubelet connects once a second
	if near < asked || far > probes {
		t.Errorf("of %d requests to the worker its own pod had %d, the head's %d", asked, near, far)
	}
	if err := c.Remove(t.Context(), w.Name); err != nil {
		t.Error(err)
	}
}

// accepted counts the connections that a pod has ever taken.
func accepted(t *testing.T, p cluster.Pod) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/snmp", p.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch i := slices.Index(names, "PassiveOpens"); {
		case fields[0] != "Tcp:":
		case i < 0:
			names = fields
		default:
			n, err := strconv.Atoi(fields[i])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the kernel counts no connections")
	return 0
}

// runsAJob holds that a job's program runs at its node, can be waited for, writes into
// its folder, and sends by the lab's congestion control.
func runsAJob(t *testing.T, on site) {
	c := open(t, on)
	dir := t.TempDir()
	orders := filepath.Join(dir, "orders")
	if err := unix.Mkfifo(orders, 0o600); err != nil {
		t.Fatal(err)
	}
	j := cluster.Job{Name: "load", Node: on.worker(), Dir: dir, Args: []string{"load", "--spec", "/job/orders", "--out", "/job/requests.parquet"}}
	if err := c.Launch(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	running, err := c.AwaitJob(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	wantCubic(t, pidOf(t, "/job/orders"))
	select {
	case <-running.Done():
		t.Error("it has ended without its orders")
	default:
	}
	// Nobody answers there: it ends with an error.
	if err := os.WriteFile(orders, []byte(`{"target":"127.0.0.1:1","workload":"hello-world","iterations":1}`), 0); err != nil {
		t.Fatal(err)
	}
	<-running.Done()
	if use, err := running.Use(); err != nil || use.CPU <= 0 || use.MemoryPeak <= 0 {
		t.Errorf("it has used %+v, %v", use, err)
	}
	ended, ok := errors.AsType[*cluster.EndedError](running.Ended(t.Context()))
	if !ok || ended.How != "Error, exit status 1" || !strings.Contains(ended.Said, "skerry-agent: error: no answer from 127.0.0.1:1") {
		t.Errorf("it ended as %+v", ended)
	}
	if err := c.RemoveJob(t.Context(), j.Name); err != nil {
		t.Error(err)
	}
	testJobThatEnds(t, c, j)
}

// testJobThatEnds holds that a program that ends at once is told, with its words.
func testJobThatEnds(t *testing.T, c *cluster.Cluster, j cluster.Job) {
	j.Args = []string{"load", "--spec", "/job/none", "--out", "/job/requests.parquet"}
	if err := c.Launch(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	running, err := c.AwaitJob(t.Context(), j)
	if err == nil { // it was seen before
		<-running.Done()
		err = running.Ended(t.Context())
	}
	ended, ok := errors.AsType[*cluster.EndedError](err)
	if !ok || !strings.Contains(ended.Said, "no such file") {
		t.Errorf("it ended with %v, %+v", err, ended)
	}
	if err := c.RemoveJob(t.Context(), j.Name); err != nil {
		t.Error(err)
	}
}

// pidOf the one process with an argument, once there is one: a container runs a moment before
// its program does.
func pidOf(t *testing.T, argument string) (pid int) {
	t.Helper()
	eventually(t, argument, func() error {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			text, _ := os.ReadFile(file) // some have ended
			if slices.Contains(strings.Split(string(text), "\x00"), argument) {
				pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))
				return err
			}
		}
		return errors.Join(err, fs.ErrNotExist)
	})
	return pid
}
