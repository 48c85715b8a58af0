package userspace

// A byte: client's socket → scratch → server's socket, or the other way. scratch is the
// loop's, so a connection that is idle holds no buffer. What the other side does not take
// waits in a buffer of the connection, and nothing more is read until it has gone: so a
// slow reader is felt by the writer. A side that fills scratch again and again is bulk:
// its bytes go by a pipe (splice), and are never copied to this process.
//
// Epoll tells edges, so a side remembers that it can be read or written until a call says
// otherwise. Only the loop of the connection touches it.

import (
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
	"skerry.dev/skerry/proxy/dataplane"
)

const (
	// scratchSize is how much is read at once.
	scratchSize = 64 << 10
	// stepsMost bounds what one side may move before others have their turn.
	stepsMost = 16
)

// conn is a connection of a client with that of its endpoint.
type conn struct {
	client, server side
	loop           *loop
	choice         dataplane.Choice
	chosen         bool // and not Done
	tries          int
	began          time.Duration // when the endpoint was called
	older, newer   *conn         // of those that are being called
	asked          bool          // the client has said something
	answered       bool          // the endpoint has
	closed         bool
	ended          func() // is told of the end, where somebody waits for it
}

// side is one of the two sockets, and what is on its way from it to the other.
type side struct {
	fd       int
	conn     *conn
	to       *side
	up       bool // connected
	readable bool
	writable bool
	hung     bool // epoll told that no more will come, or that it broke
	urgent   bool // it has said something urgent (tcp(7)): a read ends there, though more follows
	broke    bool // it took no more
	last     bool // and not that it broke: its end is behind what is there to be read
	ended    bool // its end was read
	passed   bool // and told to the other side

	waitsTurn bool // it is among those that have more to move

	waiting []byte
	bulk
}

// pump moves what can be moved from s, and says whether there may be more at once.
func (s *side) pump() (more bool) {
	l := s.conn.loop
	for range stepsMost {
		if !s.flush() || s.conn.closed {
			return false
		}
		if !s.readable || s.ended || !s.to.up {
			return false
		}
		if s.full >= bulkAfter && !s.pull() {
			return false
		}
		if s.pipe != nil {
			continue
		}
		n, errno := socket.Receive(s.fd, l.scratch)
		switch {
		case errno == unix.EAGAIN:
			s.readable, s.full = false, 0
			return false
		case errno == unix.EINTR:
			continue
		case errno != 0:
			s.conn.abort(s)
			return false
		case n == 0:
			s.end()
			return false
		}
		s.count(n)
		if n == len(l.scratch) {
			s.full++
		} else {
			// Less than was asked for: no more is there, unless its end is.
			s.full = 0
			s.readable = s.hung || s.urgent
		}
		if !s.pass(l.scratch[:n]) {
			return false
		}
	}
	return true
}

// pass writes to the other side; what it does not take waits. It says whether all went. The end of
// a side, where it is read next, leaves with what came before it.
func (s *side) pass(b []byte) bool {
	send := socket.Send
	if s.last && len(b) < scratchSize {
		send = socket.SendLast
	}
	for len(b) > 0 {
		n, errno := send(s.to.fd, b)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			s.to.writable = false
			s.waiting = append(s.conn.loop.buffer(), b...)
			return false
		case errno != 0:
			s.to.takesNoMore()
			return false
		default:
			b = b[n:]
		}
	}
	return true
}

// flush writes what waits. It says whether nothing does any more.
func (s *side) flush() bool {
	if s.pipe != nil && s.pipe.holds > 0 {
		return s.push()
	}
	if len(s.waiting) == 0 {
		return true
	}
	if !s.to.writable {
		return false
	}
	n, errno := socket.Send(s.to.fd, s.waiting)
	switch {
	case errno == unix.EINTR:
		return s.flush()
	case errno == unix.EAGAIN:
		s.to.writable = false
		return false
	case errno != 0:
		s.to.takesNoMore()
		return false
	case n < len(s.waiting):
		s.waiting = s.waiting[:copy(s.waiting, s.waiting[n:])]
		s.to.writable = false
		return false
	}
	s.conn.loop.giveBuffer(s.waiting)
	s.waiting = nil
	s.finish()
	return true
}

// count counts what was read.
func (s *side) count(n int) {
	c := s.conn
	if s == &c.client {
		c.asked = true
		c.loop.counts.in.Add(int64(n))
		return
	}
	c.loop.counts.out.Add(int64(n))
	if !c.answered {
		c.answered = true
		c.loop.plane.chooser.Answered(&c.choice)
	}
}

// end has read a side to its end. An endpoint that has answered is done with the connection as
// soon as either side has said all, though the other has yet to: who asks again at once does
// not find its own last request in flight there.
func (s *side) end() {
	s.ended = true
	if c := s.conn; c.answered {
		c.done(dataplane.Served)
	}
	s.finish()
}

// finish passes the end of a side on, once all that came before it has gone, and closes
// the connection when both sides have ended.
func (s *side) finish() {
	if !s.ended || s.passed || len(s.waiting) > 0 || s.pipe != nil && s.pipe.holds > 0 {
		return
	}
	s.passed = true
	c := s.conn
	if s.to.passed {
		c.close(c.outcome(s))
		return
	}
	endWrites(s.to.fd)
}

// outcome is that of a connection which both sides have ended, one of them last. An endpoint
// that ends it without a word to one who asked has failed, unless he had said all: there are
// protocols without an answer.
func (c *conn) outcome(last *side) dataplane.Outcome {
	switch {
	case c.answered:
		return dataplane.Served
	case c.asked && last == &c.client:
		return dataplane.Failed
	default:
		return dataplane.Gone
	}
}

// takesNoMore ends a connection one of whose sides broke as it was written to, once what it had
// said before is passed on: one that refuses an upload says so, and closes.
func (s *side) takesNoMore() {
	c := s.conn
	if !s.broke && !c.closed {
		s.broke, s.readable = true, true
		c.loop.move(s)
	}
	c.abort(s)
}

// abort ends a connection one of whose sides broke: the other sees a reset.
func (c *conn) abort(broke *side) {
	if c.closed {
		return
	}
	c.loop.counts.reset.Add(1)
	outcome := dataplane.Served
	switch {
	case !c.answered && broke == &c.server:
		outcome = dataplane.Failed
	case !c.answered:
		outcome = dataplane.Gone
	}
	lingerNot(broke.to.fd)
	c.close(outcome)
}
