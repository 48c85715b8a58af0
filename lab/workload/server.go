package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
)

const (
	// stopGrace is how long requests in flight may take after ctx ends.
	stopGrace = 5 * time.Second
	// connsMax bounds the connections of one server. Further ones wait in the
	// kernel's accept queue.
	connsMax = 10_000
	// acceptRetry is the wait when the host is short of descriptors or memory.
	acceptRetry = 10 * time.Millisecond
)

// Listen opens a TCP listener for Serve: what a call costs in the service hides
// what is measured before it.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	return socket.Listen(ctx, addr)
}

// Serve answers HTTP/1.0, HTTP/1.1 and HTTP/2 (by prior knowledge: the client's
// first bytes decide) on l with h until ctx ends; then it takes
// no new connection, closes idle ones at once, lets requests in flight finish
// within 5 s, closes what is left and returns nil. It closes l.
//
// It is made for the short handlers of this package (docs/adr/0011): an answer
// is sent whole when its handler returns, so there is no Flush and no Hijack;
// Content-Length is always set, Content-Type is the handler's to set, Date is
// left out. The request's context ends with the connection. A client that goes
// away is noticed only while a handler waits on that context's Done channel,
// and only once the request's body has been read.
//
// There are no deadlines, for a load may think for long and a timer per request
// costs time that would be measured: a slow client holds one goroutine and its
// buffers, a dead one until TCP's keep-alive finds out.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	return newServer(h).serve(ctx, l)
}

// session is one connection, whatever is spoken on it.
type session interface {
	// serve returns when the connection is over.
	serve(ctx context.Context)
	// closeIdle closes the connection unless a request has begun.
	closeIdle()
	close()
}

// server is the connections of one listener.
type server struct {
	handler  http.Handler
	session  func(nc net.Conn, cancel context.CancelFunc) session
	streams  *streams
	grace    time.Duration
	slots    chan struct{} // one per open connection
	stopping atomic.Bool
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[session]struct{}
}

func newServer(h http.Handler) *server {
	s := &server{
		handler: h,
		streams: newStreams(),
		grace:   stopGrace,
		slots:   make(chan struct{}, connsMax),
		conns:   map[session]struct{}{},
	}
	s.session = func(nc net.Conn, cancel context.CancelFunc) session { return newConn(s, nc, cancel) }
	return s
}

func (s *server) serve(ctx context.Context, l net.Listener) error {
	release := context.AfterFunc(ctx, func() { _ = l.Close() })
	// Requests in flight outlive ctx by the grace.
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	err := s.accept(ctx, requests, l)
	if release() {
		_ = l.Close()
	}
	s.stop()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve %s: %w", l.Addr(), err)
}

// accept starts a goroutine per connection until l is closed or ctx ends.
func (s *server) accept(ctx, requests context.Context, l net.Listener) error {
	for {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		nc, err := l.Accept()
		if err == nil {
			s.start(requests, nc)
			continue
		}
		<-s.slots
		if !passes(err) {
			return err
		}
		select {
		case <-time.After(acceptRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// passes reports whether accept may succeed later.
func passes(err error) bool {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *server) start(requests context.Context, nc net.Conn) {
	ctx, cancel := context.WithCancel(requests)
	c := s.session(nc, cancel)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	s.running.Go(func() {
		defer s.forget(c)
		defer cancel()
		c.serve(ctx)
	})
}

func (s *server) forget(c session) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	<-s.slots
}

// stop runs after accept, so that there are no new connections. It does not
// wait for a handler that ignores the end of its context.
func (s *server) stop() {
	s.stopping.Store(true)
	s.each(session.closeIdle)
	over, cut := context.WithTimeout(context.Background(), s.grace)
	defer cut()
	go s.streams.stop(over)
	finished := make(chan struct{})
	go func() {
		s.running.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-over.Done():
		s.each(session.close)
	}
}

func (s *server) each(do func(session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		do(c)
	}
}
