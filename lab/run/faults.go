package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/experiment"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

const (
	// evictTimeout bounds how long an API server may take to have pods go.
	evictTimeout = 10 * time.Second
	// wholeTimeout bounds how long a cluster may take to recover from faults: a program
	// that has lost its API server asks for it again after half a minute at the latest.
	wholeTimeout = 4 * time.Minute
)

// errNoPod says that there is nothing to evict.
var errNoPod = errors.New("there is no such pod or workload")

// breaker has the faults of a timeline begin and end, each known by its index.
type breaker struct {
	lab      *host.Lab
	clusters map[string]*cluster.Cluster
	events   []experiment.Event
	// pending are those that are to be undone. One without an ID is of a program of a
	// cluster that was killed: the lab has forgotten it, and it is to start again.
	pending map[int]host.Fault
	// hits are what faults have ended, and setbacks what is left to recover from, by
	// the names of clusters.
	hits     []hit
	setbacks map[string]*cluster.Setback
}

func newBreaker(lab *host.Lab, events []experiment.Event) *breaker {
	return &breaker{lab: lab, events: events, pending: map[int]host.Fault{}, setbacks: map[string]*cluster.Setback{}}
}

// begin has a fault begin; it returns when the fault is in force.
func (b *breaker) begin(ctx context.Context, i int) error {
	e := b.events[i]
	verb, of := e.Deed()
	if verb == experiment.VerbEvict {
		return b.evict(ctx, e)
	}
	f := host.Fault{Kind: host.Freeze}
	f.Node, f.Process = e.Victim()
	switch verb {
	case experiment.VerbKill, experiment.VerbReboot:
		f.Kind = host.Kill
	case experiment.VerbStopPlane:
		f = b.clusters[of].StopPlane()
	}
	name, _ := f.Node.Split()
	c := b.clusters[name]
	if c != nil { // before a fault hides it
		if err := c.Ended(); err != nil {
			return err
		}
	}
	befallen, err := b.lab.Befallen(f)
	if err != nil {
		return err
	}
	began := time.Now()
	if f, err = b.lab.Inject(ctx, f); err != nil {
		return err
	}
	if c != nil && f.Kind != host.Freeze {
		c.Forget(befallen)
	}
	if f.Kind == host.Kill {
		b.hits = append(b.hits, hit{words: e.Words(), node: f.Node, befallen: befallen})
	}
	if f.ID > 0 || c != nil {
		b.pending[i] = f
	}
	if f.ID > 0 && f.Kind == host.Kill {
		b.setback(name).Booted[f.Node] = began
	}
	return nil
}

// evict has pods go by the Eviction API.
func (b *breaker) evict(ctx context.Context, e experiment.Event) error {
	name, target, _ := strings.Cut(e.Evict, "/")
	c := b.clusters[name]
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	state, err := c.State(ctx)
	if err != nil {
		return err
	}
	pods := state.Match(target)
	if len(pods) == 0 {
		return fmt.Errorf("%s: %w", e.Evict, errNoPod)
	}
	for _, p := range pods {
		if err := c.Evict(ctx, p); err != nil {
			return err
		}
		b.hits = append(b.hits, hit{words: e.Words(), node: p.Node, pods: true})
	}
	b.setback(name).Since = time.Now()
	return nil
}

// setback of a cluster, which is none of a cluster of hosts.
func (b *breaker) setback(name string) *cluster.Setback {
	if b.setbacks[name] == nil {
		b.setbacks[name] = &cluster.Setback{Booted: map[topology.Ref]time.Time{}}
	}
	return b.setbacks[name]
}

// lasting are the faults in force, in the order in which they began.
func (b *breaker) lasting() (all []int) {
	for i := range b.events {
		if _, lasts := b.pending[i]; lasts {
			all = append(all, i)
		}
	}
	return all
}

// end undoes a fault, and says whether there was anything to undo.
func (b *breaker) end(ctx context.Context, i int) (undone bool, err error) {
	f, lasts := b.pending[i]
	if !lasts {
		return false, nil
	}
	name, _ := f.Node.Split()
	undone = true
	switch c := b.clusters[name]; {
	case c == nil:
		err = b.lab.Undo(ctx, f.ID)
	case f.ID == 0:
		undone, err = c.Repair(ctx, f.Node)
	default:
		err = c.Undo(ctx, f.ID)
	}
	if err != nil && !errors.Is(err, host.ErrNoFault) { // else it was undone by hand
		return false, err
	}
	delete(b.pending, i)
	b.setback(name).Since = time.Now()
	return undone, nil
}

// hit is what a fault has ended at a node.
type hit struct {
	// words of the fault.
	words string
	node  topology.Ref
	// befallen are the processes and containers, where they are known by name.
	befallen []host.Running
	// pods of the node are gone.
	pods bool
}

// explains says whether the end of a process, or of a pod's container, is due to it.
func (h hit) explains(name string, node topology.Ref, pod bool) bool {
	if h.node != node {
		return false
	}
	if pod {
		return h.pods || slices.ContainsFunc(h.befallen, host.Running.InPod)
	}
	return slices.ContainsFunc(h.befallen, func(r host.Running) bool { return r.Name == name })
}

// by is the fault that has ended a process or a pod's container; empty where none has.
func (b *breaker) by(name string, node topology.Ref, pod bool) string {
	for _, h := range b.hits {
		if h.explains(name, node, pod) {
			return h.words
		}
	}
	return ""
}

// awaitWhole waits until the clusters that faults have befallen are whole again, so that
// what became of their pods is known, and they can serve the next repetition.
func (r *runner) awaitWhole(ctx context.Context, b *breaker) error {
	ctx, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	for name, s := range b.setbacks {
		c := r.clusters[name]
		if c == nil {
			continue // what is started at its hosts is started anew
		}
		workload := ""
		if r.servesIn(name) {
			workload = serviceName
		}
		if err := c.AwaitWhole(ctx, *s, workload); err != nil {
			return fmt.Errorf("cluster %s after the faults of the timeline: %w", name, err)
		}
	}
	return nil
}

// servesIn says whether the workload has pods in a cluster.
func (r *runner) servesIn(name string) bool {
	t := r.Experiment.Topology
	return slices.ContainsFunc(append([]topology.Ref{t.Service}, t.Replicas...), func(node topology.Ref) bool {
		in, _ := node.Split()
		return in == name
	})
}

// tellDeaths notes what has ended while the load ran. A daemon of a system or a program
// of a cluster that no fault has ended is an error.
func (r *runner) tellDeaths(ctx context.Context, a *attempt, running *system.Running, workload served) error {
	for _, d := range running.Deaths() {
		by := a.faults.by(d.Name, d.Node, d.Pod)
		if by == "" {
			return fmt.Errorf("system %s: %w", a.Cell.System, d)
		}
		a.result.Deaths = append(a.result.Deaths, Death{Name: d.Name, Node: d.Node, How: d.How.Error(), By: by})
	}
	if err := r.clustersEnded(); err != nil {
		return err
	}
	served, err := workload.deaths(ctx)
	if err != nil {
		return err
	}
	for _, d := range served {
		d.By = a.faults.by(d.Name, d.Node, r.onKubernetes())
		a.result.Deaths = append(a.result.Deaths, d)
	}
	for _, d := range a.result.Deaths {
		if d.By == "" || a.Repetition == 1 { // what was asked for is told once
			r.Progress.Note(fmt.Sprintf("%s, repetition %d: %s", a.Cell, a.Repetition, d))
		}
	}
	return nil
}
