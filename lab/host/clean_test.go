package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"skerry.dev/skerry/internal/cgroup"
	"skerry.dev/skerry/lab/topology"
)

// pretend makes what Clean finds of a lab that nobody holds, whose one holder is this
// process and whose emulator answers with a status of HTTP.
func pretend(t *testing.T, suffix string, status int) *Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the state lies in /run")
	}
	tree, err := cgroup.FindHere()
	if err != nil {
		t.Skip("needs control groups: ", err)
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self := holder{Pid: os.Getpid(), Start: start}
	l := &Lab{state: state{Name: fmt.Sprintf("test-%d-%s", os.Getpid(), suffix), WAN: self, Nodes: map[topology.Ref]holder{"c1/n": self}}}
	l.group = tree.Group(groupRoot).Child(l.Name)
	if err := os.MkdirAll(l.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = os.RemoveAll(l.Dir()), os.Remove(root) })
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", l.path(socket))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("{}"))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return l
}

// Nothing but its own end has a lab taken down: neither that we were told to stop, nor
// that its emulator cannot answer for now.
func TestCleanTakesDeadLabsOnly(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name    string
		ctx     context.Context
		status  int
		spoil   func(*Lab) error
		removed bool
		fails   bool
	}{
		{"lives", t.Context(), http.StatusOK, nil, false, false},
		{"interrupted", cancelled, http.StatusOK, nil, false, true},
		{"troubled", t.Context(), http.StatusServiceUnavailable, nil, false, true},
		{"illegible", t.Context(), http.StatusOK, func(l *Lab) error { return os.WriteFile(l.path(stateFile), []byte("{"), 0o644) }, false, true},
		{"no-emulator", t.Context(), http.StatusOK, func(l *Lab) error { return os.Remove(l.path(socket)) }, true, false},
		{"no-state", t.Context(), http.StatusOK, func(l *Lab) error { return os.Remove(l.path(stateFile)) }, true, false},
		{"bound", t.Context(), http.StatusOK, func(l *Lab) error { l.Bound = true; return l.save() }, true, false},
		{"dead", t.Context(), http.StatusOK, func(l *Lab) error { l.WAN.Start++; return l.save() }, true, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := pretend(t, "clean-"+c.name, c.status)
			if c.spoil != nil {
				if err := c.spoil(l); err != nil {
					t.Fatal(err)
				}
			}
			tree, err := cgroup.FindHere()
			if err != nil {
				t.Fatal(err)
			}
			removed, err := cleanLab(c.ctx, tree, l.Name)
			if removed != c.removed || (err != nil) != c.fails {
				t.Errorf("removed %v, error %v; want removed %v, error %v", removed, err, c.removed, c.fails)
			}
			if c.ctx.Err() != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that of the context", err)
			}
			if _, err := os.Stat(l.Dir()); (err == nil) == c.removed {
				t.Errorf("its folder: %v", err)
			}
			if _, err := os.Stat(filepath.Join(root, l.Name+lockSuffix)); err == nil {
				t.Error("it is still held")
			}
		})
	}
}

// A lab that ends takes along no group that another, which comes up, has made already.
func TestEndOfALabSparesOneThatComesUp(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups are made")
	}
	tree, err := cgroup.FindHere()
	if err != nil {
		t.Skip("needs control groups: ", err)
	}
	const turns = 5000 // of which one or two would meet
	ended := &Lab{state: state{Name: fmt.Sprintf("test-%d-ends", os.Getpid())}}
	coming := tree.Group(groupRoot).Child(fmt.Sprintf("test-%d-comes", os.Getpid()))
	t.Cleanup(func() {
		if err := coming.Remove(); err != nil {
			t.Error(err)
		}
		tree.Group(groupRoot).RemoveEmpty()
	})
	for range turns {
		done := make(chan error, 1)
		go func() {
			var err error
			if ended.lock, err = lockLab(ended.Name); err == nil {
				err = ended.unlock()
			}
			done <- err
		}()
		if err := errors.Join(coming.Make(), <-done); err != nil {
			t.Fatal(err)
		}
		if _, err := coming.Usage(); err != nil {
			t.Fatalf("its group has gone: %v", err)
		}
		if err := coming.Remove(); err != nil {
			t.Fatal(err)
		}
	}
}
