package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry.dev/skerry/fabric/identity"
	"skerry.dev/skerry/fabric/transport"
)

// ProtocolLane is what gateways speak in TLS (ALPN) on a lane of a bundle.
const ProtocolLane = "skerry-native-lane/1"

// joinBytes of what a lane begins with: the name of its bundle (16), its number in it (1)
// and how many there are (1).
const joinBytes = 18

// laneTraining is how much teaches a lane its path: what it has to carry of a burst.
const laneTraining = 512 << 10

// bind makes a bundle while packets are lost, if there is none, and dials lanes that it
// lacks.
func (p *Pool) bind(ctx context.Context) error {
	p.mu.Lock()
	if p.closed || !p.sight.lossy() {
		p.mu.Unlock()
		return nil
	}
	if p.bundle == nil || p.bundle.over() {
		p.bundle = newBundle(newBundleID(), lanesMost, p.options.Peer.Extra)
	}
	b := p.bundle
	p.mu.Unlock()
	var dials errgroup.Group
	dials.SetLimit(dialsMax)
	for i := range b.lanes {
		if b.lanes[i].Load() == nil {
			dials.Go(func() error { return p.lane(ctx, b, i) })
		}
	}
	if err := dials.Wait(); err != nil {
		return err
	}
	if b.over() {
		p.want() // perhaps another
		return nil
	}
	p.offer(true)
	return nil
}

// lane dials one of a bundle, unless that is over.
func (p *Pool) lane(ctx context.Context, b *bundle, i int) error {
	if b.over() {
		return nil
	}
	conn, err := p.dialTLS(ctx, ProtocolLane)
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(b.id[:], byte(i), byte(len(b.lanes)))); err != nil {
		return errors.Join(err, conn.Close())
	}
	l := newLane(conn)
	b.lanes[i].Store(l)
	if b.over() { // who has ended it may not have seen this one
		l.end()
	}
	go func() {
		_ = l.run(b, p.options.Peer.Training, false) // the bundle is told
		b.ended(i, l)
		p.want()
	}()
	return nil
}

// offer tells all connections of their own to use the bundle, or not to.
func (p *Pool) offer(use bool) {
	p.mu.Lock()
	b := p.bundle
	var own []*connection
	for c := range p.all {
		if c.own && b != nil {
			own = append(own, c)
		}
	}
	p.mu.Unlock()
	for _, c := range own {
		c.useBundle(b, use)
	}
}

// offerTo tells one connection of the bundle, if there is one in use.
func (p *Pool) offerTo(c *connection) {
	p.mu.Lock()
	b, use := p.bundle, p.bundle != nil && len(p.bundle.live()) == len(p.bundle.lanes) && p.sight.lossy()
	p.mu.Unlock()
	if use {
		c.useBundle(b, use)
	}
}

// useBundle offers a bundle to the peer, or takes the offer back. Blocks of a bundle that was
// replaced may be on their way: a connection that has one keeps it.
func (c *connection) useBundle(b *bundle, use bool) {
	u := c.bundled.Load()
	if !use {
		switch {
		case u == nil:
		case u.active.Swap(false):
			c.offerBundle(u.id, 0)
		default: // the peer has not answered yet, and perhaps not heard
			c.offers.unoffer()
		}
		return
	}
	if u == nil || u.bundle.over() {
		var err error
		if u, err = c.bundleWith(b, 0); err != nil {
			c.end(err)
			return
		}
	}
	if !u.active.Load() {
		c.offerBundle(u.id, u.number)
	}
}

// run carries pieces both ways until the lane ends, and says why it did.
func (l *lane) run(b *bundle, t *Training, called bool) error {
	go func() {
		t.lane(l, called)
		l.taught.Store(true)
		l.write()
	}()
	return l.read(b)
}

// ServeLane answers a peer on a lane of a bundle.
func (s *Server) ServeLane(conn net.Conn, peer identity.Name) error {
	if err := legOf(conn).tune(s.congestion); err != nil {
		return errors.Join(err, conn.Close())
	}
	var join [joinBytes]byte
	_ = conn.SetReadDeadline(time.Now().Add(dialTimeout)) // of one that is over reading tells
	if _, err := io.ReadFull(conn, join[:]); err != nil {
		return err
	}
	_ = conn.SetReadDeadline(time.Time{})
	k := bundleKey{peer, bundleID(join[:])}
	i, of := int(join[joinBytes-2]), int(join[joinBytes-1])
	if i >= of { // before it makes a bundle that no lane would end
		return fmt.Errorf("lane %d of %d: %w", i, of, transport.ErrProtocol)
	}
	b, err := s.bundle(k, of)
	if err != nil {
		return err
	}
	l := newLane(conn)
	if before := b.lanes[i].Swap(l); before != nil { // the peer knows already that it is over
		before.end()
	}
	if b.over() { // who has ended it may not have seen this one
		l.end()
	}
	err = l.run(b, s.peer(peer.Cluster).Training, true)
	if errors.Is(err, transport.ErrProtocol) {
		b.fail(err)
	}
	b.ended(i, l)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.over() {
		delete(s.bundles, k)
	}
	return err
}

// bundleKey names a bundle among those of all peers.
type bundleKey struct {
	peer identity.Name
	id   bundleID
}

// bundlesMax bounds those of a peer's gateway.
const bundlesMax = 4

// bundle gives one that a peer's lane is to join.
func (s *Server) bundle(k bundleKey, lanes int) (*bundle, error) {
	extra := s.peer(k.peer.Cluster).Extra
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bundles[k]; b != nil {
		if len(b.lanes) != lanes {
			return nil, fmt.Errorf("a bundle of %d lanes, and of %d: %w", len(b.lanes), lanes, transport.ErrProtocol)
		}
		return b, nil
	}
	others := 0
	for other := range s.bundles {
		if other.peer == k.peer {
			others++
		}
	}
	if lanes < dataLeast || lanes > piecesMax-1 || others >= bundlesMax {
		return nil, fmt.Errorf("bundle %d of %d lanes: %w", others+1, lanes, transport.ErrProtocol)
	}
	b := newBundle(k.id, lanes, extra)
	s.bundles[k] = b
	return b, nil
}

// bundleOf finds one of a peer's.
func (s *Server) bundleOf(peer identity.Name) func(bundleID) *bundle {
	return func(id bundleID) *bundle {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.bundles[bundleKey{peer, id}]
	}
}
