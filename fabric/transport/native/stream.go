package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/fabric/transport"
	"skerry.dev/skerry/internal/socket"
)

// stream is an application's connection on its way between two gateways; this side's
// socket is that of the application or that of the service.
type stream struct {
	id uint32
	c  *connection
	// traffic is set before any frame of the stream is read or written.
	traffic *transport.Traffic
	begun   time.Time
	heard   atomic.Bool // a frame of it has come

	mu     sync.Mutex
	app    transport.Conn // nil until it is joined
	joined chan struct{}  // closed when app is there, or never will be
	// accepted is closed when the peer says that the service has accepted.
	accepted chan struct{}
	directions
	err   error // why it was broken off
	ended chan struct{}

	sent int64 // bytes of the socket's; pump's alone once it runs
	in   inflow
}

// directions of a stream: mine and theirs are those that are open yet, and the end of mine
// may have been said a moment before.
type directions struct{ mine, theirs, said bool }

func newStream(id uint32, c *connection) *stream {
	return &stream{id: id, c: c, begun: time.Now(), directions: directions{mine: true, theirs: true}, joined: make(chan struct{}), accepted: make(chan struct{}), ended: make(chan struct{})}
}

// join gives the stream its socket. It says whether the stream is still wanted.
func (s *stream) join(app transport.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.app = app
	close(s.joined)
	return true
}

// refuse ends a stream that has no socket, and tells the peer why.
func (s *stream) refuse(code transport.Code) {
	if s.fail(&transport.Refusal{Code: code}) {
		s.c.reset(s.id, code)
	}
}

// confirm tells the peer that the service has accepted.
func (s *stream) confirm() {
	var b [headerBytes]byte
	if err := s.c.out(kindAccept, s.id, b[:]); err != nil {
		s.c.end(err)
	}
}

// peerAccepted notes it. The peer says so once.
func (s *stream) peerAccepted() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.accepted:
		return fmt.Errorf("stream %d accepted twice: %w", s.id, transport.ErrProtocol)
	default:
		close(s.accepted)
		return nil
	}
}

// pump sends what the socket says until that ends, then says so. It returns when this
// direction of the stream is over.
func (s *stream) pump() {
	var b burst
	for {
		buf, n, err := s.c.buffers.readWhenReady(s.app)
		if n > 0 && s.saysAll(n) {
			header{kindData, n, s.id}.put(buf.b[:])
			s.finish(buf.b[:headerBytes+n])
			s.traffic.ToPeer(n)
			s.c.buffers.put(buf)
			return
		}
		if n > 0 {
			now := time.Now()
			n, err = s.send(buf.b[:headerBytes+n], &b, now)
			s.sent += int64(n)
			b.said(time.Now())
			s.traffic.ToPeer(n)
			s.c.share(now, b.lasts(now))
		}
		s.c.buffers.put(buf)
		switch {
		case n > 0 && err != nil:
			s.c.end(err)
			s.fail(err) // of one whose peer has ended the connection knows no more
			return
		case errors.Is(err, io.EOF):
			s.finish(nil)
			return
		case err != nil:
			s.refuse(transport.Broken)
			return
		}
	}
}

// send sends bytes of the stream that stand behind room for a header: where a bundle is in
// use, those of a burst in pieces, and few of them twice. It says how many were sent.
func (s *stream) send(buf []byte, b *burst, now time.Time) (int, error) {
	u, data := s.c.bundled.Load(), buf[headerBytes:]
	p := b.add(len(data), now)
	if p != goesOn && len(data) >= blockLeast && u.usable() && (p == swells || s.c.leg.narrow(len(data))) && u.promise() {
		return s.sendBlock(u, data, b, now)
	}
	if err := s.c.out(kindData, s.id, buf); err != nil {
		return len(data), err
	}
	if p == begins && len(data) <= copyMost-offsetBytes && u.usable() {
		u.copy(s.id, copyOfData, binary.BigEndian.AppendUint64(nil, uint64(s.sent)), data)
	}
	return len(data), nil
}

// sendBlock sends bytes as a block, with what more there is to read where they fill a buffer.
func (s *stream) sendBlock(u *bundled, data []byte, b *burst, now time.Time) (n int, err error) {
	if len(data) < payloadMax {
		return len(data), u.block(s.id, data)
	}
	all := s.c.buffers.blocks.Get().(*[blockMax]byte)
	defer s.c.buffers.blocks.Put(all)
	more := readReady(s.app, all[copy(all[:], data):])
	b.add(more, now)
	n = len(data) + more
	return n, u.block(s.id, all[:n])
}

// phase is how far a burst has come: most streams say no more than its begin, and by one
// that lasts TCP's own way to share a path is the better neighbour.
type phase int

const (
	begins phase = iota
	swells
	goesOn
)

// burst is what a stream has said without a pause.
type burst struct {
	bytes       int64
	begun, last time.Time
}

// burstMost is what a burst has at most; what says more lasts.
const burstMost = 8 << 20

// add says what more bytes are of.
func (b *burst) add(n int, now time.Time) phase {
	const pause, least = 200 * time.Millisecond, 64 << 10
	if now.Sub(b.last) > pause {
		b.bytes, b.begun = 0, now
	}
	before := b.bytes
	b.bytes, b.last = b.bytes+int64(n), now
	switch {
	case b.lasts(now):
		return goesOn
	case before < least:
		return begins
	}
	return swells
}

// said notes that they are sent: to wait for the path is no pause.
func (b *burst) said(now time.Time) { b.last = now }

// lasts says whether it is more than a burst.
func (b *burst) lasts(now time.Time) bool {
	const long = 2 * time.Second
	return b.bytes >= burstMost || now.Sub(b.begun) > long
}

// saysAll says whether bytes that fill no frame are the first that the socket says, and the
// last: of a service that answers and closes, and does not wait for the client to do so. Where
// bytes go twice their end goes by itself.
func (s *stream) saysAll(n int) bool {
	return s.sent == 0 && n <= payloadMax-headerBytes && !s.c.bundled.Load().usable() && atEnd(s.app)
}

// finish tells the peer that no more bytes come, behind a last frame that has some, or none; who
// was called and has passed on all, that it is done. Where the client's end comes while this one
// is written, the second of both tells so, for the peer takes it to have all by then.
func (s *stream) finish(last []byte) {
	k := kindFIN
	s.mu.Lock()
	s.said = true
	if s.c.open != nil && !s.theirs {
		k = kindDone
	}
	s.mu.Unlock()
	frames := append(last, make([]byte, headerBytes)...)
	header{k, 0, s.id}.put(frames[len(last):])
	if err := s.c.write(frames); err != nil {
		s.c.end(err)
		s.fail(err)
		return
	}
	done := false
	s.close(func() {
		s.mine = false
		done = s.c.open != nil && k == kindFIN && !s.theirs && s.err == nil
	})
	if done {
		s.c.tell(kindDone, s.id, nil)
	}
}

// peerFinished passes the end of the peer's direction on.
func (s *stream) peerFinished() {
	<-s.joined
	if s.app != nil {
		_ = s.app.CloseWrite() // of a socket that is gone pump tells
	}
	done := false
	s.close(func() {
		s.theirs = false
		done = s.c.open != nil && !s.mine && s.err == nil
	})
	if done {
		go s.c.tell(kindDone, s.id, nil) // who reads never waits to write
	}
}

// close ends a direction, and with the second one the stream.
func (s *stream) close(direction func()) {
	s.mu.Lock()
	direction()
	mine, theirs, broken := s.mine, s.theirs, s.err != nil
	s.mu.Unlock()
	if broken { // fail has done all
		return
	}
	if !mine && !theirs {
		_ = s.app.Close() // all was said
		close(s.ended)
	}
	s.c.changed(s, mine, theirs)
}

// deliver writes bytes of the peer to the socket.
func (s *stream) deliver(length int) error {
	<-s.joined
	s.in.order.Lock()
	defer s.in.order.Unlock()
	if n := s.in.again(length); n > 0 {
		if err := s.c.skip(n); err != nil {
			return err
		}
		length -= n
	}
	buf := s.c.buffers.get()
	defer s.c.buffers.put(buf)
	for length > 0 {
		n, err := s.c.conn.Read(buf.b[:min(length, len(buf.b))])
		if err != nil {
			return err
		}
		length -= n
		if s.app == nil {
			continue
		}
		if _, err := s.app.Write(buf.b[:n]); err != nil {
			if s.fail(&transport.Refusal{Code: transport.Broken}) {
				go s.c.reset(s.id, transport.Broken) // who reads never waits to write
			}
			return s.c.skip(length)
		}
		s.in.gave(n)
		s.traffic.ToSocket(n)
	}
	return nil
}

// deliverBlock writes bytes that came in pieces to the socket.
func (s *stream) deliverBlock(bytes net.Buffers) {
	<-s.joined
	if s.app == nil {
		return
	}
	s.in.order.Lock()
	defer s.in.order.Unlock()
	n, err := bytes.WriteTo(s.app)
	s.in.gave(int(n))
	s.traffic.ToSocket(int(n))
	if err != nil && s.fail(&transport.Refusal{Code: transport.Broken}) {
		go s.c.reset(s.id, transport.Broken) // who reads never waits to write
	}
}

// peerReset ends a stream that the peer has broken off. It says whether it was not over.
func (s *stream) peerReset(code transport.Code) bool { return s.fail(&transport.Refusal{Code: code}) }

// breakOff ends a stream whose connection is gone; but not one of which only its end is being
// told, as the peer ends the connection by that word: finish knows what became of it.
func (s *stream) breakOff(err error) {
	s.mu.Lock()
	ending := s.said && !s.theirs
	s.mu.Unlock()
	if !ending {
		s.fail(err)
	}
}

// fail ends the stream by resetting the socket. It says whether this was not done before.
func (s *stream) fail(err error) bool {
	s.mu.Lock()
	first := s.err == nil && (s.mine || s.theirs)
	if first {
		s.err = err
		if s.app == nil {
			close(s.joined)
		} else {
			transport.Reset(s.app)
		}
		s.mine, s.theirs = false, false
		close(s.ended)
	}
	s.mu.Unlock()
	if first {
		s.c.changed(s, false, false)
		s.c.awaitDone(s)
	}
	return first
}

// wait returns when the stream is over, with why it broke.
func (s *stream) wait() error {
	<-s.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// buffer has room for a frame.
type buffer struct {
	b [headerBytes + payloadMax]byte
}

// buffers are those that are not in use. No stream has one while it waits.
type buffers struct{ pool, blocks sync.Pool }

func newBuffers() *buffers {
	return &buffers{
		pool:   sync.Pool{New: func() any { return new(buffer) }},
		blocks: sync.Pool{New: func() any { return new([blockMax]byte) }},
	}
}

func (b *buffers) get() *buffer { return b.pool.Get().(*buffer) }

func (b *buffers) put(buf *buffer) {
	if buf != nil {
		b.pool.Put(buf)
	}
}

// readWhenReady reads from a socket, behind room for a frame's header, into a buffer that
// is taken when there is something to read.
func (b *buffers) readWhenReady(app transport.Conn) (buf *buffer, n int, err error) {
	raw, err := app.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	var failed syscall.Errno
	err = raw.Read(func(fd uintptr) bool {
		if buf == nil {
			buf = b.get()
		}
		n, failed = socket.Receive(int(fd), buf.b[headerBytes:])
		for failed == unix.EINTR {
			n, failed = socket.Receive(int(fd), buf.b[headerBytes:])
		}
		if failed == unix.EAGAIN {
			b.put(buf)
			buf = nil
			return false
		}
		return true
	})
	switch {
	case err != nil:
		return buf, 0, err
	case failed != 0: // n is -1
		return buf, 0, failed
	case n == 0:
		return buf, 0, io.EOF
	}
	return buf, n, nil
}

// readReady reads what there is at once. Of an end or an error, whoever reads next is told.
func readReady(app transport.Conn, into []byte) (n int) {
	raw, err := app.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // of a socket that is closed there is nothing to read
		if queued, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ); err == nil && queued > 0 {
			n, _ = socket.Receive(int(fd), into)
		}
	})
	return max(0, n)
}

// atEnd says whether reading would tell that all was said. It reads nothing: a kernel tells of a
// reset once.
func atEnd(app transport.Conn) (over bool) {
	raw, err := app.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { // of a socket that is closed whoever reads next is told
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if n, err := unix.Poll(p, 0); n != 1 || err != nil || p[0].Revents&unix.POLLRDHUP == 0 || p[0].Revents&unix.POLLERR != 0 {
			return
		}
		queued, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ)
		over = queued == 0 && err == nil
	})
	return over
}
