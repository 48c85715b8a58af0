package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"skerry.dev/skerry/fabric/transport"
)

// While packets are lost, what a stream says that fills no packet goes twice: on the
// connection that it owns, and as a copy on a lane of the bundle. Whichever comes first is
// passed on. A copy that is not the next of its stream is dropped: the connection brings it.

// copyMost is what a copy has at most: with what stands before it, one packet.
const copyMost = pieceLeast

// Kinds of copies, which stand for the index of a piece: bytes of a stream behind their
// offset in it, or all of what an open frame has.
const (
	copyOfData = iota
	copyOfOpen
)

// offsetBytes is where a copy stands in its stream.
const offsetBytes = 8

// isCopy says that the piece is a copy: of one data piece and none of parity, whose block
// is the number of a stream.
func (s shard) isCopy() bool { return s.shape == shape{data: 1} }

// copy sends what a stream has just said on the connection a second time. Where lanes have
// no room for it there is no copy.
func (u *bundled) copy(stream uint32, what int, head, data []byte) {
	lanes := u.live()
	if len(lanes) == 0 {
		return
	}
	s := shard{block: block{u.number, stream}, size: len(head) + len(data), shape: shape{data: 1}, index: what}
	piece := append(append(s.append(make([]byte, 0, shardBytes+s.size)), head...), data...)
	if lanes[int(u.copies.Add(1))%len(lanes)].offer(piece, false) {
		u.extra.Copies.Add(uint64(len(piece)))
	}
}

// copied takes a copy for one of the connections that use the bundle.
func (b *bundle) copied(s shard, body []byte) error {
	b.mu.Lock()
	u := b.users[s.connection]
	b.mu.Unlock()
	if u == nil || u.c == nil { // it is over
		return nil
	}
	if s.index == copyOfOpen {
		return u.c.openedEarly(s.number, body)
	}
	if len(body) <= offsetBytes {
		return fmt.Errorf("a copy of %d bytes: %w", len(body), transport.ErrProtocol)
	}
	if one := u.c.stream(s.number); one != nil {
		one.early(int64(binary.BigEndian.Uint64(body)), body[offsetBytes:])
	}
	return nil
}

// openedEarly begins a stream by the copy of its open frame, if it is the next and no other
// that began so awaits its frame: that one is over already, and its frame comes first.
func (c *connection) openedEarly(id uint32, body []byte) error {
	if c.open == nil {
		return fmt.Errorf("a stream opened by who was called: %w", transport.ErrProtocol)
	}
	asked, first, err := readOpen(bytes.NewReader(body), len(body))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("an open frame cut off after %d bytes: %w", len(body), transport.ErrProtocol)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	next := c.err == nil && id == c.last+1 && len(c.streams) == 0 && c.opensEarly == 0 && !c.crowdedLocked()
	var s *stream
	if next {
		s, c.opensEarly = c.takeLocked(id), id
	}
	c.mu.Unlock()
	if !next {
		return nil
	}
	c.open(c, s, asked)
	if first > 0 {
		s.early(0, body[len(body)-first:])
	}
	return nil
}

// inflow is what a stream's socket was given.
type inflow struct {
	order sync.Mutex // held by who writes to the socket
	// given counts bytes; carried are those of them that the connection has brought.
	given, carried int64
	copying        atomic.Bool // a copy waits, or is being written
}

// again says how many of the next bytes of the connection a copy has brought already, and
// notes that they have come.
func (f *inflow) again(length int) int {
	n := min(int64(length), f.given-f.carried)
	f.carried += n
	return int(n)
}

// gave notes bytes that the connection has brought and the socket has taken.
func (f *inflow) gave(n int) {
	f.given, f.carried = f.given+int64(n), f.carried+int64(n)
}

// early writes a copy to the socket if it is the next that the stream says. It does not
// wait, for others come by the same lane; of copies that would, there is one at most.
func (s *stream) early(offset int64, data []byte) {
	if !s.in.copying.CompareAndSwap(false, true) {
		return
	}
	s.heard.Store(true)
	go func() {
		defer s.in.copying.Store(false)
		<-s.joined
		if s.app == nil || !s.in.order.TryLock() { // the connection brings it now
			return
		}
		defer s.in.order.Unlock()
		if s.in.given != offset {
			return
		}
		n, err := s.app.Write(data)
		s.in.given += int64(n)
		s.traffic.ToSocket(n)
		if err != nil && s.fail(&transport.Refusal{Code: transport.Broken}) {
			s.c.reset(s.id, transport.Broken)
		}
	}()
}
