package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/httpconnect"
	"skerry.dev/skerry/fabric/transport/native"
)

// caller is a peer that has called.
type caller struct {
	conn *tls.Conn
	name identity.Name
}

// handshakeTimeout bounds a peer's handshake.
const handshakeTimeout = 5 * time.Second

// listen takes calls of peers.
func (g *Gateway) listen(ctx context.Context) error {
	if g.config.Listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", g.config.Listen)
	if err != nil {
		return fmt.Errorf("listen for peers: %w", err)
	}
	g.listener = l
	config := g.identity.Server(native.Protocol, native.ProtocolShared, native.ProtocolLane, httpconnect.Protocol)
	handshakes := &doorway{}
	g.accept(ctx, l, func(conn net.Conn) {
		if !handshakes.enter(conn.RemoteAddr()) {
			g.refuseHandshake(conn, ledger.ErrBusy)
			return
		}
		c, err := shake(ctx, tls.Server(conn, config))
		handshakes.leave(conn.RemoteAddr())
		if err != nil {
			g.refuseHandshake(conn, err)
			return
		}
		g.serve(ctx, c)
	})
	return nil
}

func (g *Gateway) refuseHandshake(conn net.Conn, err error) {
	_ = conn.Close()
	g.log.Warn("peer refused", "from", conn.RemoteAddr().String(), "why", err.Error())
	g.ledger.HandshakeFailed(err)
}

// stopListening takes no more connections.
func (g *Gateway) stopListening() {
	if g.listener != nil {
		_ = g.listener.Close() // nothing is lost by it
	}
	if g.names != nil {
		_ = g.names.Close() // clients ask another gateway
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for address, f := range g.fronts {
		_ = f.listener.Close()
		delete(g.fronts, address)
	}
}

// shake finds out who calls.
func shake(ctx context.Context, conn *tls.Conn) (*caller, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	name, err := identity.Peer(conn.ConnectionState())
	return &caller{conn, name}, err
}

// serve answers a peer until the connection ends.
func (g *Gateway) serve(ctx context.Context, c *caller) {
	g.mu.Lock()
	g.callers[c] = true
	g.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	var err error
	switch c.conn.ConnectionState().NegotiatedProtocol {
	case native.Protocol:
		err = g.native.Serve(c.conn, c.name)
	case native.ProtocolShared:
		err = g.native.ServeShared(c.conn, c.name)
	case native.ProtocolLane:
		err = g.native.ServeLane(c.conn, c.name)
	default:
		err = g.httpconnect.Serve(c.conn, c.name)
	}
	g.mu.Lock()
	delete(g.callers, c)
	g.mu.Unlock()
	if errors.Is(err, transport.ErrProtocol) {
		g.ledger.Breach(c.name.Cluster)
		g.log.Warn("peer misbehaves", "peer", c.name.String(), "why", err.Error())
	}
}
