package native

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/reedsolomon"

	"skerry.dev/skerry/fabric/transport"
)

// bundle is one side of the lanes between two gateways: connections beside those that
// streams own, which carry pieces of blocks while packets are lost between them.
//
// Bytes of an application: pump → connection.block → bundle.send → lane → TLS → the peer's
// lane → bundle.add → the peer's serve, which waits for a block where its frame stands
// among the others of the stream → the service's socket; and back the same way.
type bundle struct {
	id     bundleID
	codecs codecs
	lanes  []atomic.Pointer[lane]
	// ahead is how many bytes of blocks the peer has not taken, with those about to be sent.
	ahead atomic.Int64
	extra *Extra

	mu      sync.Mutex
	arrived *sync.Cond
	// users are the connections that may use it, by number; next is that of another.
	users map[uint32]*user
	next  uint32
	room  int // bytes of blocks that may be held yet
	// lost says that a lane has ended, and perhaps pieces with it.
	lost bool
	// retired says that it ends with its last user.
	retired bool
	err     error
}

// user is a connection of whose streams blocks come, and copies.
type user struct {
	c      *connection
	blocks map[uint32]*arrival
	taken  uint32 // number of the last block that was taken; they are taken in order
}

// arrival is a block of which pieces have come.
type arrival struct {
	shard  // of the first of them
	pieces [][]byte
	have   int
	whole  bool
}

const (
	// lanesMost is how many lanes a bundle has: each carries so little of a burst that its
	// window has room for it though one packet of a thousand is lost.
	lanesMost = 30
	// blockMax is what a block has at most: of more bytes in a piece, fewer go by themselves.
	blockMax = 256 << 10
	// blocksAhead is how many blocks of a connection may be on their way or not taken, and
	// bytesAhead after how many bytes of them its side waits.
	blocksAhead, bytesAhead = 64, 4 << 20
	// bundleAhead is after how many bytes of all connections they send none: services that
	// read slowly have used up what the peer holds for them. bundleRoom bounds what a side
	// holds, with what it has not heard to be over.
	bundleAhead, bundleRoom = 32 << 20, 48 << 20
)

// blockLate is how long a block may take of which pieces may have been lost with a lane.
const blockLate = 10 * time.Second

// errBundle is of blocks that will never be whole.
var errBundle = errors.New("too many lanes of the bundle have ended")

func newBundle(id bundleID, lanes int, extra *Extra) *bundle {
	b := &bundle{id: id, extra: extra, lanes: make([]atomic.Pointer[lane], lanes), users: map[uint32]*user{}, room: bundleRoom}
	b.codecs.all = map[shape]reedsolomon.Encoder{}
	b.arrived = sync.NewCond(&b.mu)
	return b
}

// admit lets a connection use the bundle, by the number that its peer gave it or, for 0,
// by the next one.
func (b *bundle) admit(c *connection, number uint32) uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if number == 0 {
		b.next++
		number = b.next
	}
	if b.users[number] == nil {
		b.users[number] = &user{c: c, blocks: map[uint32]*arrival{}}
	}
	return number
}

// forget drops what has come for a connection that is over, and what will.
func (b *bundle) forget(number uint32) {
	b.mu.Lock()
	if u := b.users[number]; u != nil {
		for _, a := range u.blocks {
			b.room += a.size
		}
		delete(b.users, number)
		b.arrived.Broadcast()
	}
	over := b.retired && len(b.users) == 0
	b.mu.Unlock()
	if over {
		b.fail(ErrClosed)
	}
}

// fail ends the bundle: who waits for a block is told.
func (b *bundle) fail(err error) {
	b.mu.Lock()
	if b.err == nil {
		b.err = err
	}
	b.mu.Unlock()
	b.arrived.Broadcast()
	for i := range b.lanes {
		if l := b.lanes[i].Load(); l != nil {
			l.end()
		}
	}
}

// over says whether the bundle has ended.
func (b *bundle) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil
}

// live are the lanes that there are.
func (b *bundle) live() (all []*lane) {
	for i := range b.lanes {
		if l := b.lanes[i].Load(); l != nil {
			all = append(all, l)
		}
	}
	return all
}

// settled says whether all lanes are there, and know their paths.
func (b *bundle) settled() bool {
	for i := range b.lanes {
		if l := b.lanes[i].Load(); l == nil || !l.taught.Load() {
			return false
		}
	}
	return true
}

// promise has a block of any size sent, if the peer may hold one more.
func (b *bundle) promise() bool {
	if b.ahead.Add(blockMax) <= bundleAhead {
		return true
	}
	b.ahead.Add(-blockMax)
	return false
}

// send sends a block in pieces. It waits for lanes that are slow only if the others carry
// too few of them.
func (b *bundle) send(k block, data []byte) error {
	s := shard{block: k, size: len(data), shape: shapeOf(len(data), len(b.lanes))}
	pieces, err := b.codecs.cut(data, s.shape)
	if err != nil {
		return fmt.Errorf("cut a block: %w", err)
	}
	lanes, spare := b.live(), s.shape.parity
	if len(lanes) < s.shape.data {
		spare = -1
	}
	for s.index = 0; s.index < len(pieces) && spare >= 0; s.index++ {
		piece := append(s.append(make([]byte, 0, shardBytes+len(pieces[s.index]))), pieces[s.index]...)
		if lanes[(int(k.number)+s.index)%len(lanes)].offer(piece, spare == 0) {
			b.extra.piece(s, len(piece))
		} else {
			spare--
		}
	}
	if spare < 0 {
		b.fail(errBundle)
		return errBundle
	}
	return nil
}

// ended notes that a lane is over: what it had on its way may never come.
func (b *bundle) ended(i int, l *lane) {
	b.lanes[i].CompareAndSwap(l, nil)
	b.mu.Lock()
	b.lost = true
	b.mu.Unlock()
	b.arrived.Broadcast()
	if len(b.live()) < shapeOf(blockMax, len(b.lanes)).data {
		b.fail(errBundle)
	}
}

// add takes a piece, and keeps it. Those of blocks that are whole, and of connections that
// are over, were on their way.
func (b *bundle) add(s shard, piece []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.users[s.connection]
	if b.err != nil || u == nil || s.number <= u.taken {
		return b.err
	}
	if s.number > u.taken+blocksAhead {
		return fmt.Errorf("block %d after %d: %w", s.number, u.taken, transport.ErrProtocol)
	}
	a := u.blocks[s.number]
	if a == nil {
		if b.room -= s.size; b.room < 0 {
			return fmt.Errorf("more than %d bytes of blocks: %w", bundleRoom, transport.ErrProtocol)
		}
		a = &arrival{shard: s, pieces: make([][]byte, s.shape.data+s.shape.parity)}
		u.blocks[s.number] = a
	}
	if a.size != s.size || a.shape != s.shape {
		return fmt.Errorf("block %d of two sizes: %w", s.number, transport.ErrProtocol)
	}
	if a.whole || a.pieces[s.index] != nil {
		return nil
	}
	a.pieces[s.index] = piece
	if a.have++; a.have < a.shape.data {
		return nil
	}
	if err := b.codecs.join(a.pieces, a.shape); err != nil {
		return fmt.Errorf("join a block: %w", err)
	}
	a.whole = true
	b.arrived.Broadcast()
	return nil
}

// take waits for a block, and gives its bytes.
func (b *bundle) take(k block) (net.Buffers, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var late *time.Timer
	defer func() {
		if late != nil {
			late.Stop()
		}
	}()
	for {
		u := b.users[k.connection]
		switch {
		case b.err != nil:
			return nil, b.err
		case u == nil:
			return nil, ErrClosed
		case k.number != u.taken+1:
			return nil, fmt.Errorf("block %d after %d: %w", k.number, u.taken, transport.ErrProtocol)
		}
		if a := u.blocks[k.number]; a != nil && a.whole {
			u.taken++
			delete(u.blocks, k.number)
			b.room += a.size
			return a.bytes(), nil
		}
		if b.lost && late == nil {
			late = time.AfterFunc(blockLate, func() { b.fail(errBundle) })
		}
		b.arrived.Wait()
	}
}

// bytes of a block that is whole.
func (a *arrival) bytes() (all net.Buffers) {
	left := a.size
	for _, piece := range a.pieces[:a.shape.data] {
		piece = piece[:min(len(piece), left)]
		left -= len(piece)
		all = append(all, piece)
	}
	return all
}

// lane is a connection of a bundle.
type lane struct {
	conn  net.Conn
	leg   leg
	queue chan []byte
	ended chan struct{}
	once  sync.Once
	// taught says that this side knows the lane's path.
	taught atomic.Bool
}

// laneAhead is how many pieces wait at a lane: more are better sent on others.
const laneAhead = 64

func newLane(conn net.Conn) *lane {
	return &lane{conn: conn, leg: legOf(conn), queue: make(chan []byte, laneAhead), ended: make(chan struct{})}
}

func (l *lane) end() {
	l.once.Do(func() {
		close(l.ended)
		_ = l.conn.Close() // it is over either way
	})
}

// offer has a piece sent. It says whether it will be: without waiting, not where others
// wait already.
func (l *lane) offer(piece []byte, wait bool) bool {
	select {
	case l.queue <- piece:
		return true
	case <-l.ended:
		return false
	default:
	}
	if !wait {
		return false
	}
	select {
	case l.queue <- piece:
		return true
	case <-l.ended:
		return false
	}
}

// write sends pieces until the lane ends; what waits goes in one record of TLS.
func (l *lane) write() {
	const record = 16 << 10
	buf := make([]byte, 0, 2*record)
	for {
		select {
		case piece := <-l.queue:
			buf = append(buf[:0], piece...)
		case <-l.ended:
			return
		}
		for more := true; more && len(buf) < record; {
			select {
			case piece := <-l.queue:
				buf = append(buf, piece...)
			default:
				more = false
			}
		}
		if _, err := l.conn.Write(buf); err != nil {
			l.end()
			return
		}
		l.leg.wrote()
	}
}

// read takes pieces until the lane ends, and says why it did.
func (l *lane) read(b *bundle) error {
	defer l.end()
	for {
		s, err := readShard(l.conn)
		if err != nil {
			return err
		}
		if s.shape.data == 0 { // padding
			if _, err := io.CopyN(io.Discard, l.conn, int64(s.size)); err != nil {
				return err
			}
			continue
		}
		piece := make([]byte, s.length())
		if _, err := io.ReadFull(l.conn, piece); err != nil {
			return err
		}
		take := b.add
		if s.isCopy() {
			take = b.copied
		}
		if err := take(s, piece); err != nil {
			return err
		}
	}
}
