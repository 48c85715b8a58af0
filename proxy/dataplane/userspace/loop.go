package userspace

// An event: epoll → the side that it is of → what it now can do → pump both ways. Sides
// are found by their descriptor. A connection that is closed within a batch of events may
// have more events in it; its descriptors are closed after the batch, so that none of
// them means another connection by then.

import (
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/proxy/dataplane"
)

// eventsMost is how many events are taken at once, acceptsMost how many connections of
// one of them.
const (
	eventsMost  = 256
	acceptsMost = 64
)

// loop is one goroutine and its connections.
type loop struct {
	plane *Plane
	*poller
	wake      int // an eventfd
	kept      int // for one connection more than there are descriptors
	listeners map[int]netip.AddrPort
	sides     []*side // by descriptor
	scratch   []byte
	spares
	turn
	crowd
	datagrams
	told
	counts counters
	ending atomic.Int64 // until when, by the clock of now; 0 is not
	start  time.Time
}

// spares are what connections need now and then, and give back.
type spares struct {
	pipes   []*pipe
	buffers [][]byte
}

// turn is what is to be done before the loop sleeps again, or by a time.
type turn struct {
	busy    []*side // which may have more to move
	late    []*side // which epoll does not tell all of
	lateAt  time.Duration
	wasBusy []*side // those of the last turn, whose memory the next takes
	wasLate []*side
	closing []*conn // in this batch
	first   *conn   // the one that is being called for longest
	last    *conn
}

// datagrams are the fronts of UDP, and who is served there.
type datagrams struct {
	fronts    map[int]*front
	answering map[int]*session // by the descriptor of its endpoint
	sessions  list.List        // who has been silent for longest first
	left      []int            // descriptors of those that have ended in this batch
	swept     time.Duration
}

// told is what others want done: by the loop, since all that it has is its own.
type told struct {
	mu     sync.Mutex
	what   []func(*loop)
	closed bool
}

// tell has the loop do something as soon as it can; not once it is closed.
func (l *loop) tell(what func(*loop)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.what = append(l.what, what)
	_, _ = unix.Write(l.wake, binary.NativeEndian.AppendUint64(nil, 1)) // it takes this until 2^64 are told
	return true
}

// obey does what it was told.
func (l *loop) obey() {
	l.mu.Lock()
	what := l.what
	l.what = nil
	l.mu.Unlock()
	for _, do := range what {
		do(l)
	}
}

func newLoop(p *Plane) (*loop, error) {
	poller, err := newPoller()
	if err != nil {
		return nil, err
	}
	l := &loop{plane: p, poller: poller, wake: -1, kept: keep(), listeners: map[int]netip.AddrPort{}, scratch: make([]byte, scratchSize), start: time.Now()}
	l.fronts, l.answering = map[int]*front{}, map[int]*session{}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("make eventfd: %w", err), l.close())
	}
	if err := l.watch(l.wake, unix.EPOLLIN); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// now is the time since the loop began.
func (l *loop) now() time.Duration { return time.Since(l.start) }

// listen takes connections at an address, and says which it is.
func (l *loop) listen(at netip.AddrPort) (netip.AddrPort, error) {
	fd, bound, err := listenTCP(at)
	if err != nil {
		return at, err
	}
	l.listeners[fd] = bound
	return bound, l.watch(fd, unix.EPOLLIN)
}

// end has run accept nothing more and return after at most so long.
func (l *loop) end(drain time.Duration) {
	l.ending.Store(int64(max(1, l.now()+drain)))
	l.tell(func(*loop) {})
}

// run carries until it is ended.
func (l *loop) run() error {
	events := make([]unix.EpollEvent, eventsMost)
	for {
		n, err := l.await(events)
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			l.event(int(e.Fd), e.Events)
		}
		l.turns()
		l.lookLate()
		l.expire()
		l.sweep()
		l.closeAll()
		if until := l.ending.Load(); until != 0 {
			l.stopListening()
			if l.counts.open.Load() == 0 || l.now() >= time.Duration(until) {
				return nil
			}
		}
	}
}

// await is what has happened, once something has or it is time; at once where there is more to
// do.
func (l *loop) await(events []unix.EpollEvent) (int, error) {
	if len(l.busy) > 0 {
		return l.look(events)
	}
	return l.wait(events, l.until())
}

// until is when something is to be done whatever happens; zero is never.
func (l *loop) until() time.Time {
	next := time.Duration(0)
	sooner := func(at time.Duration) {
		if next == 0 || at < next {
			next = at
		}
	}
	if l.first != nil {
		sooner(l.first.began + l.plane.config.ConnectTimeout)
	}
	if len(l.late) > 0 {
		sooner(l.lateAt)
	}
	if at := time.Duration(l.ending.Load()); at != 0 {
		sooner(at)
	}
	if l.sessions.Len() > 0 {
		sooner(l.swept + sweepEvery)
	}
	if next == 0 {
		return time.Time{}
	}
	return l.start.Add(next)
}

// event is something that a descriptor can do now.
func (l *loop) event(fd int, can uint32) {
	if fd >= len(l.sides) || l.sides[fd] == nil {
		l.rare(fd)
		return
	}
	s := l.sides[fd]
	c := s.conn
	if c.closed {
		return
	}
	s.urgent = s.urgent || can&unix.EPOLLPRI != 0
	s.readable = s.readable || can&(unix.EPOLLIN|unix.EPOLLPRI|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	s.writable = s.writable || can&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0
	s.hung = s.hung || can&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	s.last = s.hung && can&(unix.EPOLLHUP|unix.EPOLLERR) == 0
	if !c.server.up {
		c.meet(s)
		return
	}
	if s == &c.client && s.passed && can&unix.EPOLLERR != 0 { // it had ended what it says, and is gone
		c.abort(s)
		return
	}
	c.carry()
}

// rare is an event of what is no connection.
func (l *loop) rare(fd int) {
	if at, ok := l.listeners[fd]; ok {
		l.accept(fd, at)
	} else if f := l.fronts[fd]; f != nil {
		l.forward(f)
	} else if s := l.answering[fd]; s != nil {
		l.reply(s)
	} else if fd == l.wake {
		_, _ = unix.Read(l.wake, l.scratch[:8]) // so that it sleeps again
		l.obey()
	}
}

// carry moves what can be moved, both ways.
func (c *conn) carry() {
	c.loop.move(&c.client)
	c.loop.move(&c.server)
}

// move pumps a side, which has another turn if it has more.
func (l *loop) move(s *side) {
	if !s.conn.closed && s.pump() && !s.waitsTurn {
		s.waitsTurn = true
		l.busy = append(l.busy, s)
	}
}

// turns has those that had more go on.
func (l *loop) turns() {
	busy := l.busy
	l.busy, l.wasBusy = l.wasBusy[:0], busy
	for _, s := range busy {
		s.waitsTurn = false
		l.move(s)
	}
}

// What epoll tells of a side: that its peer leaves, and all. Of a client it tells no more than
// the one until its endpoint is there, which is called meanwhile.
const (
	eventsLeaving = unix.EPOLLRDHUP | unix.EPOLLET
	eventsAll     = unix.EPOLLIN | unix.EPOLLPRI | unix.EPOLLOUT | eventsLeaving
)

// add has epoll tell of a side.
func (l *loop) add(s *side, events uint32) error {
	for s.fd >= len(l.sides) {
		l.sides = append(l.sides, make([]*side, max(64, len(l.sides)))...)
	}
	err := l.watch(s.fd, events)
	if err == nil {
		l.sides[s.fd] = s
	}
	return err
}

// callNext calls an endpoint for the connection, or refuses it.
func (c *conn) callNext() {
	l := c.loop
	for c.tries < l.plane.config.Tries {
		c.tries++
		choice, err := l.plane.chooser.Choose(c.choice.Call)
		if err != nil {
			break
		}
		choice.Call = c.choice.Call
		c.choice, c.chosen = choice, true
		fd, err := call(choice.Endpoint, waits(c.client.fd), l.plane.config.Mark)
		if err == nil {
			c.server = side{fd: fd, conn: c, to: &c.client}
			if err = l.add(&c.server, eventsAll); err == nil {
				l.called(c)
				return
			}
			release(fd)
		}
		c.untaken(blame(err))
	}
	l.counts.refused.Add(1)
	c.server.fd = -1
	lingerNot(c.client.fd)
	c.close(dataplane.Failed)
}

// meet is an event while the endpoint is being called.
func (c *conn) meet(s *side) {
	if s == &c.client {
		if s.hung && c.clientLeft() {
			c.abort(s) // whose endpoint may have taken the call meanwhile
		}
		return
	}
	if !s.writable {
		return
	}
	c.loop.reached(c)
	if pending(s.fd) != 0 {
		c.unreached()
		return
	}
	s.up = true
	if err := c.loop.change(c.client.fd, eventsAll); err != nil {
		c.abort(&c.client)
		return
	}
	c.carry()
}

// clientLeft says whether the client has gone, and not only ended what it says.
func (c *conn) clientLeft() bool {
	_, err := unix.Getpeername(c.client.fd)
	return err != nil
}

// unreached tries another endpoint.
func (c *conn) unreached() {
	l := c.loop
	l.counts.unreached.Add(1)
	l.sides[c.server.fd] = nil
	release(c.server.fd)
	c.server.fd = -1
	c.untaken(dataplane.Failed)
	c.callNext()
}

// untaken has the endpoint that was called not be chosen again for the connection.
func (c *conn) untaken(o dataplane.Outcome) {
	c.done(o)
	c.choice.Tried = append(c.choice.Tried, c.choice.Endpoint)
}

// called has the connection wait for its endpoint, reached no longer.
func (l *loop) called(c *conn) {
	c.began = l.now()
	c.older, c.newer = l.last, nil
	if l.last != nil {
		l.last.newer = c
	} else {
		l.first = c
	}
	l.last = c
}

func (l *loop) reached(c *conn) {
	if c.older != nil {
		c.older.newer = c.newer
	} else if l.first == c {
		l.first = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else if l.last == c {
		l.last = c.older
	}
	c.older, c.newer = nil, nil
}

// expire has those that were called for too long try another.
func (l *loop) expire() {
	for l.first != nil && l.now()-l.first.began >= l.plane.config.ConnectTimeout {
		c := l.first
		l.reached(c)
		c.unreached()
	}
}

// done tells the chooser what came of its choice.
func (c *conn) done(o dataplane.Outcome) {
	if c.chosen {
		c.chosen = false
		c.loop.plane.chooser.Done(&c.choice, o)
	}
}

// close ends a connection. Its descriptors are closed with the batch.
func (c *conn) close(o dataplane.Outcome) {
	if c.closed {
		return
	}
	c.closed = true
	c.loop.reached(c)
	c.done(o)
	c.loop.closing = append(c.loop.closing, c)
}

// closeAll closes what has ended in this batch.
func (l *loop) closeAll() {
	for _, c := range l.closing {
		for _, s := range []*side{&c.client, &c.server} {
			if s.pipe != nil {
				l.givePipe(s.pipe)
			}
			if s.waiting != nil {
				l.giveBuffer(s.waiting)
			}
			if s.fd >= 0 {
				l.sides[s.fd] = nil
				release(s.fd)
			}
		}
		l.counts.open.Add(-1)
		if c.ended != nil {
			c.ended()
		}
	}
	l.closing = l.closing[:0]
	for _, fd := range l.left {
		release(fd)
	}
	l.left = l.left[:0]
}

// stopListening takes what was called before, and nothing more.
func (l *loop) stopListening() {
	for fd, at := range l.listeners {
		for l.accept(fd, at) {
		}
		_ = unix.Close(fd)
	}
	clear(l.listeners)
	for fd := range l.fronts {
		l.closeFront(fd)
	}
}

// close gives back all descriptors, those of open connections among them.
func (l *loop) close() error {
	l.obey()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	for _, s := range l.sides {
		if s != nil {
			s.conn.close(dataplane.Served)
		}
	}
	l.stopListening()
	l.closeAll()
	for _, p := range l.pipes {
		p.close()
	}
	err := l.poller.close()
	for _, fd := range []int{l.wake, l.kept} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
