package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry.dev/skerry/lab/cluster"
	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
)

// ordersFile is the named pipe by which the load in a pod gets its spec. It runs and
// waits there, so that no start of a pod lies between the probes and the requests.
const ordersFile = "orders"

// podLoad is Skerry's load as a Job of the client's cluster; nil where a process of
// the client's node sends the requests.
type podLoad struct {
	cluster *cluster.Cluster
	job     cluster.Job
	// running from when it waits for its orders, the end of a pipe that are written to.
	running *cluster.Running
	orders  *os.File
}

// launchLoad has the load's pod start: it takes about as long as the workload's.
func (r *runner) launchLoad(ctx context.Context, a *attempt) error {
	if !r.onKubernetes() || !a.Cell.FromPod() {
		return nil
	}
	client := r.Experiment.Topology.Client
	name, _ := client.Split()
	args := append([]string{"load", "--spec", path.Join(cluster.JobDir, ordersFile)}, outputs(a.Cell, cluster.JobDir)...)
	l := &podLoad{cluster: r.clusters[name], job: cluster.Job{Name: loadName, Node: client, Args: args, Dir: a.dir}}
	if err := unix.Mkfifo(l.pipe(), 0o600); err != nil {
		return fmt.Errorf("load: make a pipe in %s: %w", a.dir, err)
	}
	if err := l.cluster.Launch(ctx, l.job); err != nil {
		return errors.Join(err, l.stop())
	}
	a.load = l
	return nil
}

func (l *podLoad) pipe() string { return filepath.Join(l.job.Dir, ordersFile) }

// await returns when the load reads the pipe: a pipe without a reader cannot be
// opened for writing.
func (l *podLoad) await(ctx context.Context) (err error) {
	if l == nil {
		return nil
	}
	if l.running, err = l.cluster.AwaitJob(ctx, l.job); err != nil {
		return loadError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		l.orders, err = os.OpenFile(l.pipe(), os.O_WRONLY|unix.O_NONBLOCK, 0)
		if !errors.Is(err, unix.ENXIO) {
			return err
		}
		select {
		case <-l.running.Done():
			return loadError(l.running.Ended(ctx))
		case <-ctx.Done():
			return fmt.Errorf("load: its pod does not wait for orders: %w", context.Cause(ctx))
		case <-time.After(readyPause):
		}
	}
}

// send has the load request as a spec says, and returns when it has ended. What it
// leaves, it leaves when all has gone well.
func (l *podLoad) send(ctx context.Context, spec []byte) (host.Use, error) {
	_, err := l.orders.Write(spec)
	switch err = errors.Join(err, l.orders.Close()); {
	case errors.Is(err, unix.EPIPE): // it has ended meanwhile
		return host.Use{}, loadError(l.running.Ended(ctx))
	case err != nil:
		return host.Use{}, fmt.Errorf("load: give its orders: %w", err)
	}
	select {
	case <-l.running.Done():
	case <-ctx.Done():
		return host.Use{}, ctx.Err()
	}
	if _, err := os.Stat(filepath.Join(l.job.Dir, samplesFile)); err != nil {
		return host.Use{}, loadError(l.running.Ended(ctx))
	}
	use, err := l.running.Use()
	return host.Use{Name: loadName, Node: l.job.Node, Usage: use}, err
}

// loadError is what the load said as it ended.
func loadError(err error) error {
	if ended, ok := errors.AsType[*cluster.EndedError](err); ok {
		err = agentError(ended.Said, ended)
	}
	return fmt.Errorf("load: %w", err)
}

// stopWith takes the load away, and stops the system and the workload meanwhile: each takes
// its kubelets up to a second. The workload is nil where it was never begun.
func (l *podLoad) stopWith(running *system.Running, workload served) (uses []host.Use, err error) {
	var stopping errgroup.Group
	var ofSystem, ofWorkload []host.Use
	stopping.Go(l.stop)
	stopping.Go(func() (err error) { ofSystem, err = running.Stop(); return err })
	if workload != nil {
		ofWorkload, err = workload.stop()
	}
	err = errors.Join(err, stopping.Wait())
	return append(ofWorkload, ofSystem...), err
}

// stop takes the load away, also after an interrupt.
func (l *podLoad) stop() error {
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	if l.orders != nil {
		_ = l.orders.Close() // most often it is closed
	}
	return errors.Join(l.cluster.RemoveJob(ctx, l.job.Name), removeIfThere(l.pipe()))
}
