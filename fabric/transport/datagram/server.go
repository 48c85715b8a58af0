package datagram

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/transport"
)

const (
	// handshakesMax bounds those that have begun within the time that one may take.
	handshakesMax = 1024
	// gatewayConnectionsMax is how many one gateway of a peer may have: the one that it
	// uses, and some that were lost without a word.
	gatewayConnectionsMax = 4
)

// Backend is a service's side of flows. Errors of type *transport.Refusal tell the peer
// why.
type Backend interface {
	// Allow says why a peer may not call what it asks for, if it may not; of a flow that is open,
	// whether it still may.
	Allow(peer identity.Name, r transport.Request) error
	// Dial makes a socket for calling it.
	Dial(ctx context.Context, peer identity.Name, r transport.Request) (*net.UDPConn, error)
	// Offered gives the link that uses connections which a gateway opens to be called by.
	Offered(peer identity.Name) (*Link, error)
	// Warn is told of peers that are refused or break the protocol.
	Warn(from string, err error)
}

// Server is the side that is called. It is safe for concurrent use.
type Server struct {
	backend  Backend
	drops    *Drops
	socket   *net.UDPConn
	over     *quic.Transport
	listener *quic.Listener
	buffers  sync.Pool

	handshakes atomic.Int64

	mu      sync.Mutex
	all     []*served // the oldest first
	leaving bool
}

// served is a connection of a peer.
type served struct {
	*connection
	peer identity.Name
	// requests of its flows.
	requests map[*Flow]transport.Request
	// trust says whether the peer is to be trusted; nil for one that has called.
	trust func(tls.ConnectionState) error
}

// NewServer listens at an address, HOST:PORT, with a configuration that verifies peers; with
// an empty one nobody can call.
func NewServer(address string, config *tls.Config, backend Backend, drops *Drops) (*Server, error) {
	s := &Server{backend: backend, drops: drops, buffers: sync.Pool{New: func() any { return new(buffer) }}}
	if address == "" {
		return s, nil
	}
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	if s.socket, err = net.ListenUDP("udp", at); err != nil {
		return nil, err
	}
	// Who calls must first show that it is where it says: nothing is kept for others, and
	// nobody is sent what he has not asked for (RFC 9000 section 8.1). Connections are
	// dialled before they are needed, so that this round trip delays nobody.
	s.over = &quic.Transport{Conn: s.socket, VerifySourceAddress: func(net.Addr) bool { return true }, ConnContext: s.admit}
	if s.listener, err = s.over.Listen(config, listening()); err != nil {
		return nil, errors.Join(err, s.socket.Close())
	}
	return s, nil
}

// Address is where it listens.
func (s *Server) Address() net.Addr { return s.socket.LocalAddr() }

// admit bounds handshakes, and has it told why they fail.
func (s *Server) admit(ctx context.Context, who *quic.ClientInfo) (context.Context, error) {
	if s.handshakes.Add(1) > handshakesMax {
		s.handshakes.Add(-1)
		return ctx, errors.New("too many handshakes at once")
	}
	over := sync.OnceFunc(func() { s.handshakes.Add(-1) })
	time.AfterFunc(2*handshakeTimeout, over) // when QUIC gives one up that was not begun in time
	context.AfterFunc(ctx, func() {
		over()
		if failed, ok := errors.AsType[*quic.TransportError](context.Cause(ctx)); ok && !failed.Remote {
			s.backend.Warn(who.RemoteAddr.String(), failed)
		}
	})
	return ctx, nil
}

// Run answers peers until the context ends; then all flows end.
func (s *Server) Run(ctx context.Context) {
	if s.listener == nil {
		<-ctx.Done()
		return
	}
	var serving sync.WaitGroup
	for {
		conn, err := s.listener.Accept(ctx)
		if errors.Is(err, quic.ErrServerClosed) {
			<-ctx.Done()
		}
		if err != nil { // it accepts no more
			break
		}
		serving.Go(func() { s.serve(ctx, ctx, conn, nil) })
	}
	_ = s.listener.Close()
	serving.Wait()
	_ = s.over.Close()
	_ = s.socket.Close()
}

// serve answers a peer until the connection ends, or the context, and takes new flows until
// the second context ends; one that has opened it to be called is called by it.
func (s *Server) serve(ctx, until context.Context, conn *quic.Conn, trust func(tls.ConnectionState) error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseWithError(codeEnded, "") }) // it is over either way
	defer stop()
	peer, err := identity.Peer(conn.ConnectionState().TLS)
	if err != nil {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(transport.Denied), "") // it is over either way
		s.backend.Warn(conn.RemoteAddr().String(), err)
		return
	}
	if trust == nil && conn.ConnectionState().TLS.NegotiatedProtocol == ProtocolReverse {
		s.adopt(conn, peer)
		return
	}
	c := &served{connection: newConnection(conn, s.drops), peer: peer, requests: map[*Flow]transport.Request{}, trust: trust}
	s.take(c)
	defer context.AfterFunc(until, c.leave)()
	go s.streams(c)
	err = c.serve()
	s.drop(c)
	if errors.Is(err, transport.ErrProtocol) {
		s.backend.Warn(peer.String(), err)
	}
}

// take notes a connection. Of too many of one gateway the oldest ends.
func (s *Server) take(c *served) {
	s.mu.Lock()
	var oldest *served
	n := 0
	for _, other := range s.all {
		if other.peer == c.peer {
			if n++; oldest == nil {
				oldest = other
			}
		}
	}
	s.all = append(s.all, c)
	leaving := s.leaving
	s.mu.Unlock()
	if n >= gatewayConnectionsMax {
		_ = oldest.conn.CloseWithError(quic.ApplicationErrorCode(transport.Overloaded), "") // it is over either way
	}
	if leaving {
		c.leave()
	}
}

func (s *Server) drop(c *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *served) bool { return other == c })
}

// streams begins the flows that a peer asks for.
func (s *Server) streams(c *served) {
	for {
		stream, err := c.conn.AcceptStream(c.conn.Context())
		if err != nil {
			return // the connection is over
		}
		f := &Flow{lane: lane{flow: number(stream)}, stream: stream, traffic: transport.NewTraffic(time.Now())}
		socket := &socket{drops: s.drops, buffers: &s.buffers}
		f.ended = func(told, _ transport.Code) {
			if socket.close() {
				f.traffic.End(unreached(told))
			}
			c.forget(f)
		}
		c.add(f)
		// This is how the peer ends a flow, too.
		context.AfterFunc(stream.Context(), func() { f.End(Over) })
		go s.answer(c, f, socket)
	}
}

// answer joins a flow with its backend, and passes on what that says until it is over.
func (s *Server) answer(c *served, f *Flow, socket *socket) {
	r, err := asked(f.stream)
	if errors.Is(err, transport.ErrProtocol) {
		_ = c.conn.CloseWithError(codeBreach, "") // it is over either way
		s.backend.Warn(c.peer.String(), err)
		return
	}
	if err == nil {
		r.Traffic = f.traffic
		c.remember(f, r) // before it is allowed: what forbids it from then on finds it
		err = s.open(c, r, socket)
	}
	if err != nil {
		f.End(transport.CodeOf(err))
		return
	}
	c.attach(f, func(datagram []byte) {
		sent, err := socket.write(datagram)
		if err != nil {
			f.End(transport.Unreachable)
		}
		r.Traffic.ToSocket(sent)
	})
	f.End(socket.read(f.Send))
}

// unreached is why a flow broke of which the peer is told so: that nobody is there shows only
// when the service is spoken to. What else ends a flow is no fault.
func unreached(told transport.Code) error {
	if told == transport.Unreachable {
		return &transport.Refusal{Code: told}
	}
	return nil
}

func (s *Server) open(c *served, r transport.Request, socket *socket) error {
	if err := s.backend.Allow(c.peer, r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.conn.Context(), dialTimeout)
	defer cancel()
	conn, err := s.backend.Dial(ctx, c.peer, r)
	if err != nil {
		return err
	}
	if err := socket.open(conn); err != nil {
		r.Traffic.End(nil) // the peer has ended it meanwhile
		return err
	}
	return nil
}

// remember notes what a flow has asked for.
func (c *served) remember(f *Flow, r transport.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.over {
		c.requests[f] = r
	}
}

func (c *served) forget(f *Flow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, f)
}

// leave tells the peer to open no more flows, and ends the connection after the last.
func (c *served) leave() {
	c.hurry()
	s, err := c.conn.OpenUniStream()
	if err != nil { // it is over, or was told before
		return
	}
	_ = s.Close() // which says it
	go c.endUnused()
}

// endUnused ends a connection without flows. Those that were on the way when the peer was
// told have come by the first look.
func (c *served) endUnused() {
	tick := time.NewTicker(leavingIdleAfter)
	defer tick.Stop()
	for c.conn.Context().Err() == nil {
		select {
		case <-c.conn.Context().Done():
		case <-tick.C:
			if c.count() == 0 {
				_ = c.conn.CloseWithError(codeEnded, "") // it is over either way
			}
		}
	}
}

func (s *Server) connections() []*served {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Leave takes no more connections, tells peers to open no more flows, and has flows end
// that say nothing for a few seconds.
func (s *Server) Leave() {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	if s.listener != nil {
		go func() { _ = s.listener.Close() }() // which waits for handshakes
	}
	for _, c := range s.connections() {
		c.leave()
	}
}

// Flows counts those that are open.
func (s *Server) Flows() (n int) {
	for _, c := range s.connections() {
		n += c.count()
	}
	return n
}

// Recheck ends connections of peers that are not to be trusted any more, and flows that
// the backend does not allow any more.
func (s *Server) Recheck(trusted func(tls.ConnectionState) error) {
	for _, c := range s.connections() {
		check := trusted
		if c.trust != nil {
			check = c.trust
		}
		if err := c.recheck(check); err != nil {
			s.backend.Warn(c.peer.String(), err)
			continue
		}
		for f, r := range c.asked() {
			r.Traffic = transport.NewTraffic(time.Now()) // the flow's own goes on
			if err := s.backend.Allow(c.peer, r); err != nil {
				f.End(transport.CodeOf(err))
			}
		}
	}
}

// asked is what flows have asked for.
func (c *served) asked() map[*Flow]transport.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests)
}
