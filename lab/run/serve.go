package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"skerry.dev/skerry/lab/host"
	"skerry.dev/skerry/lab/system"
)

// serviceName is that of the workload's process, and with its node's host name
// behind it of each replica's.
const serviceName = "service"

// server is the workload at one node.
type server struct {
	*host.Process
	listen, log string
}

// servers are the workload at the service's node and at its replicas.
type servers []server

// serve starts the workload at every node that serves it, and waits until all of
// them listen: what a system takes of its node afterwards, it takes knowingly.
// The servers are to be stopped after an error, too.
func (r *runner) serve(ctx context.Context, a *attempt, v system.Values) (all servers, err error) {
	one, err := r.serveAt(a, v.Service, serviceName)
	if err != nil {
		return nil, err
	}
	all = servers{one}
	for _, replica := range v.Replicas {
		if one, err = r.serveAt(a, replica, serviceName+"-"+replica.Host); err != nil {
			return all, err
		}
		all = append(all, one)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, s := range all {
		if err := r.awaitReady(ctx, s, a.Cell.Protocol); err != nil {
			return all, fmt.Errorf("workload at %s: %w", s.Node, err)
		}
	}
	return all, nil
}

func (r *runner) serveAt(a *attempt, place system.Place, name string) (server, error) {
	s := server{listen: net.JoinHostPort(place.IP, strconv.Itoa(place.Port)), log: filepath.Join(a.dir, name+".log")}
	log, err := os.Create(s.log)
	if err != nil {
		return s, err
	}
	defer func() { _ = log.Close() }()
	s.Process, err = r.lab.Start(host.Command{
		Node: place.Node, Name: name, Dir: a.dir, Stdout: log, Stderr: log,
		Args: []string{r.Agent, "serve", a.Cell.Workload, "--protocol", a.Cell.Speaks(), "--listen", s.listen},
	})
	return s, err
}

// awaitReady waits until the workload listens, or has ended.
func (r *runner) awaitReady(ctx context.Context, s server, protocol string) error {
	for {
		err := r.listens(ctx, s.Node, s.listen, protocol)
		if err == nil {
			return nil
		}
		select {
		case <-s.Done():
			return said(s.log, s.Err())
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", readyTimeout, err)
		case <-time.After(readyPause):
		}
	}
}

// stop ends them all and tells what they have used.
func (all servers) stop() (uses []host.Use, err error) {
	for _, s := range all {
		use, stopErr := s.Stop(stopGrace)
		uses, err = append(uses, use), errors.Join(err, stopErr)
	}
	return uses, err
}
