package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/cluster/node"
	"skerry.dev/skerry/lab/topology"
)

// JobDir is where the program of a job has its folder.
const JobDir = "/job"

// Job is a program that a cluster runs once, to its end, in a pod of its own.
type Job struct {
	Name string
	Node topology.Ref
	// Args of skerry-agent.
	Args []string
	// Dir is a folder of the machine, which the program has as JobDir; it may write
	// there, as root.
	Dir string
}

// Launch makes a job. It does not wait: AwaitJob does.
func (c *Cluster) Launch(ctx context.Context, j Job) error {
	m, err := c.memberAt(j.Node)
	if err != nil {
		return err
	}
	if _, err := c.client.BatchV1().Jobs(namespace).Create(ctx, j.object(m), meta.CreateOptions{}); err != nil {
		return fmt.Errorf("launch %s: %w", j.Name, err)
	}
	return nil
}

// object is the job as Kubernetes takes it: a pod that is not tried again.
func (j Job) object(m member) *batch.Job {
	labels := labelsOf(j.Name)
	pod := core.PodSpec{
		NodeSelector:  map[string]string{core.LabelHostname: m.Host()},
		RestartPolicy: core.RestartPolicyNever,
		Containers: []core.Container{{
			Name: j.Name, Image: AgentImage, ImagePullPolicy: core.PullNever, Args: j.Args,
			SecurityContext: &core.SecurityContext{RunAsUser: new(int64(0))},
			VolumeMounts:    []core.VolumeMount{{Name: "dir", MountPath: JobDir}},
		}},
		Volumes: []core.Volume{{Name: "dir", VolumeSource: core.VolumeSource{
			HostPath: &core.HostPathVolumeSource{Path: j.Dir, Type: new(core.HostPathDirectory)},
		}}},
		TerminationGracePeriodSeconds: new(int64(1)),
		EnableServiceLinks:            new(false),
		AutomountServiceAccountToken:  new(false),
	}
	return &batch.Job{
		ObjectMeta: meta.ObjectMeta{Name: j.Name, Labels: labels},
		Spec: batch.JobSpec{
			BackoffLimit: new(int32(0)),
			Template:     core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// Running is the program of a job, from its start on.
type Running struct {
	watched
	job Job
}

// watched is the program of a pod, whose end is known to the millisecond.
type watched struct {
	cluster *Cluster
	name    string
	// group of its pod.
	group string
	done  chan struct{}
	// use and err are set when done is closed.
	use cgroup.Usage
	err error
}

// ended says whether the program has.
func (r *watched) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// AwaitJob returns when the program of a job runs, and sends by the congestion
// control of the lab. One that has ended before is an *EndedError.
func (c *Cluster) AwaitJob(ctx context.Context, j Job) (*Running, error) {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	m, err := c.memberAt(j.Node)
	if err != nil {
		return nil, err
	}
	r := &Running{watched: watched{cluster: c, name: j.Name, done: make(chan struct{})}, job: j}
	var container core.ContainerStatus
	err = c.await(ctx, "job "+j.Name, func(ctx context.Context) error {
		pod, err := c.podOf(ctx, j)
		if err != nil {
			return err
		}
		r.group = path.Join(m.podGroup(), groupOf(pod))
		if container = statusOf(pod); container.State.Running == nil && container.State.Terminated == nil {
			return fmt.Errorf("pod %s: %w%s", pod.Name, errNotReady, c.why(ctx, pod))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if container.State.Terminated != nil {
		return nil, r.Ended(ctx)
	}
	pid, err := c.pidOf(r.group, container)
	switch {
	case pid == 0: // it has ended meanwhile
		return nil, r.Ended(ctx)
	case err != nil:
		return nil, err
	}
	err = node.Congest(pid, c.lab.Topology.CongestionControl(), c.lab.Topology.Dual)
	if err == nil {
		err = r.watch(pid)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) { // so it has now
		return nil, r.Ended(ctx)
	}
	return r, err
}

// pidOf a container in the group of its pod; 0 where it has ended.
func (c *Cluster) pidOf(group string, s core.ContainerStatus) (int, error) {
	// As runtimes name a container: containerd://ID.
	_, id, _ := strings.Cut(s.ContainerID, "://")
	pids, _, err := c.lab.Delegated(path.Join(group, id))
	if len(pids) == 0 {
		return 0, err
	}
	return pids[0], err
}

// podOf a job.
func (c *Cluster) podOf(ctx context.Context, j Job) (core.Pod, error) {
	list, err := c.client.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{LabelSelector: selectorOf(j.Name)})
	if err != nil {
		return core.Pod{}, fmt.Errorf("look at %s: %w", j.Name, err)
	}
	if len(list.Items) == 0 { // it is not made yet
		return core.Pod{}, errNotReady
	}
	return list.Items[0], nil
}

// statusOf the one container of a pod; of the kind that waits before there is any.
func statusOf(pod core.Pod) core.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		return core.ContainerStatus{}
	}
	return pod.Status.ContainerStatuses[0]
}

// watch has Done closed as soon as the process has ended: its kubelet looks once a
// second, and forgets what a pod has used some time after that.
func (r *watched) watch(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("watch %s: %w", r.name, err)
	}
	go func() {
		defer close(r.done)
		defer func() { _ = unix.Close(fd) }()
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			_, r.use, r.err = r.cluster.lab.Delegated(r.group)
			r.err = errors.Join(err, r.err)
			return
		}
	}()
	return nil
}

// Done is closed when the program has ended, to the millisecond.
func (r *watched) Done() <-chan struct{} { return r.done }

// Use is what the pod has consumed; valid after Done.
func (r *watched) Use() (cgroup.Usage, error) {
	if r.err != nil {
		return cgroup.Usage{}, fmt.Errorf("what %s has used: %w", r.name, r.err)
	}
	return r.use, nil
}

// EndedError says how a program has ended that was to do something else.
type EndedError struct {
	// How it ended, as its kubelet tells.
	How string
	// Said is what it wrote, stdout and stderr.
	Said string
}

// Error tells how it ended.
func (e *EndedError) Error() string { return e.How }

// Ended is how a program that is no more has ended, an *EndedError once its kubelet
// has told.
func (r *Running) Ended(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	var pod core.Pod
	err := r.cluster.await(ctx, "end of "+r.job.Name, func(ctx context.Context) (err error) {
		if pod, err = r.cluster.podOf(ctx, r.job); err != nil {
			return err
		}
		if statusOf(pod).State.Terminated == nil {
			return errThere
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.cluster.endOf(ctx, pod, statusOf(pod).State.Terminated)
}

// RemoveJob takes a job away and returns when it and its pod are gone.
func (c *Cluster) RemoveJob(ctx context.Context, name string) error {
	jobs, policy := c.client.BatchV1().Jobs(namespace), meta.DeletePropagationForeground
	if err := jobs.Delete(ctx, name, meta.DeleteOptions{PropagationPolicy: &policy}); gone(err) != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return c.awaitGone(ctx, name, func(ctx context.Context) error {
		_, err := jobs.Get(ctx, name, meta.GetOptions{})
		return err
	})
}
