package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"skerry.dev/skerry/internal/complaint"
	"skerry.dev/skerry/internal/whole"
	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
	"skerry.dev/skerry/lab/topology"
)

// podPrograms are the paths of what systems have in pods.
func (r *runner) podPrograms() (paths []string, err error) {
	for _, stack := range r.Stacks {
		more, err := stack.PodPrograms()
		if err != nil {
			return nil, err
		}
		paths = append(paths, more...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// Deploy has a daemon of a system run in a pod.
func (l inLab) Deploy(ctx context.Context, d system.Deployment) (system.Daemon, error) {
	log, err := os.Create(d.Log)
	if err != nil {
		return nil, err
	}
	name, _ := d.Node.Split()
	standing, err := l.clusters[name].Stand(ctx, cluster.Workload{
		Name: d.Name, Image: cluster.ImageOf(d.Program), Nodes: []topology.Ref{d.Node}, Args: d.Args,
		Port: d.Port, NodePort: d.NodePort, TCP: true, UDP: true, Folders: d.Folders,
	}, log)
	if ended, ok := errors.AsType[*cluster.EndedError](err); ok {
		err = fmt.Errorf("%s has ended (%s): %s", d.Name, ended.How, complaint.First(ended.Said))
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return podDaemon{standing, d, log}, nil
}

// podDaemon is a daemon in a pod.
type podDaemon struct {
	*cluster.Standing
	of  system.Deployment
	log io.Closer
}

// Stop takes the pod away.
func (d podDaemon) Stop(time.Duration) (host.Use, error) {
	use, err := d.Standing.Stop()
	return host.Use{Name: d.of.Name, Node: d.of.Node, Usage: use}, errors.Join(err, d.log.Close())
}

// Ended is its node, once the pod has ended.
func (d podDaemon) Ended() []topology.Ref {
	select {
	case <-d.Done():
		return []topology.Ref{d.of.Node}
	default:
		return nil
	}
}

// Install has a cluster run a DaemonSet of a system.
func (l inLab) Install(ctx context.Context, i system.Installation) (system.Daemon, error) {
	manifest, err := os.ReadFile(i.Manifest)
	if err != nil {
		return nil, err
	}
	name, _ := i.Node.Split()
	installed, err := l.clusters[name].Install(ctx, manifest)
	if err != nil {
		return nil, err
	}
	return installedDaemon{installed, i}, nil
}

// installedDaemon is a daemon of every node.
type installedDaemon struct {
	*cluster.Installed
	of system.Installation
}

// Stop takes it away, and tells what all of its pods have used together.
func (d installedDaemon) Stop(time.Duration) (host.Use, error) {
	use := host.Use{Name: d.of.Name, Node: d.of.Node}
	all, err := d.Use()
	for _, one := range all {
		use.CPU += one.CPU
		use.MemoryPeak += one.MemoryPeak
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	err = errors.Join(err, whole.Write(d.of.Log, 0o644, func(w io.Writer) error { return d.Log(ctx, w) }))
	return use, errors.Join(err, d.Remove())
}
