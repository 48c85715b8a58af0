package datagram

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/transport"
)

// Offer keeps a connection open to a gateway of a peer who cannot call here, at HOST:PORT,
// and answers what is asked on it, until the second context ends; flows that are open then go
// on until the first does. When there is a connection, and why there is none any more or from
// the start, is told.
func (s *Server) Offer(ctx, until context.Context, address string, config *tls.Config, tell func(error)) {
	var serving sync.WaitGroup
	redial(until, tell, func() (*quic.Conn, error) { return dial(until, address, config, settings(false)) },
		func(conn *quic.Conn) error {
			serving.Go(func() { s.serve(ctx, until, conn, config.VerifyConnection) })
			select {
			case <-conn.Context().Done():
			case <-until.Done():
			}
			return context.Cause(conn.Context())
		})
	serving.Wait()
}

// adopt has flows to a peer opened on a connection that it has opened.
func (s *Server) adopt(conn *quic.Conn, peer identity.Name) {
	link, err := s.backend.Offered(peer)
	if err == nil {
		err = link.adopt(conn)
	}
	if err != nil {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(transport.Denied), "") // it is over either way
		s.backend.Warn(peer.String(), err)
	}
}

// NewOfferedLink makes a link to a gateway that opens the connections itself, and is trusted
// so.
func NewOfferedLink(trusted func(tls.ConnectionState) error, drops *Drops, tell func(error)) *Link {
	return NewLink("", &tls.Config{VerifyConnection: trusted}, drops, tell)
}

// adopt uses a connection until it is over.
func (l *Link) adopt(conn *quic.Conn) error {
	l.mu.Lock()
	n := len(l.all)
	l.mu.Unlock()
	if n >= gatewayConnectionsMax {
		return fmt.Errorf("more than %d connections: %w", gatewayConnectionsMax, transport.ErrProtocol)
	}
	go func() {
		if _, err := conn.AcceptStream(conn.Context()); err == nil { // who is called opens no flow
			_ = conn.CloseWithError(codeBreach, "")
		}
	}()
	l.tell(nil)
	l.dials.Dialled(nil, time.Now())
	var serving sync.WaitGroup
	why := l.keep(conn.Context(), conn, &serving)
	serving.Wait()
	l.tell(why)
	if len(l.connections()) == 0 {
		l.dials.Dialled(why, time.Now())
	}
	return nil
}

// End ends all connections of a link that is not kept, with their flows.
func (l *Link) End() {
	for _, c := range l.connections() {
		_ = c.conn.CloseWithError(codeEnded, "") // it is over either way
	}
}
