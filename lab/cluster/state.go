package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/topology"
)

// NodeState is a node as the API server knows it.
type NodeState struct {
	Node  topology.Ref `json:"node"`
	Ready bool         `json:"ready"`
	// Why it is not ready.
	Why string `json:"why,omitempty"`
}

// PodState is a pod as the API server knows it, and what it uses as the kernel does.
type PodState struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Workload is what has made it: the name of a Deployment, DaemonSet or other.
	Workload string `json:"workload,omitempty"`
	// Node that it is at; empty before it has one.
	Node topology.Ref `json:"node,omitempty"`
	IP   string       `json:"ip,omitempty"`
	// Pid of a process in its namespaces; 0 where none runs.
	Pid   int  `json:"pid,omitempty"`
	Ready bool `json:"ready"`
	// Status is its phase, or what holds it up.
	Status   string `json:"status"`
	Restarts int    `json:"restarts"`
	// What it has used since it began, and the memory that it holds now, in bytes.
	cgroup.Usage
	Held int64 `json:"memory_bytes"`
}

// State is what a cluster consists of now.
type State struct {
	Nodes []NodeState `json:"nodes"`
	Pods  []PodState  `json:"pods"`
}

// ErrNoAnswer says that a cluster cannot be asked.
var ErrNoAnswer = errors.New("its API server does not answer")

// stateTimeout bounds how long a look at a cluster may wait for its API server.
const stateTimeout = 3 * time.Second

// State asks the API server for nodes and pods, in the order of their names.
func (c *Cluster) State(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	var s State
	for _, m := range c.members {
		n := NodeState{Node: m.Ref()}
		switch err := c.Ready(ctx, m.Ref()); {
		case err == nil:
			n.Ready = true
		case errors.Is(err, errNotReady):
			n.Why = strings.TrimPrefix(err.Error(), errNotReady.Error()+": ")
		default:
			return State{}, fmt.Errorf("cluster %s: %w: %w", c.Name, ErrNoAnswer, err)
		}
		s.Nodes = append(s.Nodes, n)
	}
	list, err := c.client.CoreV1().Pods(meta.NamespaceAll).List(ctx, meta.ListOptions{})
	if err != nil {
		return State{}, fmt.Errorf("cluster %s: %w: %w", c.Name, ErrNoAnswer, err)
	}
	for _, p := range list.Items {
		pod, err := c.podState(p)
		if err != nil {
			return State{}, err
		}
		s.Pods = append(s.Pods, pod)
	}
	return s, nil
}

func (c *Cluster) podState(p core.Pod) (PodState, error) {
	s := PodState{
		Namespace: p.Namespace, Name: p.Name, Workload: workloadOf(p), IP: p.Status.PodIP,
		Ready: isReady(p), Status: statusText(p),
	}
	for _, container := range p.Status.ContainerStatuses {
		s.Restarts += int(container.RestartCount)
	}
	i := slices.IndexFunc(c.members, func(m member) bool { return m.Host() == p.Spec.NodeName })
	if i < 0 {
		return s, nil
	}
	s.Node = c.members[i].Ref()
	group := path.Join(c.members[i].podGroup(), groupOf(p))
	pids, use, err := c.lab.Delegated(group)
	if err == nil {
		s.Usage = use
		s.Held, err = c.lab.Held(group)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has ended, or not begun
		return s, fmt.Errorf("look at pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	if len(pids) > 0 {
		s.Pid = pids[0]
	}
	return s, nil
}

// workloadOf is what a user has made that a pod is of. A Deployment makes its pods by a
// ReplicaSet, whose name adds a hash to its own.
func workloadOf(p core.Pod) string {
	owner := meta.GetControllerOf(&p)
	if owner == nil {
		return ""
	}
	return strings.TrimSuffix(owner.Name, "-"+p.Labels[apps.DefaultDeploymentUniqueLabelKey])
}

// statusText of a pod is what holds its containers up, or else its phase.
func statusText(p core.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
		if t := s.State.Terminated; t != nil && t.Reason != "" {
			return t.Reason
		}
	}
	if p.Status.Reason != "" {
		return p.Status.Reason
	}
	return string(p.Status.Phase)
}

// Match finds the pods that NAMESPACE/NAME means: the pod of that name, or those of the
// workload of that name.
func (s State) Match(target string) (found []PodState) {
	namespace, name, _ := strings.Cut(target, "/")
	for _, p := range s.Pods {
		if p.Namespace == namespace && p.Name == name {
			return []PodState{p}
		}
		if p.Namespace == namespace && p.Workload == name {
			found = append(found, p)
		}
	}
	return found
}
