package userspace

// A datagram: front's socket → the session of who sent it → endpoint, and back the same
// way. A front is a port of a Service: connection tracking tells what a connection of TCP
// was meant for, but not a datagram, so each has a socket of its own. A session is a
// client of a front; it has a connected socket, so that answers find it and a refusal is
// told. It counts as in flight until the first answer, and lives until it is idle, its
// endpoint is gone, or there are too many and nobody has been silent for longer.
//
// All of it belongs to the first loop.

import (
	"container/list"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
	"skerry.dev/skerry/proxy/dataplane"
)

const (
	// sessionIdle is how long a session without datagrams is kept, as connection tracking
	// keeps one that was answered (nf_conntrack_udp_timeout_stream).
	sessionIdle = 120 * time.Second
	// sessionsMost bounds them: each takes a descriptor.
	sessionsMost = 20_000
	// sweepEvery is how often idle ones are looked for.
	sweepEvery = time.Second
	// datagramsMost bounds what is taken from one socket before others have their turn.
	datagramsMost = 64
)

// A Front is where datagrams for a target arrive.
type Front struct {
	// Target is what they were meant for, as the Chooser is told.
	Target netip.AddrPort
	// At is where they arrive: with port 0 any that is free, which OpenFront gives.
	At netip.AddrPort
}

// front is a Front that is open.
type front struct {
	Front
	fd       int
	sessions map[netip.AddrPort]*session
	// refused are endpoints that have refused a client, until the next sweep.
	refused map[netip.AddrPort][]netip.AddrPort
}

// refusedMost bounds how many clients of a front that is of.
const refusedMost = 1000

// session is a client of a front.
type session struct {
	fd      int
	front   *front
	client  netip.AddrPort
	choice  dataplane.Choice
	chosen  bool // and not Done
	lastUse time.Duration
	place   *list.Element // among all, by lastUse
}

// OpenFront carries datagrams that arrive at a front, and says where that is. Run, or
// Close, closes it.
func (p *Plane) OpenFront(f Front) (netip.AddrPort, error) {
	fd, err := unix.Socket(socket.Family(f.At.Addr()), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return f.At, fmt.Errorf("open front: %w", err)
	}
	err = socket.Bind(fd, f.At)
	if err == nil {
		f.At, err = socket.LocalOf(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return f.At, fmt.Errorf("open front at %s: %w", f.At, err)
	}
	if !p.loops[0].tell(func(l *loop) {
		l.fronts[fd] = &front{Front: f, fd: fd, sessions: map[netip.AddrPort]*session{}, refused: map[netip.AddrPort][]netip.AddrPort{}}
		if l.watch(fd, unix.EPOLLIN) != nil {
			l.closeFront(fd)
		}
	}) {
		_ = unix.Close(fd)
		return f.At, ErrClosed
	}
	return f.At, nil
}

// ErrClosed is of a plane that carries nothing any more.
var ErrClosed = errors.New("the data plane has ended")

// MoveFront has what arrives at the front that is open at an address be for another target.
// Its sessions go on.
func (p *Plane) MoveFront(at, target netip.AddrPort) {
	p.loops[0].tell(func(l *loop) {
		if f := l.frontAt(at); f != nil {
			f.Target = target
		}
	})
}

// CloseFront ends the front that is open at an address, with its sessions.
func (p *Plane) CloseFront(at netip.AddrPort) {
	p.loops[0].tell(func(l *loop) {
		if f := l.frontAt(at); f != nil {
			l.closeFront(f.fd)
		}
	})
}

func (l *loop) frontAt(at netip.AddrPort) *front {
	for _, f := range l.fronts {
		if f.At == at {
			return f
		}
	}
	return nil
}

func (l *loop) closeFront(fd int) {
	for _, s := range l.fronts[fd].sessions {
		l.endSession(s, dataplane.Gone)
	}
	delete(l.fronts, fd)
	l.left = append(l.left, fd)
}

// forward takes datagrams of clients.
func (l *loop) forward(f *front) {
	for range datagramsMost {
		n, client, errno := receive(f.fd, l.scratch)
		if errno != 0 {
			return
		}
		if !l.pass(f, client, l.scratch[:n]) {
			l.counts.dropped.Add(1)
		}
	}
}

// pass sends a client's datagram on; false where nobody may serve it. The kernel does not send
// one where it tells that the one before was refused: then it goes to another endpoint, whose
// socket is new and has nothing to tell.
func (l *loop) pass(f *front, client netip.AddrPort, datagram []byte) bool {
	for range 2 {
		s := f.sessions[client]
		if s == nil {
			if s = l.session(f, client); s == nil {
				return false
			}
		}
		l.used(s)
		if _, errno := socket.Send(s.fd, datagram); errno != unix.ECONNREFUSED {
			break
		}
		l.refuses(s)
	}
	l.counts.in.Add(int64(len(datagram)))
	return true
}

// session begins one; nil where nobody may serve the client. Where there are as many as may
// be, or no descriptor is left, who has been silent for longest makes room.
func (l *loop) session(f *front, client netip.AddrPort) *session {
	call := dataplane.Call{UDP: true, Target: f.Target, Client: client, Tried: f.refused[client]}
	choice, err := l.plane.chooser.Choose(call)
	if err != nil {
		return nil
	}
	choice.Call = call
	if l.sessions.Len() >= l.plane.config.Sessions {
		l.evict()
	}
	s := &session{front: f, client: client, choice: choice, chosen: true}
	if s.fd, err = l.reach(choice.Endpoint); err != nil {
		l.plane.chooser.Done(&s.choice, blame(err))
		if noDescriptor(err) {
			l.evict()
		}
		return nil
	}
	f.sessions[client] = s
	l.answering[s.fd] = s
	s.place = l.sessions.PushBack(s)
	return s
}

// reach is a socket by which to talk to an endpoint.
func (l *loop) reach(to netip.AddrPort) (fd int, err error) {
	fd, err = unix.Socket(socket.Family(to.Addr()), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	setMark(fd, l.plane.config.Mark)
	if err = socket.Connect(fd, to); err == nil {
		err = l.watch(fd, unix.EPOLLIN)
	}
	if err != nil {
		release(fd)
	}
	return fd, err
}

// used notes that a session is not idle.
func (l *loop) used(s *session) {
	s.lastUse = l.now()
	l.sessions.MoveToBack(s.place)
}

// evict ends the session that has been silent for longest.
func (l *loop) evict() {
	if oldest := l.sessions.Front(); oldest != nil {
		l.counts.evicted.Add(1)
		l.endSession(oldest.Value.(*session), dataplane.Gone)
	}
}

// reply takes answers of an endpoint.
func (l *loop) reply(s *session) {
	for range datagramsMost {
		n, _, errno := receive(s.fd, l.scratch)
		switch {
		case errno == unix.EAGAIN:
			return
		case errno == unix.EINTR:
			continue
		case errno == unix.ECONNREFUSED: // nobody listens there
			l.refuses(s)
			return
		case errno != 0: // such as EMSGSIZE: the kernel has noted how much goes on this way, and the next may be less
			continue
		}
		l.used(s)
		l.counts.out.Add(int64(n))
		if s.chosen {
			s.chosen = false
			l.plane.chooser.Answered(&s.choice)
			l.plane.chooser.Done(&s.choice, dataplane.Served)
		}
		_ = socket.SendTo(s.front.fd, l.scratch[:n], s.client) // one that the kernel does not take is lost, as datagrams may be
	}
}

// refuses ends a session whose endpoint refuses: the client's next datagram goes to another.
func (l *loop) refuses(s *session) {
	f := s.front
	if len(f.refused) >= refusedMost {
		clear(f.refused)
	}
	tried := f.refused[s.client]
	if len(tried) >= l.plane.config.Tries {
		tried = nil
	}
	f.refused[s.client] = append(tried, s.choice.Endpoint)
	l.endSession(s, dataplane.Failed)
}

// endSession forgets a session. Its descriptor is closed with the batch.
func (l *loop) endSession(s *session, o dataplane.Outcome) {
	if s.chosen {
		s.chosen = false
		l.plane.chooser.Done(&s.choice, o)
	}
	delete(s.front.sessions, s.client)
	delete(l.answering, s.fd)
	l.sessions.Remove(s.place)
	l.left = append(l.left, s.fd)
}

// sweep ends sessions that are idle, and those whose endpoint is gone: the client's next
// datagram begins another.
func (l *loop) sweep() {
	now := l.now()
	if l.sessions.Len() == 0 || now-l.swept < sweepEvery {
		return
	}
	l.swept = now
	for _, f := range l.fronts {
		clear(f.refused)
	}
	var next *list.Element
	for e := l.sessions.Front(); e != nil; e = next {
		next = e.Next()
		if s := e.Value.(*session); now-s.lastUse > l.plane.config.SessionIdle || !l.plane.chooser.Serves(&s.choice) {
			l.endSession(s, dataplane.Gone)
		}
	}
}
