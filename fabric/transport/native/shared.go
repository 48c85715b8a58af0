package native

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"skerry.dev/skerry/fabric/identity"
)

// ProtocolShared is what gateways speak in TLS (ALPN) on a connection that many streams
// share: those for which no connection of their own is free. Each has a window and its
// turn, and its own frames as on a connection of its own.
const ProtocolShared = "skerry-native-shared/1"

const (
	// sharedMost bounds the streams that share a connection.
	sharedMost = 1024
	// silentMost is how long a peer may leave a ping unanswered.
	silentMost = 5 * time.Second
)

func sharing() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = sharedMost
	c.EnableKeepAlive = false // Probe pings more often
	c.ConnectionWriteTimeout = silentMost
	c.LogOutput = io.Discard
	return c
}

// share dials the connection that streams share.
func (p *Pool) share(ctx context.Context) (*session, error) {
	conn, err := p.dialTLS(ctx, ProtocolShared)
	if err != nil {
		return nil, err
	}
	mux, err := yamux.Client(newGather(conn), sharing())
	if err != nil {
		return nil, fmt.Errorf("share a connection to %s: %w", p.address, err)
	}
	return &session{Session: mux, conn: conn}, nil
}

// join dials the connection that streams share, if there is none.
func (p *Pool) join(ctx context.Context) error {
	p.mu.Lock()
	has := p.shared != nil
	p.mu.Unlock()
	if has {
		return nil
	}
	s, err := p.share(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.shared, p.sight.asked = s, time.Time{} // the gateway has shaken hands
	p.mu.Unlock()
	p.finish() // of a pool that was closed meanwhile
	go p.ask(s)
	go func() {
		if one, err := s.AcceptStream(); err == nil { // the gateway leaves
			p.excuse(s)
			_ = one.Close() // that was all
			p.want()
		}
	}()
	go func(since time.Time) {
		<-s.CloseChan()
		p.forsake(s)
		rest(since)
		p.want()
	}(time.Now())
	return nil
}

// place opens one on the connection that streams share. Before there is one, it dials.
func (p *Pool) place(ctx context.Context, s *session) (*connection, error) {
	if s == nil {
		return p.dial(ctx)
	}
	one, err := s.place()
	if err != nil {
		if !errors.Is(err, errCrowded) { // it has ended, or the peer leaves
			p.forsake(s)
		}
		return nil, fmt.Errorf("share the connection to %s: %w", p.address, err)
	}
	return p.run(one, s.conn, false)
}

// forsake begins no more streams on a connection that streams share. An answer that the gateway
// owes it still owes: where it is gone, this connection is the first that ends of that.
func (p *Pool) forsake(s *session) { p.see(s, func() { p.shared = nil }) }

// excuse does so where nothing is wrong with the gateway.
func (p *Pool) excuse(s *session) {
	p.see(s, func() { p.shared, p.sight.asked = nil, time.Time{} })
}

// session is a connection that streams share.
type session struct {
	*yamux.Session
	conn    *tls.Conn
	opening sync.Mutex
}

// errCrowded says that as many streams share a connection as may.
var errCrowded = errors.New("too many streams share the connection")

// place takes one on it. Beyond those that may be there the gateway would end it at once, and with
// it a stream that could have gone elsewhere.
func (s *session) place() (net.Conn, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.NumStreams() >= sharedMost {
		return nil, errCrowded
	}
	return s.OpenStream()
}

// ServeShared answers a peer on a connection that streams share.
func (s *Server) ServeShared(conn net.Conn, peer identity.Name) error {
	if err := legOf(conn).tune(s.congestion); err != nil {
		return errors.Join(err, conn.Close())
	}
	mux, err := yamux.Server(newGather(conn), sharing())
	if err != nil {
		return err
	}
	defer func() { _ = mux.Close() }() // it has ended, or is to
	s.mu.Lock()
	s.shared[mux] = true
	leaving := s.leaving
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.shared, mux)
		s.mu.Unlock()
	}()
	if leaving {
		go leave(mux)
	}
	for {
		one, err := mux.AcceptStream()
		if err != nil {
			return err
		}
		if mux.NumStreams() > sharedMost {
			_ = one.Close() // the peer was told how many there may be
			continue
		}
		go func() { _ = s.serve(one, peer) }()
	}
}

// leave tells a peer to begin no more streams on a connection that they share, by a stream
// of this side's. Those that are on their way are still served, which a go-away of yamux
// would refuse.
func leave(mux *yamux.Session) {
	if one, err := mux.OpenStream(); err == nil { // else it is over
		_ = one.Close()
	}
}
