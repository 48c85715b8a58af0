package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageError says that the node of a pod has not the image that it is to run, and so
// never will: images come from no registry.
type ImageError struct{ Image, Pod, Node string }

// Error names the image and who wants it.
func (e *ImageError) Error() string {
	return fmt.Sprintf("node %s has no image %s, which pod %s is to run", e.Node, e.Image, e.Pod)
}

// Hint says what can be run.
func (e *ImageError) Hint() string {
	return "nodes have " + AgentImage + " and what is loaded into them"
}

// neverPulled is how a kubelet calls it that an image is not there and may not be
// fetched; invalidImage that its name is none.
const neverPulled, invalidImage = "ErrImageNeverPull", "InvalidImageName"

// lacksImage is a *ImageError where a container of a pod waits in vain; else nil.
func lacksImage(pod core.Pod) error {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && (w.Reason == neverPulled || w.Reason == invalidImage) {
			return &ImageError{Image: s.Image, Pod: pod.Name, Node: pod.Spec.NodeName}
		}
	}
	return nil
}

// crashed is an *EndedError of the first program of pods that has ended; nil where none has.
func (c *Cluster) crashed(ctx context.Context, pods []core.Pod) error {
	for _, pod := range pods {
		status := statusOf(pod)
		if t := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated); t != nil {
			return c.endOf(ctx, pod, t)
		}
	}
	return nil
}

// endOf the program of a pod, with what it has said: where the kubelet has begun it anew
// by now, and it has yet to say something, what it had said before.
func (c *Cluster) endOf(ctx context.Context, pod core.Pod, t *core.ContainerStateTerminated) *EndedError {
	said, err := c.saidBy(ctx, pod, false)
	if err == nil && len(said) == 0 {
		if before, err := c.saidBy(ctx, pod, true); err == nil { // else it is its first time
			said = before
		}
	}
	if err != nil {
		said = []byte(err.Error())
	}
	return &EndedError{How: fmt.Sprintf("%s, exit status %d", t.Reason, t.ExitCode), Said: string(said)}
}

// saidBy the program of a pod, this time or the time before.
func (c *Cluster) saidBy(ctx context.Context, pod core.Pod, before bool) ([]byte, error) {
	return c.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &core.PodLogOptions{Previous: before}).DoRaw(ctx)
}

// PortError says that a port of the nodes has been given to another Service.
type PortError struct {
	Port int
	// Service that has it, as NAMESPACE/NAME; empty where it is gone by now.
	Service string
}

// Error names the port and its Service.
func (e *PortError) Error() string {
	if e.Service == "" {
		return fmt.Sprintf("port %d of the nodes is taken", e.Port)
	}
	return fmt.Sprintf("port %d of the nodes is taken by Service %s", e.Port, e.Service)
}

// Hint says how to come by the port.
func (e *PortError) Hint() string {
	return "give that Service another nodePort, or remove it; the API server chooses one where none is named"
}

// portTaken tells the refusal of a Service as a *PortError where that is why; else it
// is err itself.
func (c *Cluster) portTaken(ctx context.Context, port int, err error) error {
	if !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), "port is already allocated") {
		return err
	}
	taken := &PortError{Port: port}
	services, listErr := c.client.CoreV1().Services(meta.NamespaceAll).List(ctx, meta.ListOptions{})
	if listErr != nil {
		return taken // which says the most that is known
	}
	taken.Service = holderOf(services.Items, int32(port))
	return taken
}

// holderOf a port of the nodes among Services, as NAMESPACE/NAME.
func holderOf(services []core.Service, port int32) string {
	for _, s := range services {
		if slices.ContainsFunc(s.Spec.Ports, func(p core.ServicePort) bool { return p.NodePort == port }) {
			return s.Namespace + "/" + s.Name
		}
	}
	return ""
}
