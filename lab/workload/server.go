package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout bounds how long a client may take over a request's header.
	headerTimeout = 30 * time.Second
	// stopGrace is how long requests in flight may take after ctx ends.
	stopGrace = 5 * time.Second
)

// Listen opens a TCP listener for Serve. Multipath TCP, which Go's listeners
// offer by default, is off: the lab measures TCP.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	return c.Listen(ctx, "tcp", addr)
}

// Serve answers HTTP/1.1 on l with h until ctx ends; then it takes no new
// connection, lets requests in flight finish within 5 s and returns nil.
// Idle connections are kept without limit, for a load may think for long.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		// What net/http would log is the client's trouble, and the load's rows
		// show it.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	stopped := make(chan error, 1)
	release := context.AfterFunc(ctx, func() { stopped <- stop(s) })
	err := s.Serve(l)
	if release() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return <-stopped
}

func stop(s *http.Server) error {
	grace, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if err := s.Shutdown(grace); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.Close()
}
