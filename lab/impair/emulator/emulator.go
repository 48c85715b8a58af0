// Package emulator runs a lab's links: one process in the WAN's namespace that
// holds a back end (userspace or netem) and takes orders over a unix socket.
// It knows directions, not topologies: lab/host translates. Start at Serve in
// the namespace, and at Dial outside of it.
package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"skerry.dev/skerry/lab/impair"
	"skerry.dev/skerry/lab/impair/netem"
	"skerry.dev/skerry/lab/impair/userspace"
)

// Back ends, by name.
const (
	Auto      = "auto"
	Netem     = "netem"
	Userspace = "userspace"
)

// Status is what the emulator says of itself and of the directions in force.
type Status struct {
	// Backend in force: netem or userspace.
	Backend string `json:"backend"`
	// Pid of the emulator's process.
	Pid int `json:"pid"`
	// FIFO says that the data-path thread has real-time priority (userspace).
	FIFO bool `json:"fifo"`
	// Awake says that idle CPUs poll in place of sleeping while the lab is up.
	Awake bool `json:"awake"`
	// Gaps since links were set; nil where the back end cannot tell (netem).
	Gaps *impair.Gaps `json:"gaps,omitempty"`
	// Counters by direction; a direction that does nothing has none.
	Counters map[string]impair.Counters `json:"counters"`
}

type backend interface {
	Set([]impair.Direction) error
	Change([]impair.Direction) (ended map[string]impair.Counters, err error)
	Counters() (map[string]impair.Counters, error)
	Close() error
}

// directionsPath is the one resource: PUT sets directions, PATCH changes them and
// tells the counters until then, GET tells Status.
const directionsPath = "/directions"

// Serve emulates links in the process's network namespace until ctx ends, and
// answers on the unix socket at path. backend is auto, netem or userspace.
func Serve(ctx context.Context, path, backend string) error {
	s, err := start(backend)
	if err != nil {
		return err
	}
	// Without it links are later, and Status says so.
	if awake, err := keepAwake(); err == nil {
		s.awake = true
		defer func() { _ = awake.Close() }()
	}
	listener, err := listen(ctx, path)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for orders: %w", err), s.backend.Close())
	}
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
		return errors.Join(server.Close(), s.backend.Close())
	case err = <-served:
		return errors.Join(err, s.backend.Close())
	case err = <-s.failed:
		return errors.Join(fmt.Errorf("emulator: %w", err), server.Close())
	}
}

func listen(ctx context.Context, path string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}

type service struct {
	backend backend
	name    string
	fifo    bool
	awake   bool
	failed  <-chan error
	// gaps is nil where the back end cannot tell.
	gaps func() impair.Gaps
}

// start chooses by probing: netem where this kernel can make such a qdisc.
func start(name string) (*service, error) {
	if name == Auto {
		name = Userspace
		if netem.Probe() == nil {
			name = Netem
		}
	}
	switch name {
	case Netem:
		b, err := netem.Start()
		if err != nil {
			return nil, err
		}
		return &service{backend: b, name: name}, nil
	case Userspace:
		e, err := userspace.Start()
		if err != nil {
			return nil, err
		}
		return &service{backend: e, name: name, fifo: e.FIFO, failed: e.Failed(), gaps: e.Gaps}, nil
	}
	return nil, fmt.Errorf("no back end %q; there are %s, %s and %s", name, Auto, Netem, Userspace)
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+directionsPath, func(w http.ResponseWriter, r *http.Request) {
		var directions []impair.Direction
		if err := json.NewDecoder(r.Body).Decode(&directions); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := s.backend.Set(directions); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("PATCH "+directionsPath, func(w http.ResponseWriter, r *http.Request) {
		var directions []impair.Direction
		if err := json.NewDecoder(r.Body).Decode(&directions); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ended, err := s.backend.Change(directions)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(ended) // as below
	})
	mux.HandleFunc("GET "+directionsPath, func(w http.ResponseWriter, _ *http.Request) {
		counters, err := s.backend.Counters()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		status := Status{Backend: s.name, Pid: os.Getpid(), FIFO: s.fifo, Awake: s.awake, Counters: counters}
		if s.gaps != nil {
			now := s.gaps()
			status.Gaps = &now
		}
		_ = json.NewEncoder(w).Encode(status) // an answer that cannot be written has lost its reader
	})
	return mux
}
