package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/topology"
)

// Installed is what a manifest has a cluster run: a DaemonSet, and what belongs to it.
type Installed struct {
	cluster *Cluster
	objects []object
	set     *apps.DaemonSet
	pods    []*installedPod
	once    sync.Once
	ended   chan struct{}
}

// installedPod is the DaemonSet's at a node.
type installedPod struct {
	watched
	node topology.Ref
	pod  string
}

// ErrOneDaemonSet is of a manifest that is not of one.
var ErrOneDaemonSet = errors.New("a manifest that is installed has one DaemonSet")

// Install makes the objects of a manifest and returns when the pods of its DaemonSet are
// ready at every node. What is made so far is taken away again where that fails.
func (c *Cluster) Install(ctx context.Context, manifest []byte) (*Installed, error) {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	i := &Installed{cluster: c, ended: make(chan struct{})}
	if err := i.make(ctx, manifest); err != nil {
		return nil, errors.Join(err, i.takeAway())
	}
	return i, nil
}

func (i *Installed) make(ctx context.Context, manifest []byte) error {
	objects, err := i.cluster.objects(manifest)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "DaemonSet" && i.set == nil {
			i.set = &apps.DaemonSet{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, i.set)
		} else if o.GetKind() == "DaemonSet" {
			err = ErrOneDaemonSet
		}
		if err != nil {
			return err
		}
	}
	if i.set == nil {
		return ErrOneDaemonSet
	}
	for _, o := range objects {
		i.objects = append(i.objects, o)
		if err := o.apply(ctx); err != nil {
			return err
		}
	}
	return i.await(ctx)
}

// selector chooses the pods.
func (i *Installed) selector() string { return meta.FormatLabelSelector(i.set.Spec.Selector) }

// await waits for a pod at every node, and watches each.
func (i *Installed) await(ctx context.Context) error {
	c := i.cluster
	var pods []core.Pod
	err := c.await(ctx, "DaemonSet "+i.set.Name, func(ctx context.Context) (err error) {
		if pods, err = c.podsReady(ctx, i.set.Namespace, i.selector()); err == nil && len(pods) < len(c.members) {
			err = errNotReady
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, p := range pods {
		at := slices.IndexFunc(c.members, func(m member) bool { return m.Host() == p.Spec.NodeName })
		one := &installedPod{
			watched: watched{cluster: c, name: i.set.Name, group: path.Join(c.members[at].podGroup(), groupOf(p)), done: make(chan struct{})},
			node:    c.members[at].Ref(), pod: p.Name,
		}
		pid, err := c.pidOf(one.group, statusOf(p))
		if err == nil && pid == 0 {
			err = fmt.Errorf("%s at %s has ended", i.set.Name, one.node)
		}
		if err == nil {
			err = one.watch(pid)
		}
		if err != nil {
			return err
		}
		i.pods = append(i.pods, one)
		go i.follow(one)
	}
	return nil
}

// follow tells of the first pod whose program has ended.
func (i *Installed) follow(p *installedPod) {
	<-p.done
	i.once.Do(func() { close(i.ended) })
}

// Done is closed when the program of a pod has ended, to the millisecond.
func (i *Installed) Done() <-chan struct{} { return i.ended }

// Ended are the nodes at whose pods the program has ended. Another may run there by now.
func (i *Installed) Ended() (nodes []topology.Ref) {
	for _, p := range i.pods {
		if p.ended() {
			nodes = append(nodes, p.node)
		}
	}
	return nodes
}

// Err says where the program has ended; nil while none has.
func (i *Installed) Err() error {
	var at []string
	for _, node := range i.Ended() {
		at = append(at, string(node))
	}
	if at == nil {
		return nil
	}
	return fmt.Errorf("in the pod at %s", strings.Join(at, ", "))
}

// Use is what the pods have consumed, by their nodes: of one whose program has ended until
// then.
func (i *Installed) Use() (map[topology.Ref]cgroup.Usage, error) {
	uses := map[topology.Ref]cgroup.Usage{}
	for _, p := range i.pods {
		if p.ended() {
			uses[p.node] = p.use
			continue
		}
		_, use, err := i.cluster.lab.Delegated(p.group)
		if err != nil {
			return nil, fmt.Errorf("what %s at %s has used: %w", p.name, p.node, err)
		}
		uses[p.node] = use
	}
	return uses, nil
}

// Log writes what the pods have said, those of each node behind its name: of a program
// that has ended the last words, before those of the one that came in its place.
func (i *Installed) Log(ctx context.Context, w io.Writer) error {
	for _, p := range i.pods {
		var words []byte
		if p.ended() {
			words, _ = i.said(ctx, p, true) // there is none where it has not begun again
		}
		now, err := i.said(ctx, p, false)
		if err != nil && len(words) == 0 && !p.ended() {
			return fmt.Errorf("read what %s at %s says: %w", p.name, p.node, err)
		}
		if _, err := fmt.Fprintf(w, "%s:\n%s%s", p.node, words, now); err != nil {
			return err
		}
	}
	return nil
}

// said is what a pod's program has said, or the one before it.
func (i *Installed) said(ctx context.Context, p *installedPod, before bool) ([]byte, error) {
	return i.cluster.client.CoreV1().Pods(i.set.Namespace).GetLogs(p.pod, &core.PodLogOptions{Previous: before}).DoRaw(ctx)
}

// Remove takes away what was made, and returns when the pods are gone.
func (i *Installed) Remove() error { return i.takeAway() }

func (i *Installed) takeAway() error {
	ctx, cancel := context.WithTimeout(context.Background(), standTimeout)
	defer cancel()
	policy := meta.DeletePropagationForeground
	var err error
	for _, o := range slices.Backward(i.objects) {
		err = errors.Join(err, gone(o.at.Delete(ctx, o.GetName(), meta.DeleteOptions{PropagationPolicy: &policy})))
	}
	if i.set == nil {
		return err
	}
	return errors.Join(err, i.cluster.awaitGone(ctx, "DaemonSet "+i.set.Name, func(ctx context.Context) error {
		_, err := i.cluster.client.AppsV1().DaemonSets(i.set.Namespace).Get(ctx, i.set.Name, meta.GetOptions{})
		return err
	}))
}
