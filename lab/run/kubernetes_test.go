package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"skerry.dev/skerry/internal/gobuild"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/kube"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
	"skerry.dev/skerry/systems"
)

const (
	// Delays of the link before and after its timeline's event.
	delayBefore, delayAfter = time.Millisecond, 10 * time.Millisecond
	eventAt                 = 400 * time.Millisecond
)

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
		Name: "slows", Links: []experiment.Link{link(delayBefore)},
		Timeline: []experiment.Event{{At: quantity.Duration(eventAt), Link: link(delayAfter)}},
	}}
	e.Systems, e.Objectives = []string{"direct", "ingress-head"}, nil
	e.Load = experiment.Load{Iterations: 60, Think: []quantity.Duration{quantity.Duration(10 * time.Millisecond)}}
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
// timeline begins with its requests. A run that is interrupted leaves what is
// complete, and no lab.
func TestOnKubernetes(t *testing.T) {
	const complete, tries = 2, 3
	o, done := interrupted(t, complete)
	for try := 1; done < complete && try < tries; try++ { // a repetition was rejected
		o, done = interrupted(t, complete)
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
		if s := r.Summary; s.Requests != o.Experiment.Load.Iterations || s.Errors != 0 || r.HopMap.String() != want {
			t.Errorf("%s: %d requests, %d errors, by way of %s", r.Cell, s.Requests, s.Errors, r.HopMap)
		}
		turn := Turn{Cell: r.Cell, Repetition: 1}
		checkPods(t, store{o.Dir}, turn)
		requests, err := readSamples(filepath.Join(store{o.Dir}.turnDir(turn), samplesFile))
		if err != nil {
			t.Fatal(err)
		}
		checkTimeline(t, turn, requests)
	}
}

// interrupted runs the example in pods until a repetition after some has begun, and says
// how many are complete: those that were rejected come again last.
func interrupted(t *testing.T, complete int) (o Options, done int) {
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

// checkPods holds that every pod of a repetition is told, with what it has used, and
// that the load's pipe is gone.
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
	if used["load"] != "c2/head" || used["service"] != "c1/worker" || used["service-c1-head"] != "c1/head" || len(last.Deaths) > 0 {
		t.Errorf("%s: pods %v, deaths %v", turn.Cell, used, last.Deaths)
	}
	if len(last.Changes) != 1 || last.Changes[0].LateNs > int64(100*time.Millisecond) {
		t.Errorf("%s: changes %+v", turn.Cell, last.Changes)
	}
	if _, err := os.Stat(filepath.Join(s.turnDir(turn), ordersFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: the load's pipe: %v", turn.Cell, err)
	}
}

// checkTimeline holds that requests meet the event when it was asked for, counted
// from the first of them.
func checkTimeline(t *testing.T, turn Turn, requests []sample.Request) {
	t.Helper()
	const slack = 250 * time.Millisecond
	first := requests[0].ScheduledNs
	for _, r := range requests {
		at, took := time.Duration(r.ScheduledNs-first), time.Duration(r.ResponseNs())
		if slow := took >= 2*delayAfter; slow && at < eventAt-slack || !slow && at > eventAt+slack {
			t.Fatalf("%s: the request at %s took %s", turn.Cell, at, took)
		}
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
