package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"skerry.dev/skerry/internal/cgroup"
)

// standTimeout bounds what is asked of the API server about a workload that has ended, or is
// to.
const standTimeout = 30 * time.Second

// lastWords is how long the end of what a program has said may be on its way.
const lastWords = 2 * time.Second

// Standing is a workload of one pod, whose program is to stay.
type Standing struct {
	watched
	pod   string        // its name
	said  chan struct{} // closed when all that it says is written
	quiet func()        // has no more be written
}

// Stand deploys a workload of one pod, and writes what its program says. Where that has ended
// before it was ready the error is an *EndedError.
func (c *Cluster) Stand(ctx context.Context, w Workload, log io.Writer) (*Standing, error) {
	if err := c.Deploy(ctx, w); err != nil {
		return nil, errors.Join(err, c.takeAway(w.Name))
	}
	m, err := c.memberAt(w.Nodes[0])
	if err != nil {
		return nil, err
	}
	s := &Standing{watched: watched{cluster: c, name: w.Name, done: make(chan struct{})}, said: make(chan struct{})}
	if err := s.begin(ctx, m, log); err != nil {
		return nil, errors.Join(err, c.takeAway(w.Name))
	}
	return s, nil
}

func (s *Standing) begin(ctx context.Context, m member, log io.Writer) error {
	pods, err := s.cluster.client.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{LabelSelector: selectorOf(s.name)})
	if err != nil || len(pods.Items) != 1 {
		return errors.Join(err, fmt.Errorf("%s has %d pods", s.name, len(pods.Items)))
	}
	pod := pods.Items[0]
	s.pod = pod.Name
	s.group = path.Join(m.podGroup(), groupOf(pod))
	switch pid, err := s.cluster.pidOf(s.group, statusOf(pod)); {
	case pid == 0: // it has ended meanwhile
		return s.Err()
	case err != nil:
		return err
	default:
		if err := s.watch(pid); err != nil {
			return err
		}
	}
	until, quiet := context.WithCancel(context.WithoutCancel(ctx))
	words, err := s.cluster.client.CoreV1().Pods(namespace).GetLogs(pod.Name, &core.PodLogOptions{Follow: true}).Stream(until)
	if err != nil {
		quiet()
		return fmt.Errorf("read what %s says: %w", s.name, err)
	}
	s.quiet = quiet
	go func() {
		defer close(s.said)
		_, _ = io.Copy(log, words) // it ends with the pod
		_ = words.Close()
	}()
	return nil
}

// Err is how its program has ended; valid after Done.
func (s *Standing) Err() error {
	ctx, cancel := context.WithTimeout(context.Background(), standTimeout)
	defer cancel()
	var how string
	err := s.cluster.await(ctx, "end of "+s.name, func(ctx context.Context) error {
		pods, err := s.cluster.Pods(ctx, s.name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(pods, func(p Pod) bool { return p.Name == s.pod })
		switch {
		case i < 0: // its Deployment may have made another
			how = "its pod is gone"
		case pods[i].Ended == "": // its kubelet looks once a second
			return errThere
		default:
			how = pods[i].Ended
		}
		return nil
	})
	return errors.Join(err, errors.New(how))
}

// Stop takes the workload away, and tells what it has used.
func (s *Standing) Stop() (cgroup.Usage, error) {
	_, use, err := s.cluster.lab.Delegated(s.group)
	select {
	case <-s.done: // and its group may be gone
		use, err = s.Use()
	default:
	}
	err = errors.Join(err, s.cluster.takeAway(s.name))
	select {
	case <-s.said:
	case <-time.After(lastWords): // its API server may not answer
	}
	s.quiet()
	<-s.said
	return use, err
}

// takeAway is Remove, also after an interrupt.
func (c *Cluster) takeAway(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), standTimeout)
	defer cancel()
	return c.Remove(ctx, name)
}
