package datagram

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"skerry.dev/skerry/fabric/transport"
)

const (
	// retryLeast and retryMost bound the wait before another dial.
	retryLeast  = 100 * time.Millisecond
	retryMost   = 500 * time.Millisecond
	dialTimeout = 10 * time.Second
)

// Link keeps a connection to one gateway of a peer open before it is needed, and opens
// flows to it. It is safe for concurrent use.
type Link struct {
	address string
	config  *tls.Config
	drops   *Drops
	tell    func(error)
	dials   transport.Dials

	mu sync.Mutex
	// current is where new flows are opened, nil where there is no connection.
	current *connection
	// all are those that have flows yet.
	all map[*connection]bool
}

// NewLink makes one to a gateway at HOST:PORT whose certificate the configuration
// verifies. It dials when Keep runs. When there is a connection, and why there is none
// any more or from the start, is told.
func NewLink(address string, config *tls.Config, drops *Drops, tell func(error)) *Link {
	return &Link{address: address, config: config, drops: drops, tell: tell, all: map[*connection]bool{}}
}

// Keep keeps a connection until the context ends; then all flows end.
func (l *Link) Keep(ctx context.Context) {
	var serving sync.WaitGroup
	defer serving.Wait()
	redial(ctx, l.tell, func() (*quic.Conn, error) {
		conn, err := dial(ctx, l.address, l.config, settings(true))
		l.dials.Dialled(err, time.Now())
		return conn, err
	}, func(conn *quic.Conn) error { return l.keep(ctx, conn, &serving) })
}

// redial has connections used, one after the other, until the context ends. Whether there is
// one is told, and once why there is none.
func redial(ctx context.Context, tell func(error), dial func() (*quic.Conn, error), use func(*quic.Conn) error) {
	wait, told := retryLeast, false
	for ctx.Err() == nil {
		conn, err := dial()
		if err == nil {
			tell(nil)
			err = use(conn)
			wait, told = retryLeast, false
		}
		if ctx.Err() == nil && !told {
			tell(err)
			told = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMost)
	}
}

// keep has new flows opened on a connection until it takes no more, and says why.
func (l *Link) keep(ctx context.Context, conn *quic.Conn, serving *sync.WaitGroup) error {
	c := newConnection(conn, l.drops)
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseWithError(codeEnded, "") }) // it is over either way
	l.take(c)
	serving.Go(func() {
		defer stop()
		_ = c.serve() // its flows are told
		l.drop(c)
	})
	_, err := conn.AcceptUniStream(conn.Context())
	c.leaving.Store(true)
	if err == nil {
		return &transport.Refusal{Code: transport.Leaving}
	}
	<-conn.Context().Done()
	why := context.Cause(conn.Context())
	if refuses(why) {
		l.dials.Refused(why, time.Now())
	}
	return why
}

// dial tries the addresses of a gateway's name one after the other.
func dial(ctx context.Context, address string, config *tls.Config, of *quic.Config) (*quic.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, a := range addresses {
		conn, err := quic.DialAddr(ctx, netip.AddrPortFrom(a.Unmap(), uint16(number)).String(), config, of)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("dial %s: %w", address, errors.Join(failed...))
}

// take has new flows opened on a connection.
func (l *Link) take(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = c
	l.all[c] = true
}

// drop forgets a connection that is over.
func (l *Link) drop(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, c)
	if l.current == c {
		l.current = nil
	}
}

// Open begins a flow. What the peer says goes to receive, which must not wait. That the
// flow is over is told to ended, once, with the code by which the peer has ended it, else
// Over. Neither is called under a lock, nor before Open returns.
func (l *Link) Open(r transport.Request, receive func([]byte), ended func(transport.Code)) (*Flow, error) {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	if c == nil || !c.usable() {
		return nil, transport.ErrNotOpened
	}
	s, err := c.conn.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transport.ErrNotOpened, err)
	}
	f := &Flow{lane: lane{flow: number(s)}, stream: s, traffic: r.Traffic, receive: receive, ended: func(_, heard transport.Code) { ended(heard) }}
	c.add(f)
	go f.call(r)
	return f, nil
}

// number of the flow that a stream is of: its own among those that who calls opens (RFC
// 9297 section 2.1, there of requests).
func number(s *quic.Stream) uint64 { return uint64(s.StreamID()) / 4 }

// call says what the flow is to be, and waits until the peer ends it.
func (f *Flow) call(r transport.Request) {
	if err := ask(f.stream, r); err != nil {
		f.End(Over)
		return
	}
	n, err := f.stream.Read(make([]byte, 1))
	if n > 0 {
		_ = f.c.conn.CloseWithError(codeBreach, "") // nothing is said there
	}
	code := Over
	if refused, ok := errors.AsType[*quic.StreamError](err); ok && refused.Remote {
		code = transport.Code(refused.ErrorCode)
	}
	f.end(Over, code)
}

// Path is that of new flows. It is ready where they would be opened on a connection on which
// the peer was heard just now.
func (l *Link) Path() transport.Path {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	if c == nil {
		return transport.Path{}
	}
	stats := c.conn.ConnectionStats()
	return transport.Path{
		Ready: c.ready(time.Now()), RTT: stats.SmoothedRTT, Streams: c.count(),
		Loss: float64(stats.PacketsLost) / float64(max(1, stats.PacketsSent)),
	}
}

func (l *Link) connections() []*connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.all))
}

// Flows counts those that are open.
func (l *Link) Flows() (n int) {
	for _, c := range l.connections() {
		n += c.count()
	}
	return n
}

// Leave has flows end that say nothing for a few seconds.
func (l *Link) Leave() {
	for _, c := range l.connections() {
		c.hurry()
	}
}

// Recheck ends connections whose peer is not to be trusted any more, and says why.
func (l *Link) Recheck() (refused []error) {
	for _, c := range l.connections() {
		if err := c.recheck(l.config.VerifyConnection); err != nil {
			refused = append(refused, err)
		}
	}
	return refused
}
