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
	"skerry.dev/skerry/internal/socket"
)

// caller is a peer that has called, or calls by a connection that was offered to it.
type caller struct {
	conn     *tls.Conn
	name     identity.Name
	protocol string
	// verify says why it is not to be trusted any more.
	verify func(tls.ConnectionState) error
}

// handshakeTimeout bounds a peer's handshake.
const handshakeTimeout = 5 * time.Second

// listen takes calls of peers.
func (g *Gateway) listen(ctx context.Context) error {
	if g.config.Listen == "" {
		return nil
	}
	l, err := socket.Listen(ctx, g.config.Listen)
	if err != nil {
		return fmt.Errorf("listen for peers: %w", err)
	}
	g.listener = l
	config := g.identity.Server(native.Protocol, native.ProtocolShared, native.ProtocolLane, native.ProtocolReverse, httpconnect.Protocol)
	handshakes := &doorway{}
	g.accept(ctx, l, func(conn net.Conn) {
		if !handshakes.enter(conn.RemoteAddr()) {
			g.refuseHandshake(conn, ledger.ErrBusy)
			return
		}
		c, err := shake(ctx, conn, config)
		handshakes.leave(conn.RemoteAddr())
		if err == nil && c.protocol == native.ProtocolReverse {
			err = g.take(ctx, c)
		}
		switch {
		case err != nil:
			g.refuseHandshake(conn, err)
		case c.protocol != native.ProtocolReverse:
			g.serve(ctx, c)
		}
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
	g.stopOffering()
	g.mu.Lock()
	defer g.mu.Unlock()
	for address, f := range g.fronts {
		_ = f.listener.Close()
		delete(g.fronts, address)
	}
}

// shake finds out who calls.
func shake(ctx context.Context, raw net.Conn, config *tls.Config) (*caller, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn := tls.Server(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := conn.ConnectionState()
	name, err := identity.Peer(state)
	return &caller{conn, name, state.NegotiatedProtocol, config.VerifyConnection}, err
}

// serve answers a peer until the connection ends, or its protocol ends it.
func (g *Gateway) serve(ctx context.Context, c *caller) {
	defer c.conn.Close()
	g.mu.Lock()
	g.callers[c] = true
	g.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	var err error
	switch c.protocol {
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
