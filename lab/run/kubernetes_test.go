package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/adapter/program"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/proof"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

const (
	// Delays of the link before and after its timeline's event.
	delayBefore, delayAfter = time.Millisecond, 10 * time.Millisecond
	// When the link slows down, a node of the service boots while its control plane is gone,
	// a program of the client's cluster stands still, and the service's pods are evicted; the
	// service is back before that, and after it.
	slowsAt, stopsAt, rebootsAt, freezesAt = 400 * time.Millisecond, 800 * time.Millisecond, 1 * time.Second, 2 * time.Second
	evictsAt, servedUntil                  = 15 * time.Second, 21 * time.Second
	faulted                                = 400 * time.Millisecond
)

// A tool sends its requests from a node, wherever what it is made of lies.
func TestNodesKeepTools(t *testing.T) {
	r := runner{store: store{dir: "/var/lib/runs/one"}}
	r.Tools = map[string]program.Program{experiment.ToolHey: {Dir: "/var/lib/cache/hey"}}
	if got := r.kept(); !slices.Equal(got, []string{"/var/lib/runs/one", "/var/lib/cache/hey"}) {
		t.Errorf("got %v", got)
	}
}

// onKubernetes has the example run in pods: called at their NodePort, and by an
// ingress that two of them take turns behind.
func onKubernetes(t *testing.T, o *Options) {
	t.Helper()
	b := gobuild.Builder{Catalogue: kube.Catalogue()}
	if lacking := b.Lacking(t.Context()); len(lacking) > 0 {
		t.Skipf("%v are not built: 'skerry kube build' does", lacking)
	}
	var err error
	if o.Kubernetes, err = b.Paths(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	link := func(delay time.Duration) experiment.Link {
		return experiment.Link{Between: []topology.Ref{"c1", "c2"}, Impairment: impair.Impairment{Delay: quantity.Duration(delay)}}
	}
	e := o.Experiment
	e.Substrate = experiment.SubstrateKubernetes
	e.Topology = topology.Topology{
		Clusters: []topology.Cluster{{Name: "c1", Nodes: []string{"head", "worker"}}, {Name: "c2", Nodes: []string{"head"}}},
		Service:  "c1/worker", Replicas: []topology.Ref{"c1/head"}, Client: "c2/head",
	}
	e.Scenarios = []experiment.Scenario{{
		Name: "fails", Links: []experiment.Link{link(delayBefore)},
		Timeline: []experiment.Event{
			{At: quantity.Duration(slowsAt), Link: link(delayAfter)},
			{At: quantity.Duration(stopsAt), Fault: experiment.Fault{StopPlane: "c1", For: quantity.Duration(faulted)}},
			{At: quantity.Duration(rebootsAt), Fault: experiment.Fault{Reboot: "c1/worker"}},
			{At: quantity.Duration(freezesAt), Fault: experiment.Fault{Freeze: "c2/head:kubelet-c2-head", For: quantity.Duration(faulted)}},
			{At: quantity.Duration(evictsAt), Fault: experiment.Fault{Evict: "c1/default/service"}},
		},
	}}
	e.Systems, e.Objectives = []string{"direct", "ingress-head"}, nil
	e.Load = experiment.Load{
		Rate: []quantity.Frequency{50}, Duration: quantity.Duration(servedUntil), Threads: []int{64}, Timeout: second, Connection: []string{experiment.ConnectionNew},
	}
	for _, name := range e.Systems {
		stack, err := system.Load(systems.FS, name)
		if err == nil {
			err = stack.On(e.Substrate)
		}
		if err == nil {
			err = errors.Join(stack.Missing()...)
		}
		if err != nil {
			t.Skip(err)
		}
		o.Stacks[name] = stack
	}
}

// interrupter cancels a run some time after a turn has begun.
type interrupter struct {
	notes
	cancel context.CancelFunc
	turn   int
	after  time.Duration
}

func (i *interrupter) Turn(index, _ int, _ Turn, _ time.Duration) {
	if index == i.turn {
		time.AfterFunc(i.after, i.cancel)
	}
}

// The load is a pod of the client's cluster, whose start is in no measured time: the
// timeline begins with its requests. A node boots and pods are evicted while it runs, and
// the next cell has the service from its beginning. A run that is interrupted leaves what
// is complete, and no lab. All of it is one start of clusters.
func TestOnKubernetes(t *testing.T) {
	lost := robbed(t)
	o, done := interrupted(t)
	why := lost()
	if done < complete && why != "" {
		t.Skipf("cores of its own are missing here: %s: %d repetitions count", why, done)
	}
	if done != complete {
		t.Fatalf("%d repetitions are complete, want %d", done, complete)
	}
	if names, err := host.Names(); err != nil || slices.Contains(names, o.LabName) {
		t.Errorf("the labs are %v, %v", names, err)
	}
	input, err := Collect(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"c2/head pod → c1/worker [1ms] kube-proxy → pod", "c2/head pod → c1/head [1ms] → c1/worker pod"} {
		r := input.Results[i]
		if r.Summary.N == 0 || r.HopMap.String() != want {
			t.Errorf("%s: %d answers, %d errors, by way of %s", r.Cell, r.Summary.N, r.Summary.Errors, r.HopMap)
		}
		turn := Turn{Cell: r.Cell, Repetition: 1}
		checkPods(t, store{o.Dir}, turn)
		requests, err := readSamples(filepath.Join(store{o.Dir}.turnDir(turn), samplesFile))
		if err != nil {
			t.Fatal(err)
		}
		checkTimeline(t, turn, requests)
		checkServed(t, turn, requests, span{0, rebootsAt})
		if i == 0 { // the ingress knows the addresses of pods as it starts, and others come back
			checkServed(t, turn, requests, span{evictsAt - time.Second, evictsAt})
			checkServed(t, turn, requests, span{servedUntil - time.Second, servedUntil})
		}
	}
	if direct := input.Results[0].Summary; direct.Errors == 0 {
		t.Errorf("%s: no request fails of a node that boots", input.Results[0].Cell)
	}
}

// complete are the repetitions before the one that is interrupted: one of each system.
const complete = 2

// interrupted runs the example in pods until a repetition after some has begun, and says
// how many are complete: those that were rejected come again last.
func interrupted(t *testing.T) (o Options, done int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	o, _ = options(t, func(o *Options) {
		onKubernetes(t, o)
		o.Progress = &interrupter{cancel: cancel, turn: complete + 1, after: 3 * time.Second}
	})
	err := Run(ctx, o)
	by, ok := errors.AsType[*InterruptedError](err)
	if !ok {
		t.Fatalf("the run ended with %v", err)
	}
	return o, by.Done
}

// checkPods holds that every pod of a repetition is told, with what it has used, what has
// happened, and that the load's pipe is gone.
func checkPods(t *testing.T, s store, turn Turn) {
	t.Helper()
	last, err := s.last(turn)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]topology.Ref{}
	for _, u := range last.Uses {
		if u.CPU <= 0 || u.MemoryPeak <= 0 {
			t.Errorf("%s: %+v", turn.Cell, u)
		}
		used[u.Name] = u.Node
	}
	if used["load"] != "c2/head" || used["service"] != "c1/worker" || used["service-c1-head"] != "c1/head" {
		t.Errorf("%s: pods %v", turn.Cell, used)
	}
	if slices.ContainsFunc(last.Deaths, func(d Death) bool { return d.By == "" }) {
		t.Errorf("%s: deaths %+v", turn.Cell, last.Deaths)
	}
	c := last.Changes
	if len(c) != 5 || c[0].LateNs > int64(100*time.Millisecond) {
		t.Fatalf("%s: happened are %+v", turn.Cell, c)
	}
	for i, want := range []string{"stop-plane c1", "reboot c1/worker", "freeze c2/head:kubelet-c2-head", "evict c1/default/service"} {
		if happened := c[i+1]; happened.Fault != want || (happened.UndoneNs > happened.AtNs) != (i < 3) {
			t.Errorf("%s: %d: %+v, want %s", turn.Cell, i, happened, want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.turnDir(turn), ordersFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: the load's pipe: %v", turn.Cell, err)
	}
}

// checkTimeline holds that requests meet the link's event when it was asked for, counted
// from the first of them, as long as nothing else happens.
func checkTimeline(t *testing.T, turn Turn, requests []sample.Request) {
	t.Helper()
	const slack = 250 * time.Millisecond
	first := requests[0].ScheduledNs
	for _, r := range requests {
		at, took := time.Duration(r.ScheduledNs-first), time.Duration(r.ResponseNs())
		if at >= rebootsAt-2*delayAfter {
			continue
		}
		if slow := took >= 2*delayAfter; slow && at < slowsAt-slack || !slow && at > slowsAt+slack {
			t.Fatalf("%s: the request at %s took %s", turn.Cell, at, took)
		}
	}
}

// checkServed wants nearly all requests of a span answered: of a machine that is slow a
// connection may still come to a pod that has gone.
func checkServed(t *testing.T, turn Turn, requests []sample.Request, s span) {
	t.Helper()
	const least = 0.8
	start, n, answered := requests[0].ScheduledNs, 0, 0
	for _, r := range requests {
		start = min(start, r.ScheduledNs)
	}
	for _, r := range requests {
		if at := time.Duration(r.ScheduledNs - start); at < s.from || at >= s.until {
			continue
		}
		if n++; r.Error == "" {
			answered++
		}
	}
	if n == 0 || float64(answered) < least*float64(n) {
		t.Errorf("%s: of %d requests from %s to %s %d are answered", turn.Cell, n, s.from, s.until, answered)
	}
}

// robbed watches from now on whether the hypervisor takes the cores. What it returns says
// so, and is empty where the machine is its own.
func robbed(t *testing.T) func() string {
	t.Helper()
	before, err := host.Steal()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	return func() string {
		after, err := host.Steal()
		if err != nil {
			t.Fatal(err)
		}
		return proof.Host{StealNs: int64(after - before)}.Robbed(time.Since(began), runtime.NumCPU())
	}
}

// A load that cannot begin says why, in its own words.
func TestLoadErrorOfAPod(t *testing.T) {
	err := loadError(&cluster.EndedError{How: "Error, exit status 1", Said: "skerry-agent: error: no answer from 10.1.0.2:1\nskerry-agent: hint: see to it\n"})
	said, ok := errors.AsType[*AgentError](err)
	if !ok || said.Message != "no answer from 10.1.0.2:1" || said.Hint != "see to it" {
		t.Errorf("got %v", err)
	}
	if err := loadError(&cluster.EndedError{How: "OOMKilled, exit status 137"}); err.Error() != "load: skerry-agent has ended: OOMKilled, exit status 137" {
		t.Errorf("got %v", err)
	}
}
