package cluster

import (
	"context"
	"errors"
	"fmt"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"skerry.dev/skerry/lab/topology"
)

// Workload is an application that a cluster serves: a Deployment of one pod at a
// node, behind a Service of its name.
type Workload struct {
	Name string
	Node topology.Ref
	// Args of skerry-agent; it listens at Port.
	Args []string
	Port int
	// NodePort at which every node of the cluster takes requests.
	NodePort int
	// UDP is what it speaks, in place of TCP; then it is ready as it starts.
	UDP bool
}

func (w Workload) protocol() core.Protocol {
	if w.UDP {
		return core.ProtocolUDP
	}
	return core.ProtocolTCP
}

const namespace = "default"

// Deploy makes a workload and returns when its pod is ready.
func (c *Cluster) Deploy(ctx context.Context, w Workload) error {
	labels := map[string]string{"app": w.Name}
	m, err := c.memberAt(w.Node)
	if err != nil {
		return err
	}
	deployment := &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: w.Name, Labels: labels},
		Spec: apps.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: w.pod(m)},
		},
	}
	if _, err := c.client.AppsV1().Deployments(namespace).Create(ctx, deployment, meta.CreateOptions{}); err != nil {
		return fmt.Errorf("deploy %s: %w", w.Name, err)
	}
	service := &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: w.Name, Labels: labels},
		Spec: core.ServiceSpec{
			Type: core.ServiceTypeNodePort, Selector: labels,
			Ports: []core.ServicePort{{Protocol: w.protocol(), Port: int32(w.Port), TargetPort: intstr.FromInt(w.Port), NodePort: int32(w.NodePort)}},
		},
	}
	if _, err := c.client.CoreV1().Services(namespace).Create(ctx, service, meta.CreateOptions{}); err != nil {
		return fmt.Errorf("deploy %s: %w", w.Name, err)
	}
	return c.await(ctx, "workload "+w.Name, func(ctx context.Context) error {
		now, err := c.client.AppsV1().Deployments(namespace).Get(ctx, w.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		if now.Status.ReadyReplicas < 1 {
			return errNotReady
		}
		return nil
	})
}

// pod of the workload.
func (w Workload) pod(m member) core.PodSpec {
	container := core.Container{
		Name: w.Name, Image: AgentImage, ImagePullPolicy: core.PullNever, Args: w.Args,
		Ports: []core.ContainerPort{{ContainerPort: int32(w.Port), Protocol: w.protocol()}},
	}
	if !w.UDP {
		container.ReadinessProbe = &core.Probe{
			ProbeHandler:  core.ProbeHandler{TCPSocket: &core.TCPSocketAction{Port: intstr.FromInt(w.Port)}},
			PeriodSeconds: 1,
		}
	}
	return core.PodSpec{
		NodeSelector:                  map[string]string{core.LabelHostname: m.Host()},
		Containers:                    []core.Container{container},
		TerminationGracePeriodSeconds: new(int64(1)),
		EnableServiceLinks:            new(false),
	}
}

// Remove takes a workload away and returns when it and its pods are gone.
func (c *Cluster) Remove(ctx context.Context, name string) error {
	policy := meta.DeletePropagationForeground
	if err := c.client.AppsV1().Deployments(namespace).Delete(ctx, name, meta.DeleteOptions{PropagationPolicy: &policy}); gone(err) != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if err := c.client.CoreV1().Services(namespace).Delete(ctx, name, meta.DeleteOptions{}); gone(err) != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return c.await(ctx, "end of "+name, func(ctx context.Context) error {
		// Deleted in the foreground, it goes after its pods.
		_, err := c.client.AppsV1().Deployments(namespace).Get(ctx, name, meta.GetOptions{})
		if err == nil {
			return errThere
		}
		return gone(err)
	})
}

var errThere = errors.New("it is still there")

// gone is the error of a deletion, but for one of what is not there.
func gone(err error) error {
	if kerrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *Cluster) memberAt(node topology.Ref) (member, error) {
	for _, m := range c.members {
		if m.Ref() == node {
			return m, nil
		}
	}
	return member{}, fmt.Errorf("cluster %s has no node %q", c.Name, node)
}
