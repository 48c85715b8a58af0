// Package gateway runs one gateway of a cluster: it takes connections of local clients
// to services of peers, and those of peers to services here, and lets none pass that the
// policies do not allow. What it knows comes as snapshots; how connections cross is a
// transport's business. Start at New.
package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport/native"
)

// Config is what a gateway is told when it starts.
type Config struct {
	// Identity is the folder of its certificate.
	Identity string
	// Listen is where peers call, as HOST:PORT; without it none can.
	Listen string
	// Connections are how many it keeps open to each gateway of a peer ahead of need.
	Connections int
}

// Gateway is one that runs. It is safe for concurrent use.
type Gateway struct {
	config   Config
	identity *identity.Store
	log      *slog.Logger
	state    atomic.Pointer[state]

	native  *native.Server
	running sync.WaitGroup
	// pools of each peer by its name, one for each of its gateways.
	pools map[string][]*native.Pool
}

// state is a snapshot made ready to act on.
type state struct {
	*snapshot.Snapshot
	policies *policy.Set
}

// handshakeTimeout bounds a peer's handshake.
const handshakeTimeout = 5 * time.Second

// New makes a gateway that acts on a snapshot.
func New(config Config, s *snapshot.Snapshot, log *slog.Logger) (*Gateway, error) {
	store, err := identity.Open(config.Identity)
	if err != nil {
		return nil, fmt.Errorf("read the identity: %w", err)
	}
	g := &Gateway{
		config: config, identity: store, log: log,
		pools: map[string][]*native.Pool{},
	}
	g.native = native.NewServer(g.backend)
	g.state.Store(&state{s, policy.Compile(s.Policies)})
	return g, nil
}

// Run serves until the context ends. What is open then is broken off.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer g.running.Wait()
	defer cancel()
	if err := g.listen(ctx); err != nil {
		return err
	}
	for _, p := range g.state.Load().Peers {
		g.join(ctx, p)
	}
	if err := g.importAll(ctx); err != nil {
		return err
	}
	g.log.Info("serving", "gateway", g.identity.Current().Name.String(), "peers", len(g.state.Load().Peers))
	<-ctx.Done()
	return nil
}

// join begins to keep connections to a peer.
func (g *Gateway) join(ctx context.Context, p snapshot.Peer) {
	for _, address := range p.Gateways {
		pool := native.NewPool(address, g.identity.Client(p.Name, native.Protocol), g.config.Connections)
		g.pools[p.Name] = append(g.pools[p.Name], pool)
		g.running.Go(func() { pool.Keep(ctx) })
	}
}

// listen takes calls of peers.
func (g *Gateway) listen(ctx context.Context) error {
	if g.config.Listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", g.config.Listen)
	if err != nil {
		return fmt.Errorf("listen for peers: %w", err)
	}
	config := g.identity.Server(native.Protocol)
	g.accept(ctx, l, func(conn net.Conn) { g.called(ctx, tls.Server(conn, config)) })
	return nil
}

// called serves a peer on one connection.
func (g *Gateway) called(ctx context.Context, conn *tls.Conn) {
	defer conn.Close()
	from := conn.RemoteAddr().String()
	within, cancel := context.WithTimeout(ctx, handshakeTimeout)
	err := conn.HandshakeContext(within)
	cancel()
	if err != nil {
		g.log.Warn("peer refused", "from", from, "why", err.Error())
		return
	}
	name, err := identity.Peer(conn.ConnectionState())
	if err != nil {
		g.log.Warn("peer refused", "from", from, "why", err.Error())
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := g.native.Serve(conn, name); errors.Is(err, native.ErrProtocol) {
		g.log.Warn("peer misbehaves", "peer", name.String(), "why", err.Error())
	}
}

// accept serves each connection of a listener, until the context ends.
func (g *Gateway) accept(ctx context.Context, l net.Listener, serve func(net.Conn)) {
	context.AfterFunc(ctx, func() { _ = l.Close() })
	g.running.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case ctx.Err() != nil:
				return
			case err != nil: // of one connection, or there are too many files
				g.log.Error("cannot accept", "at", l.Addr().String(), "why", err.Error())
				time.Sleep(acceptPause)
				continue
			}
			g.running.Go(func() { serve(conn) })
		}
	})
}

// acceptPause is how long a gateway rests that could not accept.
const acceptPause = 50 * time.Millisecond
