// Package gateway runs one gateway of a cluster: it takes connections of local clients
// to services of peers, and those of peers to services here, and lets none pass that the
// policies do not allow. What it knows comes as snapshots; how connections cross is a
// transport's business. Start at New.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/admin"
	"skerry.dev/skerry/fabric/dns"
	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/ledger"
	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/snapshot"
	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/fabric/transport/httpconnect"
	"skerry.dev/skerry/fabric/transport/native"
	"skerry.dev/skerry/fabric/workload"
	"skerry.dev/skerry/internal/changes"
)

// Config is what a gateway is told when it starts.
type Config struct {
	// Identity is the folder of its certificate.
	Identity string
	// Listen is where peers call, as HOST:PORT; without it none can.
	Listen string
	// DNS is where names of imports are asked for, as HOST:PORT; without it nowhere.
	DNS string
	// Connections to each gateway of a peer that speaks native.
	Connections Connections
	// Drain is how long connections may go on when it is asked to end.
	Drain time.Duration
	// Admin is where operators ask, as ADDRESS:PORT of the loopback; without it none can.
	Admin string
	// Flows is the file that records of flows are written to; without it none are.
	Flows string
}

// Connections are those that are kept to a gateway of a peer.
type Connections struct {
	// Ahead are open ahead of need at least, and Most at most.
	Ahead, Most int
	// Congestion names TCP's congestion control between gateways: empty for BBR where the
	// kernel has it, and else for the machine's.
	Congestion string
	// Training are the bytes that teach TCP the path of a connection, and TrainingPerHour
	// those that do so for all of a peer's in an hour; without, none is taught.
	Training, TrainingPerHour int64
}

// Gateway is one that runs. It is safe for concurrent use.
type Gateway struct {
	config   Config
	identity own
	log      *slog.Logger
	state    atomic.Pointer[state]
	running  sync.WaitGroup
	observed
	servers
	// listener is where peers call, nil where none can.
	listener net.Listener
	// names answers who asks for imports, nil where nobody can.
	names *dns.Server

	mu sync.Mutex
	// fronts by address.
	fronts map[string]*front
	ways
	// peers are those of native, by cluster.
	peers map[string]native.Peer
	// callers are connections of peers.
	callers map[*caller]bool
	firsts  firsts
}

// own is the gateway's identity, what its folder was before that was read, and what looks once
// more at who is trusted.
type own struct {
	*identity.Store
	read  changes.State
	again *time.Timer
}

// ways are those to peers' gateways.
type ways struct {
	links map[way]link
	// offering ends what opens connections for peers who cannot call here.
	offering map[way]context.CancelFunc
}

// servers answer peers.
type servers struct {
	native      *native.Server
	httpconnect *httpconnect.Server
	datagrams   *datagrams
}

// state is a snapshot made ready to act on.
type state struct {
	*snapshot.Snapshot
	policies  *policy.Set
	workloads *workload.Table
	turns     map[transport.Target]*turn
	paces     map[string]*transport.Pace // of peers that have a bound
	ways      map[string][]way           // to gateways of peers that can be called
	since     time.Time
}

// reloadEvery is how often a gateway looks for another identity.
const reloadEvery = time.Second

// New makes a gateway.
func New(config Config, log *slog.Logger) (*Gateway, error) {
	read := changes.Now(config.Identity)
	store, err := identity.Open(config.Identity)
	if err != nil {
		return nil, fmt.Errorf("read the identity: %w", err)
	}
	g := &Gateway{
		config: config, identity: own{Store: store, read: read}, log: log,
		fronts: map[string]*front{}, ways: ways{map[way]link{}, map[way]context.CancelFunc{}}, callers: map[*caller]bool{},
		peers: map[string]native.Peer{},
	}
	g.identity.again = time.AfterFunc(settledAfter, g.recheck)
	g.observe()
	if err := g.chooseCongestion(); err != nil {
		return nil, err
	}
	g.native = native.NewServer(backend{g}, g.config.Connections.Congestion, g.peer)
	g.httpconnect = httpconnect.NewServer(backend{g}, time.Now)
	g.datagrams = newDatagrams(g)
	g.prepare(&snapshot.Snapshot{})
	return g, nil
}

// bbr needs no loss to know how fast a path is (draft-ietf-ccwg-bbr), and keeps what it
// knows while a connection rests.
const bbr = "bbr"

// chooseCongestion holds the congestion control to those that the kernel has.
func (g *Gateway) chooseCongestion() error {
	c := &g.config.Connections
	if c.Congestion != "" {
		if err := native.HasCongestion(c.Congestion); err != nil {
			return fmt.Errorf("congestion control %q: %w", c.Congestion, err)
		}
		return nil
	}
	if err := native.HasCongestion(bbr); err != nil {
		g.log.Warn("the machine's congestion control is used: long paths are slow", "wanted", bbr, "why", err.Error())
		return nil
	}
	c.Congestion = bbr
	return nil
}

// prepare makes a snapshot the one that decisions follow.
func (g *Gateway) prepare(s *snapshot.Snapshot) {
	g.state.Store(&state{s, policy.Compile(s.Policies), workload.NewTable(s.Workloads), newTurns(s.Exports), g.paces(s.Peers), waysOf(s.Peers), time.Now()})
	if g.names != nil {
		g.names.Set(dns.NewZone(s.Imports))
	}
}

// Run serves, at first by a snapshot, then by each that comes, until the context ends.
// Then it takes no more connections, and what is open may end by itself for a while.
func (g *Gateway) Run(ctx context.Context, first *snapshot.Snapshot, next <-chan *snapshot.Snapshot) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if err := g.beginObserved(hard); err != nil {
		cancel()
		return err
	}
	defer g.endObserved()
	defer g.identity.again.Stop()
	defer g.running.Wait()
	defer cancel()
	if err := g.listen(hard); err != nil {
		return err
	}
	defer g.stopListening()
	if err := g.datagrams.listen(hard); err != nil {
		return err
	}
	if err := g.answerNames(hard); err != nil {
		return err
	}
	if err := g.apply(hard, first); err != nil {
		return err
	}
	g.running.Go(func() { changes.Watch(hard, g.config.Identity, g.identity.read, reloadEvery, g.reload) })
	g.enter(admin.Serving)
	g.log.Info("serving", "gateway", g.identity.Current().Name.String(), "peers", len(first.Peers))
	g.running.Go(func() { g.awaitReady(hard) })
	g.follow(ctx, hard, next)
	g.drain()
	return nil
}

// listenEvery is how often an address is tried that could not be had: who has it may leave.
const listenEvery = time.Second

// follow serves by each snapshot that comes until the context ends, what is open until hard does.
func (g *Gateway) follow(ctx, hard context.Context, next <-chan *snapshot.Snapshot) {
	again, lacking := time.NewTicker(listenEvery), false
	defer again.Stop()
	for {
		select {
		case s := <-next:
			err := g.apply(hard, s)
			if lacking = err != nil; lacking {
				g.log.Error("not all is served", "why", err.Error())
			}
			g.log.Info("reloaded", "peers", len(s.Peers), "exports", len(s.Exports), "imports", len(s.Imports), "policies", len(s.Policies))
		case <-again.C:
			if lacking && g.listenForAll(hard, g.state.Load().Snapshot) == nil {
				lacking = false
				g.log.Info("all is served")
			}
		case <-ctx.Done():
			return
		}
	}
}

// apply acts on a snapshot.
func (g *Gateway) apply(ctx context.Context, s *snapshot.Snapshot) error {
	g.prepare(s)
	g.call(ctx, s.Peers)
	g.offer(ctx, s.Peers)
	return g.listenForAll(ctx, s)
}

// listenForAll listens for imports of both protocols.
func (g *Gateway) listenForAll(ctx context.Context, s *snapshot.Snapshot) error {
	return errors.Join(g.listenFor(ctx, s.Imports), g.datagrams.apply(ctx, s))
}

// reload takes the identity that its folder has now, and ends connections to those who
// are not to be trusted any more.
func (g *Gateway) reload() {
	before := g.identity.Current()
	if err := g.identity.Reload(); err != nil {
		g.ledger.ReloadFailed(ledger.ReloadIdentity)
		g.log.Error("the identity stays as it was", "why", err.Error())
		return
	}
	own := g.identity.Current()
	g.log.Info("new identity", "gateway", own.Name.String(), "until", own.NotAfter)
	if !own.Same(before) {
		g.renew()
	}
	g.recheck()
	g.identity.again.Reset(settledAfter)
}

// settledAfter is how long after a change of trust no handshake is under way any more that was
// judged by the trust of before, and whose connection was not yet known.
const settledAfter = 15 * time.Second

// recheck ends connections to those who are not to be trusted any more.
func (g *Gateway) recheck() {
	g.datagrams.recheck()
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.callers {
		if err := c.verify(c.conn.ConnectionState()); err != nil {
			g.log.Warn("peer refused", "peer", c.name.String(), "why", err.Error())
			_ = c.conn.Close()
		}
	}
	for k, l := range g.links {
		for _, err := range l.carrier.Recheck() {
			g.log.Warn("peer refused", "peer", k.peer, "at", k.address, "why", err.Error())
		}
	}
}

// renew has connections that show the certificate of before end with their streams, and
// others take their place: when nobody trusts it any more, nothing is left that it carries.
func (g *Gateway) renew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.native.Renew()
	for _, l := range g.links {
		if pool, is := l.carrier.(*native.Pool); is {
			pool.Renew()
		}
	}
}

// drain waits until no connection is left, or it has taken too long. What a peer has begun
// before it heard is on its way until the peer's own connections end.
func (g *Gateway) drain() {
	g.enter(admin.Draining)
	g.stopListening()
	g.native.Leave()
	g.datagrams.leave()
	g.log.Info("draining", "for", g.config.Drain.String())
	const look, hearing = 20 * time.Millisecond, 2 * time.Second
	begin := time.Now()
	for since := time.Duration(0); since < g.config.Drain && (g.active() > 0 || since < hearing && g.native.Connections() > 0); {
		time.Sleep(look)
		since = time.Since(begin)
	}
}

// active counts streams and flows that are open.
func (g *Gateway) active() int {
	n := g.native.Streams() + g.httpconnect.Streams() + g.datagrams.flows()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.links {
		n += l.carrier.Streams()
	}
	return n
}

// accept serves each connection of a listener, until that is closed.
func (g *Gateway) accept(ctx context.Context, l net.Listener, serve func(net.Conn)) {
	g.running.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // of one connection, or there are too many files
				g.log.Error("cannot accept", "at", l.Addr().String(), "why", err.Error())
				select {
				case <-ctx.Done():
				case <-time.After(acceptPause):
				}
				continue
			}
			g.running.Go(func() { serve(conn) })
		}
	})
}

// acceptPause is how long a gateway rests that could not accept.
const acceptPause = 50 * time.Millisecond
