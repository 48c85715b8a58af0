package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	core "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Calls of the API server that the lab makes itself are not rationed.
const (
	clientQPS, clientBurst = 1000, 2000
	// probeTimeout bounds one look whether the API server answers.
	probeTimeout = time.Second
)

// connect makes the client by which the lab calls the API server, over mgmt.
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

// await looks until what is starting has come about; its error tells what was seen
// last.
func (c *Cluster) await(ctx context.Context, what string, look func(context.Context) error) error {
	for {
		err := look(ctx)
		if err == nil {
			return nil
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
			ObjectMeta: meta.ObjectMeta{Name: m.Host()},
			Spec:       core.NodeSpec{PodCIDR: m.pods.String(), PodCIDRs: []string{m.pods.String()}},
		}, meta.CreateOptions{})
		if err != nil && !kerrors.IsAlreadyExists(err) {
			return fmt.Errorf("register node %s: %w", m, err)
		}
	}
	return nil
}

var errNotReady = errors.New("it is not ready")

// awaitNodes waits until every node is ready.
func (c *Cluster) awaitNodes(ctx context.Context) error {
	for _, m := range c.members {
		err := c.await(ctx, "node "+m.String(), func(ctx context.Context) error {
			node, err := c.client.CoreV1().Nodes().Get(ctx, m.Host(), meta.GetOptions{})
			if err != nil {
				return err
			}
			for _, condition := range node.Status.Conditions {
				if condition.Type != core.NodeReady {
					continue
				}
				if condition.Status == core.ConditionTrue {
					return nil
				}
				return fmt.Errorf("%w: %s", errNotReady, condition.Message)
			}
			return errNotReady
		})
		if err != nil {
			return err
		}
	}
	return nil
}
