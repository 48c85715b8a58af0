package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"skerry.dev/skerry/lab/topology"
)

// Calls of the API server that the lab makes itself are not rationed.
const (
	clientQPS, clientBurst = 1000, 2000
	// probeTimeout bounds one look whether the API server answers.
	probeTimeout = time.Second
)

// connect makes the client by which the lab calls the API server, from within its
// node.
func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.plane.file("admin.kubeconfig"))
	if err != nil {
		return fmt.Errorf("call the API server: %w", err)
	}
	head := c.members[0]
	config.QPS, config.Burst = clientQPS, clientBurst
	config.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
		return c.lab.Dial(ctx, head.Ref(), address)
	}
	c.config = config
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

// awaitAPI waits until the API server is ready.
func (c *Cluster) awaitAPI(ctx context.Context) error {
	return c.await(ctx, "kube-apiserver", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		_, err := c.client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// await looks until what is starting has come about, or a program has ended; its
// error tells what was seen last.
func (c *Cluster) await(ctx context.Context, what string, look func(context.Context) error) error {
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		if ended := c.Ended(); ended != nil {
			return ended
		}
		_, lacks := errors.AsType[*ImageError](err)
		if _, ended := errors.AsType[*EndedError](err); ended || lacks { // it never will
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(pollPause):
		}
	}
}

// registerNodes makes the nodes, with their ranges of pods, before their kubelets
// do: so they have those that their CNI gives away.
func (c *Cluster) registerNodes(ctx context.Context) error {
	for _, m := range c.members {
		_, err := c.client.CoreV1().Nodes().Create(ctx, &core.Node{
			ObjectMeta: meta.ObjectMeta{Name: m.Host(), Annotations: annotations(c.options.Spec, m)},
			Spec:       core.NodeSpec{PodCIDR: m.pods.String(), PodCIDRs: m.podRanges()},
		}, meta.CreateOptions{})
		if err != nil && !kerrors.IsAlreadyExists(err) {
			return fmt.Errorf("register node %s: %w", m, err)
		}
	}
	return nil
}

var errNotReady = errors.New("it is not ready")

// Ready says whether a node is, as the API server knows it: nil, or why not.
func (c *Cluster) Ready(ctx context.Context, ref topology.Ref) error {
	m, err := c.memberAt(ref)
	if err != nil {
		return err
	}
	now, err := c.client.CoreV1().Nodes().Get(ctx, m.Host(), meta.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range now.Status.Conditions {
		if condition.Type != core.NodeReady {
			continue
		}
		if condition.Status == core.ConditionTrue {
			return nil
		}
		return fmt.Errorf("%w: %s", errNotReady, condition.Message)
	}
	return errNotReady
}

// awaitNodes waits until every node is ready.
func (c *Cluster) awaitNodes(ctx context.Context) error {
	for _, m := range c.members {
		err := c.await(ctx, "node "+m.String(), func(ctx context.Context) error { return c.Ready(ctx, m.Ref()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitPods waits until the pods of the cluster that a selector names are ready.
func (c *Cluster) awaitPods(ctx context.Context, selector string) error {
	return c.await(ctx, "a pod", func(ctx context.Context) error {
		_, err := c.podsReady(ctx, meta.NamespaceAll, selector)
		return err
	})
}

// podsReady are the pods that a selector names, and whether they are ready and there is
// one: nil, or which is not and what its node says about that.
func (c *Cluster) podsReady(ctx context.Context, in, selector string) ([]core.Pod, error) {
	list, err := c.client.CoreV1().Pods(in).List(ctx, meta.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 { // their Deployment has not made them yet
		return nil, errNotReady
	}
	for _, pod := range list.Items {
		if err := lacksImage(pod); err != nil {
			return list.Items, err
		}
		if !isReady(pod) {
			return list.Items, fmt.Errorf("pod %s: %w%s", pod.Name, errNotReady, c.why(ctx, pod))
		}
	}
	return list.Items, nil
}

// why a pod is not ready: what holds its container up, and the last warning about it.
func (c *Cluster) why(ctx context.Context, pod core.Pod) (text string) {
	for _, s := range pod.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil {
			text += "; " + strings.TrimSpace(w.Reason+" "+w.Message)
		}
	}
	events, err := c.client.CoreV1().Events(pod.Namespace).List(ctx, meta.ListOptions{
		FieldSelector: "type=Warning,involvedObject.name=" + pod.Name,
	})
	if err == nil && len(events.Items) > 0 {
		text += "; " + events.Items[len(events.Items)-1].Message
	}
	return text
}

func isReady(pod core.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c core.PodCondition) bool {
		return c.Type == core.PodReady && c.Status == core.ConditionTrue
	})
}

// Endpoints counts the pods behind a Service that take requests.
func (c *Cluster) Endpoints(ctx context.Context, service string) (int, error) {
	list, err := c.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, meta.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + service})
	if err != nil {
		return 0, fmt.Errorf("endpoints of %s: %w", service, err)
	}
	n := 0
	for _, slice := range list.Items {
		if slice.AddressType != discovery.AddressTypeIPv4 { // a dual Service's pods stand in another as well
			continue
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				n++
			}
		}
	}
	return n, nil
}
