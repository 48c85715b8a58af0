package native

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/transport"
)

// Server is the side that is called. It is safe for concurrent use.
type Server struct {
	backend    transport.Backend
	congestion string
	peer       func(cluster string) Peer
	buffers    *buffers

	mu      sync.Mutex
	all     map[*connection]bool
	shared  map[*yamux.Session]bool
	bundles map[bundleKey]*bundle
	leaving bool
}

// NewServer makes one that asks for backends so, whose connections use a congestion
// control (empty for the machine's).
func NewServer(backend transport.Backend, congestion string, peer func(cluster string) Peer) *Server {
	return &Server{backend: backend, congestion: congestion, peer: peer, buffers: newBuffers(), all: map[*connection]bool{}, shared: map[*yamux.Session]bool{}, bundles: map[bundleKey]*bundle{}}
}

// Serve answers a peer on a connection whose handshake is done, until it ends, and says
// why it did.
func (s *Server) Serve(conn net.Conn, peer identity.Name) error {
	if err := legOf(conn).tune(s.congestion); err != nil {
		return errors.Join(err, conn.Close())
	}
	return s.serve(conn, peer)
}

// serve answers on a connection, or on a place of one that is shared.
func (s *Server) serve(conn net.Conn, peer identity.Name) error {
	c := newConnection(conn, s.buffers)
	c.open = func(_ *connection, one *stream, r transport.Request) {
		one.traffic = transport.NewTraffic(time.Now())
		r.Traffic = one.traffic
		go answer(one, peer, r, s.backend)
	}
	c.bundleOf = s.bundleOf(peer)
	s.mu.Lock()
	s.all[c] = true
	leaving := s.leaving
	s.mu.Unlock()
	if leaving {
		go c.leave()
	}
	c.told = func() { s.peer(peer.Cluster).Training.answer(c) }
	defer func() {
		s.mu.Lock()
		delete(s.all, c)
		s.mu.Unlock()
	}()
	return c.serve()
}

// Leave tells peers to begin no more streams here. Those that are on their way are still
// served.
func (s *Server) Leave() {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.Renew()
}

// Renew tells peers to begin no more streams on the connections that there are, and to open
// others.
func (s *Server) Renew() {
	s.mu.Lock()
	all, shared := slices.Collect(maps.Keys(s.all)), slices.Collect(maps.Keys(s.shared))
	s.mu.Unlock()
	for _, c := range all {
		go c.leave() // one whose peer does not read holds up no other
	}
	for _, mux := range shared {
		go leave(mux)
	}
}

// Sweep ends connections whose peers have closed them while a service does not read what came
// before: who writes to it does not hear of that. It is to be called every few seconds.
func (s *Server) Sweep() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.all))
	s.mu.Unlock()
	for _, c := range all {
		if c.leg.tcp != nil && c.count() > 0 && c.leg.closed() {
			c.end(nil)
		}
	}
}

// Connections counts those of peers, who end them when they have heard that the gateway
// leaves.
func (s *Server) Connections() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		if c.leg.tcp != nil { // it is not a place on one that is shared
			n++
		}
	}
	return n + len(s.shared)
}

// Streams counts those that are open.
func (s *Server) Streams() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		n += c.count()
	}
	return n
}

// answer joins a stream with its backend.
func answer(s *stream, peer identity.Name, r transport.Request, backend transport.Backend) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	err := backend.Allow(peer, r)
	var app transport.Conn
	if err == nil {
		app, err = backend.Dial(ctx, peer, r)
	}
	if err != nil {
		s.refuse(transport.CodeOf(err))
		return
	}
	if !s.join(app) {
		transport.Reset(app)
		r.Traffic.End(s.wait())
		return
	}
	if r.Confirm {
		s.confirm()
	}
	s.pump()
	r.Traffic.End(s.wait())
	s.c.tellLoss()
}
