package native

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/socket"
)

// Times of a pool.
const (
	// connectTimeout bounds how long one try to reach the peer takes: TCP tries again ever
	// more rarely, and would miss for seconds that a link is there again.
	connectTimeout = time.Second
	// dialTimeout bounds a try with its handshake.
	dialTimeout = 10 * time.Second
	// retryLeast and retryMost bound the wait after a dial that failed.
	retryLeast = 100 * time.Millisecond
	retryMost  = time.Second
	// span is over which a pool looks back at what was needed.
	span = 15 * time.Second
	// dialsMax is how many connections a pool dials at once.
	dialsMax = 4
)

// ErrClosed says that a pool takes no more streams.
var ErrClosed = errors.New("the pool is closed")

// Options of a gateway's native connections.
type Options struct {
	// Ahead is how many connections to a gateway of a peer are open ahead of need at least.
	Ahead int
	// Most bounds how many there are; streams beyond it share one.
	Most int
	// Congestion names TCP's congestion control between gateways; empty for the machine's.
	Congestion string
	// Peer is the cluster that is called.
	Peer Peer
	// Offers are the connections to a gateway that cannot be called; nil for one that can.
	Offers *Offers
}

// Pool keeps connections to one gateway of a peer open before they are needed, and takes
// streams to it. It is safe for concurrent use.
type Pool struct {
	address string
	config  *tls.Config
	options Options
	buffers *buffers
	wanted  chan struct{} // has room for one: there may be too few
	dials   transport.Dials

	mu     sync.Mutex
	free   []*connection        // the last one is the warmest
	all    map[*connection]bool // of their own, or in the session
	own    int                  // of their own, those that are dialled among them
	shared *session             // nil while there is none
	sight  sight
	bundle *bundle // nil while there is none
	demand demand
	closed bool
}

// NewPool makes a pool of connections to a gateway at HOST:PORT whose certificate the
// configuration verifies. It dials when Keep runs.
func NewPool(address string, config *tls.Config, o Options) *Pool {
	return &Pool{address: address, config: config, options: o, buffers: newBuffers(), wanted: make(chan struct{}, 1), all: map[*connection]bool{}}
}

// Keep keeps the pool full until the context ends; then connections end with their
// streams. Connections that were needed at once for a while are given up by and by.
func (p *Pool) Keep(ctx context.Context) {
	defer p.close()
	go p.watch(ctx) // which no dial holds up
	turn := time.NewTicker(span)
	defer turn.Stop()
	wait := retryLeast
	for {
		var again <-chan time.Time
		if err := p.fill(ctx); err != nil {
			again = time.After(wait)
			wait = min(2*wait, retryMost)
		} else {
			wait = retryLeast
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
		case <-again:
		case <-turn.C:
			p.cool()
		}
	}
}

// fill dials what is missing.
func (p *Pool) fill(ctx context.Context) error {
	var dials errgroup.Group
	dials.SetLimit(dialsMax)
	dials.Go(func() error { return p.join(ctx) })
	dials.Go(func() error { return p.bind(ctx) })
	for range p.missing() {
		dials.Go(func() error {
			c, err := p.dial(ctx)
			if err != nil {
				return err
			}
			go p.learn(c)
			return nil
		})
	}
	return dials.Wait()
}

// measure looks how many packets are lost, and has connections use a bundle or not.
func (p *Pool) measure() {
	p.mu.Lock()
	before := p.sight.lossy()
	var all count
	for c := range p.all {
		all = all.plus(c.leg.since(p.demand.now > 0))
	}
	if p.bundle != nil {
		for _, l := range p.bundle.live() {
			all = all.plus(l.leg.since(p.demand.now > 0))
		}
	}
	p.sight.add(all)
	now := p.sight.lossy()
	p.mu.Unlock()
	if now != before {
		p.offer(now)
		p.want() // perhaps a bundle
	}
}

// Carry implements transport.Carrier.
func (p *Pool) Carry(ctx context.Context, r transport.Request, app transport.Conn) error {
	s, err := p.open(ctx, r)
	if err != nil {
		return fmt.Errorf("%w: %w", transport.ErrNotOpened, err)
	}
	r.Traffic.Opened()
	stop := context.AfterFunc(ctx, func() { s.breakOff(ctx.Err()) })
	defer stop()
	if !s.join(app) { // the peer has refused it by now
		transport.Reset(app)
		return s.wait()
	}
	if r.Confirm {
		select {
		case <-s.accepted:
		case <-s.ended:
		}
	}
	s.pump()
	return s.wait()
}

// open begins a stream on a connection of its own. One that ends in that moment is no
// reason to give up: the peer has heard nothing of the stream.
func (p *Pool) open(ctx context.Context, r transport.Request) (s *stream, err error) {
	const tries = 3
	buf, err := appendOpen(make([]byte, headerBytes), r)
	if err != nil {
		return nil, err
	}
	buf = append(buf, r.First...)
	for range tries {
		c, failed := p.take(ctx)
		if failed != nil {
			return nil, failed
		}
		if s, err = c.begin(r.Traffic); err != nil {
			p.released()
			continue
		}
		if err = c.out(kindOpen, s.id, buf); err == nil {
			s.sent = int64(len(r.First))
			r.Traffic.ToPeer(len(r.First))
			if u := c.bundled.Load(); len(buf) <= copyMost && u.usable() {
				u.copy(s.id, copyOfOpen, nil, buf[headerBytes:])
			}
			return s, nil
		}
		c.end(err)
	}
	return nil, err
}

// take gives a connection that is free, or a place on the one that is shared.
func (p *Pool) take(ctx context.Context) (*connection, error) {
	p.mu.Lock()
	for len(p.free) > 0 {
		c := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		if c.usable() {
			p.beginLocked()
			p.mu.Unlock()
			return c, nil
		}
	}
	closed, s := p.closed, p.shared
	p.beginLocked()
	p.mu.Unlock()
	c, err := (*connection)(nil), ErrClosed
	if !closed {
		c, err = p.place(ctx, s)
	}
	if err != nil {
		p.released()
	}
	return c, err
}

// beginLocked notes that a stream begins, which may need more connections.
func (p *Pool) beginLocked() {
	p.demand.begin()
	if p.missingLocked() > 0 || p.shared == nil {
		p.want()
	}
}

// learn has a connection get to know its path before it is free.
func (p *Pool) learn(c *connection) {
	p.options.Peer.Training.call(c)
	p.measure() // whether a bundle is needed
	p.offerTo(c)
	p.put(c)
}

// put gives a connection back.
func (p *Pool) put(c *connection) {
	p.mu.Lock()
	keep := !p.closed && c.own && c.usable()
	if keep {
		p.free = append(p.free, c)
	}
	p.mu.Unlock()
	if !keep {
		c.retire()
	}
}

// dial opens a connection for one stream at a time.
func (p *Pool) dial(ctx context.Context) (*connection, error) {
	p.mu.Lock()
	p.own++
	p.mu.Unlock()
	conn, err := p.dialTLS(ctx, Protocol)
	if err != nil {
		p.mu.Lock()
		p.own--
		p.mu.Unlock()
		return nil, err
	}
	return p.run(conn, conn, true)
}

// dialTLS connects and shakes hands, and notes how that went.
func (p *Pool) dialTLS(ctx context.Context, protocol string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := p.shake(ctx, protocol)
	if !errors.Is(err, context.Canceled) { // which says nothing about the peer
		p.dials.Dialled(err, time.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", p.address, err)
	}
	return conn, nil
}

// shake gets a connection to the gateway that speaks a protocol.
func (p *Pool) shake(ctx context.Context, protocol string) (*tls.Conn, error) {
	if p.options.Offers == nil {
		return dial(ctx, p.address, p.config, p.options.Congestion, protocol)
	}
	conn, err := p.options.Offers.take(ctx, protocol)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.trust(conn), legOf(conn).tune(p.options.Congestion)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// dial connects to HOST:PORT and shakes hands.
func dial(ctx context.Context, address string, config *tls.Config, congestion, protocol string) (*tls.Conn, error) {
	reach, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := socket.Dial(reach, address)
	if err != nil {
		return nil, err
	}
	if err := legOf(raw).tune(congestion); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	config = config.Clone()
	config.NextProtos = []string{protocol}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return conn, nil
}

// run begins to read a connection of its own, or a place on the shared one, over TLS.
func (p *Pool) run(conn net.Conn, over *tls.Conn, own bool) (*connection, error) {
	c := newConnection(conn, p.buffers)
	c.own = own
	c.over = p.released
	c.freed = func(c *connection) {
		if c.own && !c.here.Load() { // a stream could not wait until it knew its path
			go p.learn(c)
			return
		}
		p.put(c)
	}
	c.verify = func() error { return p.trust(over) }
	c.left = func() { p.replaceBundle(c) }
	c.lost = func(n count) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sight.told = p.sight.told.plus(n)
	}
	p.mu.Lock()
	closed := p.closed
	p.all[c] = true
	p.mu.Unlock()
	go func(since time.Time) {
		p.dials.Ended(c.serve(), time.Now())
		if c.unused() {
			rest(since)
		}
		p.drop(c)
	}(time.Now())
	if closed {
		c.end(ErrClosed)
		return nil, ErrClosed
	}
	return c, nil
}

// rest waits after a connection that ended as soon as it began: by TLS 1.3 a peer says
// after the handshake that it refuses us, and would be asked again and again.
func rest(since time.Time) { time.Sleep(retryMost - time.Since(since)) }

// released notes that a stream needs no connection any more.
func (p *Pool) released() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.demand.end()
}

// drop forgets a connection that is over.
func (p *Pool) drop(c *connection) {
	p.mu.Lock()
	delete(p.all, c)
	if c.own {
		p.own--
	}
	p.free = slices.DeleteFunc(p.free, func(f *connection) bool { return f == c })
	p.mu.Unlock()
	p.finish()
	p.want()
}

// cool begins another span, and gives up half of what was not needed for two, first that
// which was not used for the longest time.
func (p *Pool) cool() {
	p.mu.Lock()
	p.demand.turn()
	excess := (p.own - p.demand.connections(p.options.Ahead, p.options.Most) + 1) / 2
	excess = max(0, min(excess, len(p.free)))
	coldest := slices.Clone(p.free[:excess])
	p.free = p.free[excess:]
	p.mu.Unlock()
	for _, c := range coldest {
		c.retire()
	}
}

func (p *Pool) want() {
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

func (p *Pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	if p.options.Offers != nil {
		p.options.Offers.Close()
	}
	p.retireAll()
	p.finish()
}

// finish ends what connections have in common when the last one of a closed pool is over.
func (p *Pool) finish() {
	p.mu.Lock()
	over := p.closed && len(p.all) == 0
	s, b := p.shared, p.bundle
	p.mu.Unlock()
	if over && b != nil {
		b.fail(ErrClosed)
	}
	if over && s != nil {
		_ = s.Close() // nobody uses it
	}
}

// Streams counts those that are open.
func (p *Pool) Streams() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.all {
		n += c.count()
	}
	return n
}

// Recheck ends the connections whose peer is not to be trusted any more, and says why.
func (p *Pool) Recheck() (refused []error) {
	p.mu.Lock()
	all := slices.Collect(maps.Keys(p.all))
	s, bundles := p.shared, map[*bundle]bool{}
	if p.bundle != nil {
		bundles[p.bundle] = true
	}
	p.mu.Unlock()
	check := func(trusted error, end func(error)) {
		if trusted != nil {
			end(trusted)
			refused = append(refused, trusted)
		}
	}
	for _, c := range all {
		check(c.verify(), c.end)
		if u := c.bundled.Load(); u != nil { // perhaps one that was replaced
			bundles[u.bundle] = true
		}
	}
	if s != nil {
		check(p.trust(s.conn), func(error) { _ = s.Close() }) // it is over either way
	}
	for b := range bundles {
		if lanes := b.live(); len(lanes) > 0 { // all are to one gateway
			check(p.trust(lanes[0].conn), b.fail)
		}
	}
	return refused
}

// trust says whether the peer of a connection of TLS is still to be trusted.
func (p *Pool) trust(conn net.Conn) error {
	return p.config.VerifyConnection(conn.(*tls.Conn).ConnectionState())
}

// Health implements transport.Carrier.
func (p *Pool) Health() transport.Health {
	p.mu.Lock()
	idle, settled := len(p.free), p.settledLocked()
	var conns []net.Conn
	for c := range p.all {
		conns = append(conns, c.conn)
	}
	p.mu.Unlock()
	h := p.dials.Health(conns, time.Now())
	h.Idle, h.Settled = idle, settled
	return h
}
