package native

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"skerry.dev/skerry/fabric/transport"
)

// bundleID names a bundle to the peer.
type bundleID [16]byte

func newBundleID() (id bundleID) {
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// bundled is a connection's part in a bundle.
type bundled struct {
	*bundle
	c      *connection
	number uint32
	// active says that the peer knows of it, and that blocks are to be sent.
	active atomic.Bool

	order sync.Mutex // blocks have the order of their frames
	mu    sync.Mutex
	room  *sync.Cond
	sent  uint32 // the number of the last block
	ahead []int  // the sizes of those that the peer has not taken
	bytes int    // of them together
	over  bool

	copies    atomic.Uint32 // that were sent
	owed      atomic.Uint32 // blocks that were taken here, and the peer was not told yet
	crediting atomic.Bool
}

// bundleWith has the connection use a bundle, by the number that the peer gave it or 0.
func (c *connection) bundleWith(b *bundle, number uint32) (*bundled, error) {
	u := &bundled{bundle: b, c: c, number: b.admit(c, number)}
	u.room = sync.NewCond(&u.mu)
	if before := c.bundled.Swap(u); before != nil && !before.leave() {
		return nil, fmt.Errorf("another bundle before the blocks of one have come: %w", transport.ErrProtocol)
	}
	c.mu.Lock()
	over := c.err != nil
	c.mu.Unlock()
	if over {
		u.leave()
	}
	return u, nil
}

// leave ends the part, and says whether nothing was on its way.
func (u *bundled) leave() bool {
	u.forget(u.number)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.over {
		u.bundle.ahead.Add(-int64(u.bytes))
	}
	u.over = true
	u.room.Broadcast()
	return len(u.ahead) == 0
}

// bundling is what a connection has to do with bundles.
type bundling struct {
	bundled atomic.Pointer[bundled]
	offers  offers
}

// offers are what the peer is to be told of bundles. Who decides never waits to write: of what was
// decided while one was written the last is told.
type offers struct {
	mu      sync.Mutex
	next    []byte // a frame
	number  uint32 // of next
	telling bool
}

// offerBundle tells the peer that blocks may come and go by a bundle, or with 0 for its
// number that none are to go.
func (c *connection) offerBundle(id bundleID, number uint32) {
	b := append(make([]byte, headerBytes, headerBytes+bundleBytes), id[:]...)
	o := &c.offers
	o.mu.Lock()
	o.next, o.number = binary.BigEndian.AppendUint32(b, number), number
	begins := !o.telling
	o.telling = true
	o.mu.Unlock()
	if begins {
		go c.tellOffers()
	}
}

// unoffer has the peer not told of an offer that waits.
func (o *offers) unoffer() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.number != 0 {
		o.next = nil
	}
}

func (c *connection) tellOffers() {
	for {
		o := &c.offers
		o.mu.Lock()
		frame := o.next
		o.next, o.telling = nil, frame != nil
		o.mu.Unlock()
		if frame == nil {
			return
		}
		if err := c.out(kindBundle, 0, frame); err != nil {
			c.end(err)
		}
	}
}

// usable says whether blocks can be sent.
func (u *bundled) usable() bool {
	if u == nil || !u.active.Load() {
		return false
	}
	return !u.bundle.over()
}

// block sends bytes of a stream in pieces, after a promise.
func (u *bundled) block(stream uint32, data []byte) error {
	u.mu.Lock()
	for (len(u.ahead) >= blocksAhead || u.bytes >= bytesAhead) && !u.over {
		u.room.Wait()
	}
	u.mu.Unlock()
	u.order.Lock()
	defer u.order.Unlock()
	u.mu.Lock()
	if u.over {
		u.mu.Unlock()
		u.bundle.ahead.Add(-blockMax)
		return ErrClosed
	}
	u.bundle.ahead.Add(int64(len(data) - blockMax))
	u.sent++
	u.ahead, u.bytes = append(u.ahead, len(data)), u.bytes+len(data)
	k := block{u.number, u.sent}
	u.mu.Unlock()
	frame := binary.BigEndian.AppendUint32(make([]byte, headerBytes, headerBytes+blockBytes), k.number)
	if err := u.c.out(kindBlock, stream, binary.BigEndian.AppendUint32(frame, uint32(len(data)))); err != nil {
		return err
	}
	return u.send(k, data)
}

// next gives the bytes of a block whose frame has come, and lets the peer send another.
func (u *bundled) next(number uint32) (net.Buffers, error) {
	if u == nil {
		return nil, fmt.Errorf("a block without a bundle: %w", transport.ErrProtocol)
	}
	bytes, err := u.take(block{u.number, number})
	if err != nil {
		return nil, err
	}
	u.owed.Add(1)
	if u.crediting.CompareAndSwap(false, true) {
		go u.credit() // who reads never waits to write
	}
	return bytes, nil
}

// credit tells the peer how many blocks were taken.
func (u *bundled) credit() {
	for {
		n := u.owed.Swap(0)
		if n == 0 {
			u.crediting.Store(false)
			if u.owed.Load() == 0 || !u.crediting.CompareAndSwap(false, true) {
				return
			}
			continue
		}
		b := binary.BigEndian.AppendUint32(make([]byte, headerBytes, headerBytes+codeBytes), n)
		if err := u.c.out(kindTaken, 0, b); err != nil {
			u.c.end(err)
			return
		}
	}
}

// credited notes that the peer has taken blocks.
func (u *bundled) credited(n uint32) error {
	if u == nil {
		return fmt.Errorf("blocks taken without a bundle: %w", transport.ErrProtocol)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if n == 0 || n > uint32(len(u.ahead)) {
		return fmt.Errorf("%d blocks taken of %d: %w", n, len(u.ahead), transport.ErrProtocol)
	}
	before := u.bytes
	for _, size := range u.ahead[:n] {
		u.bytes -= size
	}
	u.ahead = u.ahead[n:]
	if !u.over {
		u.bundle.ahead.Add(int64(u.bytes - before))
	}
	u.room.Broadcast()
	return nil
}

// ofBundle takes a frame that is about blocks.
func (c *connection) ofBundle(h header) error {
	b := make([]byte, h.length)
	if _, err := io.ReadFull(c.conn, b); err != nil {
		return err
	}
	switch h.kind {
	case kindBundle:
		return c.bundleOffered(bundleID(b), binary.BigEndian.Uint32(b[len(bundleID{}):]))
	case kindTaken:
		return c.bundled.Load().credited(binary.BigEndian.Uint32(b))
	}
	bytes, err := c.bundled.Load().next(binary.BigEndian.Uint32(b))
	if err != nil {
		return err
	}
	if s := c.stream(h.stream); s != nil {
		s.deliverBlock(bytes)
	}
	return nil
}

// bundleOffered answers an offer, or takes the answer.
func (c *connection) bundleOffered(id bundleID, number uint32) error {
	u := c.bundled.Load()
	switch {
	case number == 0 && u != nil:
		u.active.Store(false)
		return nil
	case c.open == nil: // it was offered by this side
		if u == nil || u.number != number {
			return fmt.Errorf("a bundle that was not offered: %w", transport.ErrProtocol)
		}
		u.active.Store(true)
		return nil
	}
	b := c.bundleOf(id)
	if b == nil { // its lanes have ended since
		return nil
	}
	if u == nil || u.bundle != b || u.number != number {
		var err error
		if u, err = c.bundleWith(b, number); err != nil {
			return err
		}
	}
	u.active.Store(true)
	c.offerBundle(id, number)
	return nil
}
