package workload

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Idle connections end at once: well before the grace, which is 5 s.
func TestStopClosesIdleConnections(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, http.HandlerFunc(verbs)) }()
	fresh, used := dial(t, site{addr: l.Addr().String()}), dial(t, site{addr: l.Addr().String()})
	used.say(get)
	used.hear(hi)
	begin := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stop: %v", err)
	}
	used.hearEnd()
	// The kernel may have had it in its queue still, and then resets it.
	_, _ = io.ReadAll(fresh.TCPConn)
	if took := time.Since(begin); took > stopGrace/2 {
		t.Errorf("idle connections held the stop up for %s", took)
	}
}

// The answer in flight says that it is the last, so that no client sends more.
func TestStopEndsTheConnectionOfARequestInFlight(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(nil)
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		for !s.stopping.Load() {
			time.Sleep(time.Millisecond)
		}
		verbs(w, r)
	})
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, l) }()
	c := dial(t, site{addr: l.Addr().String()})
	c.say(get + get)
	c.hear(hiLast)
	if err := <-done; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// A request that outlasts the grace is cut off, and its handler is told.
func TestStopCutsARequestAfterTheGrace(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan struct{})
	s := newServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		close(told)
	}))
	s.grace = 20 * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, l) }()
	c := dial(t, site{addr: l.Addr().String()})
	c.say(get)
	if err := <-done; err != nil {
		t.Errorf("stop: %v", err)
	}
	if heard, _ := io.ReadAll(c.TCPConn); len(heard) > 0 {
		t.Errorf("heard %q of a request that was cut off", heard)
	}
	select {
	case <-told:
	case <-time.After(30 * time.Second):
		t.Error("the handler goes on after the server has stopped")
	}
}

// Over the bound a client waits, and is served when another has gone.
func TestConnectionsAreBounded(t *testing.T) {
	s := newServer(http.HandlerFunc(verbs))
	s.slots = make(chan struct{}, 1)
	at := start(t, s)
	first := dial(t, at)
	first.say(get)
	first.hear(hi)
	second := dial(t, at)
	second.say(get)
	if err := second.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := second.Read(make([]byte, 1)); err == nil {
		t.Fatalf("the second connection of one was answered (%d bytes)", n)
	}
	if err := second.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	first.Close()
	second.hear(hi)
}

// short is a listener on a host that once has no descriptor left.
type short struct {
	net.Listener
	failed bool
}

func (l *short) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", unix.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestServeOutlivesAShortageOfDescriptors(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, startOn(t, newServer(http.HandlerFunc(verbs)), &short{Listener: l}))
	c.say(get)
	c.hear(hi)
}
