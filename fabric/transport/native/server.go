package native

import (
	"context"
	"errors"
	"net"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/transport"
)

// Server is the side that is called. It is safe for concurrent use.
type Server struct {
	backend transport.Backend
	buffers *buffers
}

// NewServer makes one that asks for backends so.
func NewServer(backend transport.Backend) *Server { return &Server{backend, newBuffers()} }

// Serve answers a peer on a connection whose handshake is done, until it ends, and says
// why it did.
func (s *Server) Serve(conn net.Conn, peer identity.Name) error {
	c := newConnection(conn, s.buffers)
	c.open = func(_ *connection, one *stream, m message) {
		go answer(one, peer, transport.Request{Target: m.Target, Source: m.Source, Confirm: m.Confirm}, s.backend)
	}
	return c.serve()
}

// answer joins a stream with its backend.
func answer(s *stream, peer identity.Name, r transport.Request, backend transport.Backend) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	app, err := backend(ctx, peer, r)
	if err != nil {
		code := transport.Unreachable
		if refusal, ok := errors.AsType[*transport.Refusal](err); ok {
			code = refusal.Code
		}
		s.refuse(code)
		return
	}
	if !s.join(app) {
		transport.Reset(app)
		return
	}
	s.pump()
}
