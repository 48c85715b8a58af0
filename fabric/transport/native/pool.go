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

	"skerry.dev/skerry/fabric/transport"
)

// Times of a pool.
const (
	dialTimeout = 10 * time.Second
	// retryLeast and retryMost bound the wait after a dial that failed.
	retryLeast = 100 * time.Millisecond
	retryMost  = 2 * time.Second
	// coolAfter is how often a pool gives up a connection of those that it has too many.
	coolAfter = 15 * time.Second
	// freeMax bounds connections that wait for streams.
	freeMax = 256
)

// ErrClosed says that a pool takes no more streams.
var ErrClosed = errors.New("the pool is closed")

// Pool keeps connections to one gateway of a peer open before they are needed, and takes
// streams to it. It is safe for concurrent use.
type Pool struct {
	address string
	config  *tls.Config
	size    int
	buffers *buffers
	wanted  chan struct{} // has room for one: there may be too few
	dials   transport.Dials

	mu     sync.Mutex
	free   []*connection // the last one is the warmest
	all    map[*connection]bool
	closed bool
}

// NewPool makes a pool of that many connections ahead of need, to a gateway at HOST:PORT
// whose certificate the configuration verifies. It dials when Keep runs.
func NewPool(address string, config *tls.Config, size int) *Pool {
	return &Pool{address: address, config: config, size: size, buffers: newBuffers(), wanted: make(chan struct{}, 1), all: map[*connection]bool{}}
}

// Keep keeps the pool full until the context ends; then connections end with their
// streams. Connections that were
// needed at once for a while are given up one after the other.
func (p *Pool) Keep(ctx context.Context) {
	defer p.close()
	cool := time.NewTicker(coolAfter)
	defer cool.Stop()
	wait := retryLeast
	for {
		for p.short() {
			c, err := p.dial(ctx)
			if err != nil {
				break
			}
			wait = retryLeast
			p.put(c)
		}
		var again <-chan time.Time
		if p.short() {
			again = time.After(wait)
			wait = min(2*wait, retryMost)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
		case <-again:
		case <-cool.C:
			p.cool()
		}
	}
}

// Carry implements transport.Carrier.
func (p *Pool) Carry(ctx context.Context, r transport.Request, app transport.Conn) error {
	s, err := p.open(ctx, r)
	if err != nil {
		return fmt.Errorf("%w: %w", transport.ErrNotOpened, err)
	}
	r.Traffic.Opened()
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

// open begins a stream on a connection of its own.
func (p *Pool) open(ctx context.Context, r transport.Request) (*stream, error) {
	c, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.begin(r.Traffic)
	if err != nil {
		return nil, err
	}
	buf, err := appendOpen(make([]byte, headerBytes), message{r.Target, r.Source, r.Confirm})
	if err != nil {
		s.breakOff(err)
		return nil, err
	}
	if err := c.out(kindOpen, s.id, buf); err != nil {
		c.end(err)
		return nil, err
	}
	return s, nil
}

// take gives a connection that is free, or dials one.
func (p *Pool) take(ctx context.Context) (*connection, error) {
	p.mu.Lock()
	for len(p.free) > 0 {
		c := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		if c.usable() {
			p.mu.Unlock()
			p.want()
			return c, nil
		}
	}
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	return p.dial(ctx)
}

// put gives a connection back.
func (p *Pool) put(c *connection) {
	p.mu.Lock()
	keep := !p.closed && c.usable() && len(p.free) < freeMax
	if keep {
		p.free = append(p.free, c)
	}
	p.mu.Unlock()
	if !keep {
		c.retire()
	}
}

func (p *Pool) dial(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: p.config}).DialContext(ctx, "tcp", p.address)
	if !errors.Is(err, context.Canceled) { // which says nothing about the peer
		p.dials.Dialled(err, time.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", p.address, err)
	}
	c := newConnection(conn, p.buffers)
	c.freed = p.put
	c.verify = func() error { return p.config.VerifyConnection(conn.(*tls.Conn).ConnectionState()) }
	p.mu.Lock()
	closed := p.closed
	p.all[c] = true
	p.mu.Unlock()
	if closed {
		c.end(ErrClosed)
		return nil, ErrClosed
	}
	go func() {
		p.dials.Ended(c.serve(), time.Now())
		p.drop(c)
	}()
	return c, nil
}

// drop forgets a connection that is over.
func (p *Pool) drop(c *connection) {
	p.mu.Lock()
	delete(p.all, c)
	for i, f := range p.free {
		if f == c {
			p.free = append(p.free[:i], p.free[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	p.want()
}

// cool gives up the connection that was not used for the longest time, if there are more
// than there need be.
func (p *Pool) cool() {
	p.mu.Lock()
	var coldest *connection
	if len(p.free) > p.size {
		coldest, p.free = p.free[0], p.free[1:]
	}
	p.mu.Unlock()
	if coldest != nil {
		coldest.retire()
	}
}

func (p *Pool) short() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free) < p.size
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
	all := slices.Collect(maps.Keys(p.all))
	p.mu.Unlock()
	for _, c := range all {
		c.retire()
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
	p.mu.Unlock()
	for _, c := range all {
		if err := c.verify(); err != nil {
			c.end(err)
			refused = append(refused, err)
		}
	}
	return refused
}

// Health implements transport.Carrier.
func (p *Pool) Health() transport.Health {
	p.mu.Lock()
	idle := len(p.free)
	var conns []net.Conn
	for c := range p.all {
		conns = append(conns, c.conn)
	}
	p.mu.Unlock()
	h := p.dials.Health(conns, time.Now())
	h.Idle = idle
	return h
}

// Ready says whether a connection is open ahead of need.
func (p *Pool) Ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free) > 0
}
