package run

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/report"
	"skerry.dev/skerry/lab/sample"
	"skerry.dev/skerry/lab/topology"
)

// A death is a fault's where its node, and its process or a pod there, was hit.
func TestExplains(t *testing.T) {
	process := hit{words: "kill c1/head:web", node: "c1/head", befallen: []host.Running{{Name: "web", Node: "c1/head"}}}
	container := hit{words: "reboot c1/head", node: "c1/head", befallen: []host.Running{{Name: "kubelet-c1-head"}, {Name: host.PodGroup(topology.Node{Cluster: "c1", Name: "head"}) + "/0123456789ab"}}}
	evicted := hit{words: "evict c1/default/service", node: "c1/head", pods: true}
	for _, c := range []struct {
		hit  hit
		name string
		node topology.Ref
		pod  bool
		want bool
	}{
		{process, "web", "c1/head", false, true},
		{process, "web", "c2/head", false, false},
		{process, "gate", "c1/head", false, false},
		{process, "service", "c1/head", true, false},
		{container, "service", "c1/head", true, true},
		{container, "gate", "c1/head", false, false}, // it had ended before
		{evicted, "service", "c1/head", true, true},
		{evicted, "service", "c1/worker", true, false},
		{evicted, "service", "c1/head", false, false},
	} {
		b := &breaker{hits: []hit{c.hit}}
		if got := b.by(c.name, c.node, c.pod); (got == c.hit.words) != c.want || !c.want && got != "" {
			t.Errorf("%s: %s at %s, a pod: %t: by %q", c.hit.words, c.name, c.node, c.pod, got)
		}
	}
}

const (
	// When the service is frozen and its node is killed, and for how long each.
	frozenAt, killedAt, failing = 500 * time.Millisecond, 1800 * time.Millisecond, 700 * time.Millisecond
	// A request that is held up fails after this.
	impatience = 150 * time.Millisecond
	// lasting is the load. Its process needs some time until its first request, from
	// which the times of requests are counted.
	lasting, starting = 3 * time.Second, 150 * time.Millisecond
)

// faulty has the service of the example freeze, and its node fail: for a time, and in
// another scenario until the load has ended.
func faulty(o *Options) {
	event := func(at time.Duration, f experiment.Fault) experiment.Event {
		return experiment.Event{At: quantity.Duration(at), Fault: f}
	}
	off := o.Experiment.Scenarios[0]
	near := experiment.Scenario{Name: off.Name} // without a link, which a busy machine emulates badly
	off.Name = "off"
	near.Timeline = []experiment.Event{
		event(frozenAt, experiment.Fault{Freeze: "c1/head:service", For: quantity.Duration(failing)}),
		event(killedAt, experiment.Fault{Kill: "c1/head", For: quantity.Duration(failing)}),
	}
	off.Timeline = []experiment.Event{event(frozenAt, experiment.Fault{Kill: "c1/head"})}
	o.Experiment.Scenarios, o.Experiment.Objectives = []experiment.Scenario{near, off}, nil
	o.Experiment.Load = experiment.Load{
		Rate: []quantity.Frequency{100}, Duration: quantity.Duration(lasting), Threads: []int{32}, Timeout: quantity.Duration(impatience),
	}
	o.LabName += "-faults"
}

// Requests fail while the service is frozen, succeed after that, and fail once its node
// was killed, on which the service does not come back. Yet the links are proven after
// that, and the next repetition has a service again.
func TestFaultsOnHosts(t *testing.T) {
	o, said := realRun(t, faulty)
	input, err := Collect(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= o.Experiment.Repetitions; n++ {
		checkFaults(t, store{o.Dir}, Turn{Cell: input.Results[0].Cell, Repetition: n})
		checkOff(t, store{o.Dir}, Turn{Cell: input.Results[1].Cell, Repetition: n})
	}
	const death = "repetition 1: service at c1/head ended while the load ran: signal: killed, by kill c1/head"
	told := slices.DeleteFunc(slices.Clone(said.said), func(text string) bool { return !strings.Contains(text, "service at c1/head ended") })
	if !slices.ContainsFunc(told, func(text string) bool {
		return strings.HasPrefix(text, input.Results[0].Cell.String()) && strings.HasSuffix(text, death)
	}) {
		t.Errorf("the user was told %q", told)
	}
	r := input.Results[0]
	if r.Rejected != "" || r.Summary.N == 0 {
		t.Errorf("%d answers, rejected %q", r.Summary.N, r.Rejected)
	}
	if !slices.Contains(r.Oracle.Notes, death) || !slices.Contains(r.Oracle.Notes, "faults happen while the load runs: this is without them") {
		t.Errorf("the report notes %q", r.Oracle.Notes)
	}
	if len(r.Events) != 4 || r.Events[0].Fault != "freeze c1/head:service" || r.Events[3].Repetition != 2 {
		t.Errorf("the report tells of %+v", r.Events)
	}
	for _, f := range figuresOf(input, report.KindTimeline) {
		if strings.Contains(f.Caption, "near") && !strings.Contains(f.Description(), ": freeze c1/head:service") {
			t.Errorf("the figure says %q", f.Description())
		}
	}
}

// figuresOf a kind.
func figuresOf(input report.Input, kind report.Kind) []report.Figure {
	all, _ := report.Figures(input)
	return slices.DeleteFunc(all, func(f report.Figure) bool { return f.Kind != kind })
}

// checkFaults looks at one repetition of the first scenario.
func checkFaults(t *testing.T, s store, turn Turn) {
	t.Helper()
	last, err := s.last(turn)
	if err != nil {
		t.Fatal(err)
	}
	checkDeaths(t, last)
	checkChanges(t, last.Changes)
	requests, err := readSamples(filepath.Join(s.turnDir(turn), samplesFile))
	if err != nil {
		t.Fatal(err)
	}
	freeze, kill := last.Changes[0], last.Changes[1]
	checkSpan(t, turn, requests, span{0, frozenAt - impatience - starting}, true)
	checkSpan(t, turn, requests, span{time.Duration(freeze.AtNs + freeze.LateNs), frozenAt + failing - impatience - starting}, false)
	checkSpan(t, turn, requests, span{time.Duration(freeze.UndoneNs), killedAt - impatience - starting}, true)
	checkSpan(t, turn, requests, span{time.Duration(kill.AtNs + kill.LateNs), lasting}, false)
}

// checkOff looks at every try of a repetition of the second scenario, which a busy
// machine may have rejected: its fault was undone when the load had ended, and before
// the link was probed again.
func checkOff(t *testing.T, s store, turn Turn) {
	t.Helper()
	tries, err := s.tries(turn)
	if err != nil || len(tries) == 0 {
		t.Fatalf("%d tries, %v", len(tries), err)
	}
	for _, try := range tries {
		checkDeaths(t, try)
		if len(try.Changes) != 1 || try.Changes[0].UndoneNs < int64(lasting-starting) {
			t.Errorf("%s: changes %+v", turn.Cell, try.Changes)
		}
		if len(try.Proof.Directions) != 2 {
			t.Errorf("%s: proven are %+v", turn.Cell, try.Proof.Directions)
		}
		for _, d := range try.Proof.Directions {
			if d.Before.Received == 0 || d.After.Received == 0 {
				t.Errorf("%s: %s was probed by %+v and %+v", turn.Cell, d.Name, d.Before, d.After)
			}
		}
	}
}

func checkDeaths(t *testing.T, r Repetition) {
	t.Helper()
	if len(r.Deaths) != 1 || r.Deaths[0].Name != serviceName || r.Deaths[0].By != "kill c1/head" {
		t.Errorf("%s, repetition %d: deaths %+v", r.Cell, r.Repetition, r.Deaths)
	}
}

// checkChanges holds that each fault began, and ended, when it was to.
func checkChanges(t *testing.T, changes []Change) {
	t.Helper()
	if len(changes) != 2 {
		t.Fatalf("happened are %+v", changes)
	}
	const late = int64(300 * time.Millisecond)
	for i, at := range []time.Duration{frozenAt, killedAt} {
		c, until := changes[i], int64(at+failing)
		// An interface takes up to a second to come up.
		if c.AtNs != int64(at) || c.LateNs < 0 || c.LateNs > late || c.UndoneNs < until || c.UndoneNs > until+5*late {
			t.Errorf("%+v", c)
		}
	}
}

// span of time, from the first request on.
type span struct{ from, until time.Duration }

// checkSpan holds that all requests that were due in a span of time were answered, or
// that none was.
func checkSpan(t *testing.T, turn Turn, requests []sample.Request, s span, answered bool) {
	t.Helper()
	start, n := requests[0].ScheduledNs, 0
	for _, r := range requests {
		start = min(start, r.ScheduledNs)
	}
	for _, r := range requests {
		at := time.Duration(r.ScheduledNs - start)
		if at < s.from || at >= s.until {
			continue
		}
		if n++; (r.Error == "") != answered {
			t.Errorf("%s: the request at %s: error %q", turn.Cell, at, r.Error)
			return
		}
	}
	if n == 0 {
		t.Errorf("%s: no request from %s to %s", turn.Cell, s.from, s.until)
	}
}
