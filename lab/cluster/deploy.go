package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/cluster/node"
	"skerry.dev/skerry/lab/topology"
)

// Workload is an application that a cluster serves: a Deployment with a pod at each
// of its nodes, or as many over them as an autoscaler wants, behind a Service of its
// name.
type Workload struct {
	Name string
	// Image that it is made of, which its nodes have; AgentImage where it is empty.
	Image string
	// Nodes that serve it, each by one pod; Autoscale has as many pods as they use CPU
	// time for, of which the first is at the first node.
	Nodes     []topology.Ref
	Autoscale *Autoscale
	// Args of skerry-agent; it listens at Port.
	Args []string
	Port int
	// NodePort at which each of the nodes takes requests for its own pod: none crosses
	// to another's, and the pod sees who has sent it. With an autoscaler every node
	// takes them for any pod.
	NodePort int
	// Anywhere has a request served at any node, whoever leads it there: with an autoscaler
	// it is so anyway. Labels and Annotations are its Service's.
	Anywhere            bool
	Labels, Annotations map[string]string
	// TCP and UDP are what it speaks, TCP where neither is set; with UDP alone it is ready
	// as it starts.
	TCP, UDP bool
	// Folders of the machine that its containers have as Secrets, each at / and its name,
	// for their user alone.
	Folders []string
}

func (w Workload) protocols() (all []core.Protocol) {
	if w.TCP || !w.UDP {
		all = append(all, core.ProtocolTCP)
	}
	if w.UDP {
		all = append(all, core.ProtocolUDP)
	}
	return all
}

// HostOfPod stands in Args for the host name of the node that a pod is at.
const HostOfPod = "$(NODE)"

const namespace = "default"

// deployTimeout bounds how long a workload may take until its pod is ready, or gone.
const deployTimeout = time.Minute

// labelsOf the pods of a workload or a job; selectorOf chooses them.
func labelsOf(name string) map[string]string { return map[string]string{"app": name} }
func selectorOf(name string) string          { return "app=" + name }

// Deploy makes a workload and returns when all its pods are ready, and send by the
// congestion control of the lab.
func (c *Cluster) Deploy(ctx context.Context, w Workload) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	return c.deploy(ctx, w)
}

// deploy is Deploy for as long as its context lasts.
func (c *Cluster) deploy(ctx context.Context, w Workload) error {
	var hosts []string
	for _, ref := range w.Nodes {
		m, err := c.memberAt(ref)
		if err != nil {
			return err
		}
		hosts = append(hosts, m.Host())
	}
	if err := c.hide(ctx, w); err != nil {
		return err
	}
	// A port that is taken is known before there is anything to remove.
	if _, err := c.client.CoreV1().Services(namespace).Create(ctx, w.service(c.lab.Topology.Dual), meta.CreateOptions{}); err != nil {
		return fmt.Errorf("deploy %s: %w", w.Name, c.portTaken(ctx, w.NodePort, err))
	}
	if _, err := c.client.AppsV1().Deployments(namespace).Create(ctx, w.deployment(hosts), meta.CreateOptions{}); err != nil {
		return fmt.Errorf("deploy %s: %w", w.Name, err)
	}
	err := c.await(ctx, "workload "+w.Name, func(ctx context.Context) error {
		pods, err := c.podsReady(ctx, namespace, selectorOf(w.Name))
		if err != nil {
			return cmp.Or(c.crashed(ctx, pods), err)
		}
		served, err := c.Endpoints(ctx, w.Name)
		if err == nil && served < w.begins() {
			err = fmt.Errorf("%d of %d pods: %w", served, w.begins(), errNotReady)
		}
		return err
	})
	if err != nil {
		return err
	}
	pods, err := c.Pods(ctx, w.Name)
	for _, p := range pods {
		err = errors.Join(err, node.Congest(p.Pid, c.lab.Topology.CongestionControl(), c.lab.Topology.Dual))
	}
	if err != nil {
		return err
	}
	return c.autoscale(ctx, w)
}

// begins is how many pods there are before any autoscaler acts.
func (w Workload) begins() int {
	if w.Autoscale != nil {
		return w.Autoscale.Min
	}
	return len(w.Nodes)
}

// deployment has as many pods as nodes serve, and no two of them at one node; with an
// autoscaler as many as it begins with.
func (w Workload) deployment(hosts []string) *apps.Deployment {
	labels := labelsOf(w.Name)
	pod := w.pod()
	if w.Autoscale != nil {
		spread(&pod, labels, hosts)
	} else {
		pod.Affinity = &core.Affinity{NodeAffinity: atHosts(hosts), PodAntiAffinity: &core.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []core.PodAffinityTerm{
				{LabelSelector: &meta.LabelSelector{MatchLabels: labels}, TopologyKey: core.LabelHostname},
			},
		}}
	}
	return &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: w.Name, Labels: labels},
		Spec: apps.DeploymentSpec{
			Replicas: new(int32(w.begins())),
			Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// atHosts has a pod at one of the hosts, and nowhere else.
func atHosts(hosts []string) *core.NodeAffinity {
	return &core.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &core.NodeSelector{
		NodeSelectorTerms: []core.NodeSelectorTerm{isHost(hosts)},
	}}
}

// isHost chooses nodes by their host names.
func isHost(hosts []string) core.NodeSelectorTerm {
	return core.NodeSelectorTerm{MatchExpressions: []core.NodeSelectorRequirement{
		{Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: hosts},
	}}
}

// service has a request stay at the node that it came to: kube-proxy would else pass
// it on to any of the pods, over a link that no hop map has. With an autoscaler there
// is no other way to the pods of other nodes, and a balancer is there to find one. Where
// nodes are dual it has addresses of both families.
func (w Workload) service(dual bool) *core.Service {
	stays := core.ServiceExternalTrafficPolicyLocal
	if w.Autoscale != nil || w.Anywhere {
		stays = core.ServiceExternalTrafficPolicyCluster
	}
	labels := labelsOf(w.Name)
	maps.Copy(labels, w.Labels)
	s := &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: w.Name, Labels: labels, Annotations: w.Annotations},
		Spec: core.ServiceSpec{
			Type: core.ServiceTypeNodePort, Selector: labelsOf(w.Name), ExternalTrafficPolicy: stays,
		},
	}
	for _, p := range w.protocols() {
		s.Spec.Ports = append(s.Spec.Ports, core.ServicePort{
			Name: strings.ToLower(string(p)), Protocol: p, Port: int32(w.Port), TargetPort: intstr.FromInt(w.Port), NodePort: int32(w.NodePort),
		})
	}
	if dual {
		s.Spec.IPFamilyPolicy = new(core.IPFamilyPolicyPreferDualStack)
	}
	return s
}

// pod of the workload.
func (w Workload) pod() core.PodSpec {
	container := core.Container{
		Name: w.Name, Image: cmp.Or(w.Image, AgentImage), ImagePullPolicy: core.PullNever, Args: w.Args,
	}
	if slices.Contains(w.Args, HostOfPod) {
		container.Env = []core.EnvVar{{Name: "NODE", ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	}
	for _, p := range w.protocols() {
		container.Ports = append(container.Ports, core.ContainerPort{ContainerPort: int32(w.Port), Protocol: p})
	}
	if w.Autoscale != nil {
		container.Resources.Requests = core.ResourceList{core.ResourceCPU: *resource.NewMilliQuantity(w.Autoscale.MilliCPU, resource.DecimalSI)}
	}
	if slices.Contains(w.protocols(), core.ProtocolTCP) {
		container.ReadinessProbe = &core.Probe{
			ProbeHandler:  core.ProbeHandler{TCPSocket: &core.TCPSocketAction{Port: intstr.FromInt(w.Port)}},
			PeriodSeconds: 1,
		}
	}
	pod := core.PodSpec{TerminationGracePeriodSeconds: new(int64(1)), EnableServiceLinks: new(false)}
	w.mount(&pod, &container)
	pod.Containers = []core.Container{container}
	return pod
}

// Pod is a pod of a workload.
type Pod struct {
	Name string
	Node topology.Ref
	// IP of the pod, and a process in its namespaces; PIDs are the machine's.
	IP  string
	Pid int
	// Use since it began.
	Use cgroup.Usage
	// Ended says how its container did last, or the pod; empty for one that goes on as
	// it began.
	Ended string
}

// Pods of a workload, with what became of them.
func (c *Cluster) Pods(ctx context.Context, name string) ([]Pod, error) {
	list, err := c.client.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{LabelSelector: selectorOf(name)})
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	var all []Pod
	for _, p := range list.Items {
		i := slices.IndexFunc(c.members, func(m member) bool { return m.Host() == p.Spec.NodeName })
		if i < 0 {
			continue // it has no node yet
		}
		pod := Pod{Name: p.Name, Node: c.members[i].Ref(), IP: p.Status.PodIP}
		pids, use, err := c.lab.Delegated(path.Join(c.members[i].podGroup(), groupOf(p)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has ended
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		if pod.Use = use; len(pids) > 0 {
			pod.Pid = pids[0]
		}
		for _, s := range p.Status.ContainerStatuses {
			if t := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated); t != nil {
				pod.Ended = fmt.Sprintf("%s, exit status %d", t.Reason, t.ExitCode)
			}
		}
		if p.Status.Phase == core.PodFailed {
			pod.Ended = strings.TrimSpace(p.Status.Reason + " " + p.Status.Message)
		}
		all = append(all, pod)
	}
	return all, nil
}

// groupOf a pod is its control group below that of all pods of its node, as a kubelet
// with the driver cgroupfs names it.
func groupOf(p core.Pod) string {
	class := ""
	if p.Status.QOSClass != core.PodQOSGuaranteed {
		class = strings.ToLower(string(p.Status.QOSClass))
	}
	return path.Join("kubepods", class, "pod"+string(p.UID))
}

// ServiceIP is the address by which pods call a workload, whatever its pods' are.
func (c *Cluster) ServiceIP(ctx context.Context, name string) (string, error) {
	all, err := c.ServiceIPs(ctx, name)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

var errNoAddress = errors.New("it has none")

// ServiceIPs are those of each family that the lab has, IPv4 first.
func (c *Cluster) ServiceIPs(ctx context.Context, name string) ([]string, error) {
	service, err := c.client.CoreV1().Services(namespace).Get(ctx, name, meta.GetOptions{})
	if err == nil && len(service.Spec.ClusterIPs) == 0 {
		err = errNoAddress
	}
	if err != nil {
		return nil, fmt.Errorf("address of Service %s: %w", name, err)
	}
	return service.Spec.ClusterIPs, nil
}

// Remove takes a workload away and returns when it and its pods are gone, or fails after as
// long as Deploy has: pods of a node that is not there stay.
func (c *Cluster) Remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	policy := meta.DeletePropagationForeground
	if err := c.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Delete(ctx, name, meta.DeleteOptions{}); gone(err) != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if err := c.client.AppsV1().Deployments(namespace).Delete(ctx, name, meta.DeleteOptions{PropagationPolicy: &policy}); gone(err) != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if err := c.client.CoreV1().Services(namespace).Delete(ctx, name, meta.DeleteOptions{}); gone(err) != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if err := c.forget(ctx, name); err != nil {
		return err
	}
	return c.awaitGone(ctx, name, func(ctx context.Context) error {
		_, err := c.client.AppsV1().Deployments(namespace).Get(ctx, name, meta.GetOptions{})
		return err
	})
}

// awaitGone waits until there is nothing to get: what is deleted in the foreground
// goes after its pods.
func (c *Cluster) awaitGone(ctx context.Context, name string, get func(context.Context) error) error {
	return c.await(ctx, "end of "+name, func(ctx context.Context) error {
		if err := get(ctx); err != nil {
			return gone(err)
		}
		return errThere
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

func (c *Cluster) memberAt(ref topology.Ref) (member, error) {
	for _, m := range c.members {
		if m.Ref() == ref {
			return m, nil
		}
	}
	return member{}, fmt.Errorf("cluster %s has no node %q", c.Name, ref)
}
