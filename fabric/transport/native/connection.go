package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"skerry.dev/skerry/fabric/transport"
)

// connection carries one stream at a time between two gateways.
//
// Bytes of an application: its socket → pump → connection.out → TLS → the peer's
// serve → deliver → the service's socket; and back the same way. Each direction of a
// stream has one goroutine: pump reads the socket and writes frames under the
// connection's lock, serve reads frames and writes sockets. Nothing is queued between
// them: a reader that is slow holds up the TCP connection below, and that the sender.
type connection struct {
	conn net.Conn
	road
	own     bool // it is not a place on one that is shared
	buffers *buffers
	side
	bundling

	writing sync.Mutex
	ponging atomic.Bool

	mu sync.Mutex
	// streams by number, of those from which bytes may come yet.
	streams map[uint32]*stream
	current owner
	live    map[*stream]bool // those that are not over
	retired bool             // it ends with the last of them
	numbers
	err error // why the connection is over
}

// owner is the stream that owns a connection: until it is over, and the side that was called
// has passed on all of it, for what stands before another would hold that up.
type owner struct {
	*stream
	done bool // that side has said so; there it is so from the begin
}

// numbers are those of streams: of the newest, and of one that a copy of its open frame has
// opened, until that frame comes.
type numbers struct {
	last, opensEarly uint32
	telling          atomic.Int32 // how many have an end that is being told
}

// road is the way of a connection, as far as it is known.
type road struct {
	leg leg
	// here and there say that this side knows the path, and the other.
	here, there atomic.Bool
	neighbour
	// untold is what was sent, and lost of it, that the peer was not told yet.
	untold tells
}

// side is what a connection asks of those who have made it.
type side struct {
	// open begins the streams that the peer asks for; nil where it may not.
	open func(c *connection, s *stream, r transport.Request)
	// over is called when a stream is, freed when the connection can take another.
	over  func()
	freed func(c *connection)
	// told is called when the peer says that it knows the path; nil where nothing follows.
	told func()
	// left is called when the peer takes no more streams here; nil where nothing follows.
	left func()
	// verify says whether the peer is still to be trusted.
	verify func() error
	// lost is told what the peer has sent, and lost on its way here.
	lost func(count)
	// bundleOf finds a bundle of the peer's, nil where there is none.
	bundleOf func(bundleID) *bundle
}

// streamsMax is how many streams a connection may have: one that owns it, and those before
// whose ends are being told.
const streamsMax = 64

// doneLate is how long a peer may take to be done with a stream that was broken off.
const doneLate = 5 * time.Second

func newConnection(conn net.Conn, b *buffers) *connection {
	return &connection{conn: conn, road: road{leg: legOf(conn)}, buffers: b, streams: map[uint32]*stream{}, live: map[*stream]bool{}}
}

// serve reads frames until the connection ends, and says why it did.
func (c *connection) serve() error {
	err := c.frames()
	c.end(err)
	return err
}

func (c *connection) frames() error {
	for {
		h, err := readHeader(c.conn)
		if err != nil {
			return err
		}
		if err := c.frame(h); err != nil {
			return err
		}
	}
}

// frame takes one.
func (c *connection) frame(h header) error {
	switch h.kind {
	case kindOpen:
		return c.opened(h)
	case kindPad:
		if h.length == 0 && !c.there.Swap(true) && c.told != nil {
			go c.told()
		}
		return c.skip(h.length)
	case kindPing:
		return c.pong(h.length)
	case kindPong:
		return c.skip(h.length)
	case kindLeave:
		if c.left != nil {
			c.left()
		}
		c.retire()
		return nil
	case kindBlock, kindBundle, kindTaken:
		return c.ofBundle(h)
	case kindLoss:
		return c.lossTold()
	case kindReset:
		return c.resetByPeer(h.stream)
	}
	if (h.kind == kindAccept || h.kind == kindDone) && c.open != nil {
		return fmt.Errorf("stream %d accepted or done by who opened it: %w", h.stream, transport.ErrProtocol)
	}
	if h.kind == kindDone {
		defer c.done(h.stream)
	}
	s := c.stream(h.stream)
	if s == nil { // it was reset here, and the peer does not know yet
		return c.skip(h.length)
	}
	s.heard.Store(true)
	switch h.kind {
	case kindData:
		return s.deliver(h.length)
	case kindAccept:
		return s.peerAccepted()
	}
	s.peerFinished()
	return nil
}

// resetByPeer ends a stream that the peer has broken off. Who was called says that it is done
// with it.
func (c *connection) resetByPeer(id uint32) error {
	var code [codeBytes]byte
	if _, err := io.ReadFull(c.conn, code[:]); err != nil {
		return err
	}
	if c.open == nil {
		c.done(id)
	}
	c.mu.Lock()
	s := c.current.stream
	c.mu.Unlock()
	if s == nil || s.id != id { // it is over
		return nil
	}
	s.heard.Store(true)
	if s.peerReset(transport.Code(binary.BigEndian.Uint32(code[:]))) && c.open != nil {
		go c.tell(kindDone, id, nil) // who reads never waits to write
	}
	return nil
}

// done notes that the peer has passed on all of a stream.
func (c *connection) done(id uint32) {
	c.mu.Lock()
	if c.current.stream != nil && c.current.id == id {
		c.current.done = true
	}
	c.mu.Unlock()
	c.free()
}

// free lets another stream begin, if the one that owns the connection does so no more; or
// ends the connection, if there is to be no other.
func (c *connection) free() {
	c.mu.Lock()
	freed := c.current.done && !c.live[c.current.stream]
	if freed {
		c.current = owner{}
	}
	over := c.retired && c.carriesNoneLocked()
	c.mu.Unlock()
	if freed && c.freed != nil {
		c.freed(c)
	}
	if over {
		c.end(ErrClosed)
	}
}

// carriesNoneLocked says whether no stream is on the connection.
func (c *connection) carriesNoneLocked() bool { return len(c.live) == 0 && c.current.stream == nil }

// awaitDone ends the connection if the peer is not done in time with a stream that was broken
// off: what the service does not read stands before all else.
func (c *connection) awaitDone(s *stream) {
	owns := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.err == nil && c.current.stream == s
	}
	if owns() {
		time.AfterFunc(doneLate, func() {
			if owns() {
				c.leg.drop()
				c.end(errSilent)
			}
		})
	}
}

// opened begins a stream that the peer asks for.
func (c *connection) opened(h header) error {
	asked, first, err := readOpen(c.conn, h.length)
	if err != nil {
		return err
	}
	s, early, err := c.accept(h.stream)
	if err != nil {
		return err
	}
	if !early {
		c.open(c, s, asked)
	}
	switch {
	case first == 0:
		return nil
	case s == nil: // it is over by now
		return c.skip(first)
	}
	return s.deliver(first)
}

// accept makes a stream that the peer has begun, or finds the one that the copy of its open
// frame has: nil where that is over by now. Numbers rise, so that none is taken twice.
func (c *connection) accept(id uint32) (s *stream, early bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return nil, false, c.err
	case c.open == nil:
		return nil, false, fmt.Errorf("a stream opened by who was called: %w", transport.ErrProtocol)
	case id == c.opensEarly && id != 0:
		c.opensEarly = 0
		return c.streams[id], true, nil
	case id <= c.last:
		return nil, false, fmt.Errorf("stream %d after stream %d: %w", id, c.last, transport.ErrProtocol)
	case len(c.streams) > 0:
		return nil, false, fmt.Errorf("stream %d before the one before has ended: %w", id, transport.ErrProtocol)
	case c.crowdedLocked():
		return nil, false, fmt.Errorf("more than %d streams: %w", streamsMax, transport.ErrProtocol)
	}
	return c.takeLocked(id), false, nil
}

// takeLocked makes a stream of the peer's that owns the connection from now on.
func (c *connection) takeLocked(id uint32) *stream {
	c.last = id
	s := c.addLocked(id)
	c.current = owner{s, true}
	return s
}

// crowdedLocked says whether there are too many streams for another.
func (c *connection) crowdedLocked() bool { return len(c.live)+int(c.telling.Load()) >= streamsMax }

// begin makes the next stream of this side.
func (c *connection) begin(t *transport.Traffic) (*stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if c.retired {
		return nil, ErrClosed
	}
	c.last++
	s := c.addLocked(c.last)
	s.traffic = t
	c.current = owner{stream: s}
	return s, nil
}

func (c *connection) addLocked(id uint32) *stream {
	s := newStream(id, c)
	c.streams[id] = s
	c.live[s] = true
	return s
}

func (c *connection) stream(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// changed notes that directions of a stream are over: what still comes of one whose
// peer has ended is skipped.
func (c *connection) changed(s *stream, mine, theirs bool) {
	c.mu.Lock()
	if !theirs {
		delete(c.streams, s.id)
	}
	over := !mine && !theirs && c.live[s]
	if over {
		delete(c.live, s)
	}
	c.mu.Unlock()
	if over && c.over != nil {
		c.over()
	}
	c.free()
}

// retire ends the connection when its last stream does, and has it take no others.
func (c *connection) retire() {
	c.mu.Lock()
	c.retired = true
	idle := c.carriesNoneLocked()
	c.mu.Unlock()
	if idle {
		c.end(ErrClosed)
	}
}

// end closes the connection and breaks its streams.
func (c *connection) end(err error) {
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the peer closed the connection")
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	broken := slices.Collect(maps.Keys(c.live))
	c.streams = nil
	c.mu.Unlock()
	_ = c.conn.Close() // it is over either way
	if u := c.bundled.Load(); u != nil {
		u.leave()
	}
	for _, s := range broken {
		s.breakOff(err)
	}
}

// usable says whether another stream may begin.
func (c *connection) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.retired
}

// unused says whether no stream has begun on it.
func (c *connection) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last == 0
}

// count is how many streams are not over.
func (c *connection) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.live)
}

// idle says whether the connection is open, and carries nothing.
func (c *connection) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.retired && c.carriesNoneLocked()
}

// taught tells the peer that this side knows the path, or will learn no more of it.
func (c *connection) taught() {
	var b [headerBytes]byte
	if err := c.out(kindPad, 0, b[:]); err != nil {
		c.end(err)
		return
	}
	c.here.Store(true)
}

// settled says whether both sides do.
func (c *connection) settled() bool { return c.here.Load() && c.there.Load() }

// breakUnheard ends streams that were begun since then, of which the peer has said nothing.
func (c *connection) breakUnheard(since time.Time) {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.live))
	c.mu.Unlock()
	for _, s := range all {
		if !s.heard.Load() && s.begun.After(since) && s.fail(errSilent) {
			go c.reset(s.id, transport.Broken) // which may have to wait for the peer
		}
	}
}

// errSilent is of a stream that went to a gateway which is not there any more.
var errSilent = errors.New("the peer's gateway is silent")

// leave tells the peer to begin no more streams.
func (c *connection) leave() {
	var b [headerBytes]byte
	if err := c.out(kindLeave, 0, b[:]); err != nil {
		c.end(err)
	}
}

// out writes a frame whose header has its place at the begin of the buffer.
func (c *connection) out(k kind, stream uint32, buf []byte) error {
	header{k, len(buf) - headerBytes, stream}.put(buf)
	return c.write(buf)
}

// write writes frames.
func (c *connection) write(frames []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.conn.Write(frames)
	c.leg.wrote()
	return err
}

// reset tells the peer that a stream is over.
func (c *connection) reset(stream uint32, code transport.Code) {
	c.tell(kindReset, stream, binary.BigEndian.AppendUint32(nil, uint32(code)))
}

// tell tells the peer an end of a stream.
func (c *connection) tell(k kind, stream uint32, payload []byte) {
	c.telling.Add(1)
	defer c.telling.Add(-1)
	if err := c.out(k, stream, append(make([]byte, headerBytes, headerBytes+codeBytes), payload...)); err != nil {
		c.end(err)
	}
}

// pong sends back what a ping carries. Who reads never waits to write: if both sides
// did, neither would read again. A ping that comes while another is answered is not.
func (c *connection) pong(length int) error {
	b := make([]byte, headerBytes+length)
	if _, err := io.ReadFull(c.conn, b[headerBytes:]); err != nil {
		return err
	}
	if !c.ponging.CompareAndSwap(false, true) {
		return nil
	}
	go func() {
		defer c.ponging.Store(false)
		if err := c.out(kindPong, 0, b); err != nil {
			c.end(err)
		}
	}()
	return nil
}

// skip reads what nobody wants.
func (c *connection) skip(length int) error {
	_, err := io.CopyN(io.Discard, c.conn, int64(length))
	return err
}
