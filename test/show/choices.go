package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/cluster/preflight"
	"skerry.dev/skerry/lab/cluster/spec"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/topology"
)

// choices takes up a cluster of two nodes for each CNI and proxy, and two clusters with
// the same ranges of addresses; it asks in each way that pods have.
func (b *bench) choices(ctx context.Context, programs map[string]string) error {
	for _, cni := range spec.CNIs() {
		for _, proxy := range spec.Proxies() {
			if err := b.chosen(ctx, programs, spec.Spec{CNI: cni, Proxy: proxy}); err != nil {
				return fmt.Errorf("cni %s, proxy %s: %w", cni, proxy, err)
			}
		}
	}
	return b.alikeRanges(ctx, programs)
}

// up takes clusters up as they are specified.
func (b *bench) up(ctx context.Context, programs map[string]string, s spec.Spec, clusters ...topology.Cluster) (*host.Lab, []*cluster.Cluster, error) {
	lab, err := host.Up(ctx, topology.Topology{Clusters: clusters}, host.Options{
		Name: fmt.Sprintf("show-%d", os.Getpid()), Agent: b.agent, Backend: "auto", Bound: true,
	})
	if err != nil {
		return nil, nil, err
	}
	all, err := cluster.Up(ctx, lab, cluster.Options{Programs: programs, Agent: b.agent, Spec: s, Now: time.Now()})
	if err != nil {
		return nil, nil, errors.Join(err, lab.Down())
	}
	return lab, all, nil
}

// chosen shows one CNI with one proxy, or that this machine is refused for them.
func (b *bench) chosen(ctx context.Context, programs map[string]string, s spec.Spec) (err error) {
	l := line{what: fmt.Sprintf("cni %s, proxy %s", s.CNI, s.Proxy), command: kubernetesCommand}
	c1 := topology.Cluster{Name: "c1", Nodes: []string{"head", "worker"}}
	if refused := preflight.Refuse(&topology.Topology{Clusters: []topology.Cluster{c1}}, s, time.Now()); refused != nil {
		lacks, isFeature := errors.AsType[*preflight.FeatureError](refused)
		l.seen, l.bound, l.pass = refused.Error(), "refused by the name of what is missing", isFeature && lacks.Feature != ""
		b.print(l)
		return nil
	}
	began := time.Now()
	lab, clusters, err := b.up(ctx, programs, s, c1)
	if err != nil {
		return err
	}
	took := time.Since(began)
	defer func() { err = errors.Join(err, lab.Down()) }()
	ways, err := waysOf(ctx, clusters[0], s.Proxy != spec.ProxyNone)
	if err != nil {
		return err
	}
	silent := ""
	for _, w := range ways {
		if body, err := askPod(ctx, w.from, w.address); err != nil || len(body) != len("Hello, World!") {
			silent += fmt.Sprintf("; %s: %q, %v", w.what, body, err)
		}
	}
	l.seen = fmt.Sprintf("up in %.1f s, %d ways of pods to pods and Services asked%s", took.Seconds(), len(ways), silent)
	l.bound, l.pass = "each answers", silent == ""
	b.print(l)
	return nil
}

// way is one on which a pod asks.
type way struct {
	what    string
	from    int // a process in the pod
	address string
}

// waysOf deploys a workload at each node and one that asks, and gives the ways on which
// that one can: to pods, and where there is a proxy to Services.
func waysOf(ctx context.Context, c *cluster.Cluster, proxied bool) ([]way, error) {
	const port, nodePort = 8080, 30080
	var pods []cluster.Pod
	all := []cluster.Workload{{Name: "near", Nodes: []topology.Ref{"c1/worker"}}, {Name: "far", Nodes: []topology.Ref{"c1/head"}}, {Name: "asker", Nodes: []topology.Ref{"c1/worker"}}}
	for i, w := range all {
		w.Port, w.NodePort, w.Args = port, nodePort+i, []string{"serve", "hello-world", "--listen", "0.0.0.0:" + servicePort}
		if err := c.Deploy(ctx, w); err != nil {
			return nil, err
		}
		pod, err := onlyPod(ctx, c, w.Name)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	asker := pods[2].Pid
	ways := []way{{"a pod of the node", asker, pods[0].IP + ":" + servicePort}, {"a pod of the other node", asker, pods[1].IP + ":" + servicePort}}
	if !proxied {
		return ways, nil
	}
	for _, w := range all { // the last is a pod that asks for itself
		service, err := c.ServiceIP(ctx, w.Name)
		if err != nil {
			return nil, err
		}
		ways = append(ways, way{"Service " + w.Name, asker, service + ":" + servicePort})
	}
	head, worker := "10.1.0.1:", "10.1.0.2:" // each node's port leads to its own pods
	return append(ways,
		way{"the other node's port, of a pod there", asker, head + strconv.Itoa(nodePort+1)},
		way{"the node's own port", asker, worker + strconv.Itoa(nodePort)}), nil
}

// onlyPod is the pod of a workload that has one.
func onlyPod(ctx context.Context, c *cluster.Cluster, name string) (cluster.Pod, error) {
	pods, err := c.Pods(ctx, name)
	if err != nil || len(pods) != 1 {
		return cluster.Pod{}, errors.Join(err, fmt.Errorf("%s has %d pods", name, len(pods)))
	}
	return pods[0], nil
}

// askPod requests a page from within a pod until there is an answer: rules follow a pod
// that is ready by some time.
func askPod(ctx context.Context, pid int, address string) (body string, err error) {
	const tries = 50
	for range tries {
		var out []byte
		out, err = exec.CommandContext(ctx, "nsenter", "--net=/proc/"+strconv.Itoa(pid)+"/ns/net",
			"curl", "--silent", "--noproxy", "*", "--max-time", "1", "http://"+address+"/").Output()
		if err == nil {
			return string(out), nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
	return "", err
}

// alikeRanges shows two clusters whose pods and Services have the same addresses.
func (b *bench) alikeRanges(ctx context.Context, programs map[string]string) (err error) {
	s := spec.Spec{Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16")}
	one, two := topology.Cluster{Name: "c1", Nodes: []string{"n"}}, topology.Cluster{Name: "c2", Nodes: []string{"n"}}
	lab, clusters, err := b.up(ctx, programs, s, one, two)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Down()) }()
	sizes := map[string]int{"hello-world": 13, "static-reply": 1000}
	var seen []string
	answered, addresses := 0, map[string]bool{}
	for i, workload := range []string{"hello-world", "static-reply"} {
		c := clusters[i]
		w := cluster.Workload{Name: "web", Nodes: []topology.Ref{topology.Ref(c.Name + "/n")}, Port: 8080, NodePort: 30080, Args: []string{"serve", workload, "--listen", "0.0.0.0:" + servicePort}}
		if err := c.Deploy(ctx, w); err != nil {
			return err
		}
		pod, err := onlyPod(ctx, c, w.Name)
		if err != nil {
			return err
		}
		service, err := c.ServiceIP(ctx, w.Name)
		if err != nil {
			return err
		}
		addresses[pod.IP] = true
		for _, address := range []string{pod.IP, service} {
			body, err := askPod(ctx, pod.Pid, address+":"+servicePort)
			if err == nil && len(body) == sizes[workload] {
				answered++
			}
		}
		seen = append(seen, fmt.Sprintf("%s has its pod at %s, its Service at %s", c.Name, pod.IP, service))
	}
	b.print(line{
		what:  fmt.Sprintf("two clusters side by side with pods in %s and Services in %s each", s.Pods, s.Services),
		seen:  fmt.Sprintf("%s; %d of 4 answers are of the own cluster's workload", strings.Join(seen, "; "), answered),
		bound: "one address for both pods, all answers", pass: len(addresses) == 1 && answered == len(clusters)*2, command: kubernetesCommand,
	})
	return nil
}

// refusals tries all that speaks against clusters by the program that a user does: each
// is told in one line with a hint, and nothing is left.
func (b *bench) refusals(ctx context.Context) error {
	const script = "lab/cli/testdata/refused.txtar"
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	tried := bytes.Count(text, []byte("\nfails "))
	before, err := machineState(ctx)
	if err != nil {
		return err
	}
	out, runErr := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "TestScripts/refused", "./lab/cli").CombinedOutput()
	after, err := machineState(ctx)
	if err != nil {
		return err
	}
	changed := differing(before, after)
	l := line{
		what:  fmt.Sprintf("%d clusters that this machine cannot carry, or that are wrong, asked for by skerry up and run (%s)", tried, script),
		seen:  fmt.Sprintf("each refused, %d of %d entries of the machine differ%s", len(changed), len(before), firstOf(changed)),
		bound: "one line and a hint each, nothing left", pass: runErr == nil && len(changed) == 0, command: kubernetesCommand,
	}
	if runErr != nil {
		l.seen = lastPart(string(out))
	}
	b.print(l)
	return nil
}
