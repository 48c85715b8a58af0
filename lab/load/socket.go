package load

import (
	"errors"
	"io"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	calls "skerry.dev/skerry/internal/socket"
)

// socket is a connected socket that does not block: a call that would suspends
// the routine instead, until the deadline at most. After that the error is
// os.ErrDeadlineExceeded, after the end of the loop it is errStopped.
type socket struct {
	fd       int
	routine  *routine
	deadline int64 // CLOCK_MONOTONIC ns
	// stream is what a read of less than it could hold has drained.
	stream bool
	// readable and writable mean that the next call may do something: epoll
	// reports changes alone.
	readable, writable bool
	// hungUp means that the peer has sent all that it will.
	hungUp bool
	// awaited means that the routine waits for any change.
	awaited bool
}

// dial connects to an address by TCP, without keep-alive probes, which would be
// packets that the experiment did not ask for, or by UDP.
func (r *routine) dial(address netip.AddrPort, kind int, deadline int64) (*socket, error) {
	family := unix.AF_INET
	var to unix.Sockaddr
	if ip := address.Addr(); ip.Is4() {
		to = &unix.SockaddrInet4{Port: int(address.Port()), Addr: ip.As4()}
	} else {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: int(address.Port()), Addr: ip.As16()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s := &socket{fd: fd, routine: r, deadline: deadline, stream: kind == unix.SOCK_STREAM}
	if err := s.connect(to); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *socket) connect(to unix.Sockaddr) error {
	if s.stream {
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return err
		}
	}
	r := s.routine
	r.socket = s
	err := unix.Connect(s.fd, to)
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	if e := r.loop.watchFor(s.fd, r.number, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP); e != nil {
		return e
	}
	if err == nil {
		s.writable = true
		return nil
	}
	for !s.writable {
		if err := s.await(); err != nil {
			return err
		}
	}
	failure, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && failure != 0 {
		err = unix.Errno(failure)
	}
	return err
}

// note takes an event of epoll.
func (s *socket) note(events uint32) {
	const end = unix.EPOLLHUP | unix.EPOLLERR
	s.hungUp = s.hungUp || events&(end|unix.EPOLLRDHUP) != 0
	s.readable = s.readable || events&(end|unix.EPOLLRDHUP|unix.EPOLLIN) != 0
	s.writable = s.writable || events&(end|unix.EPOLLOUT) != 0
}

// await suspends the routine until the socket's state changes.
func (s *socket) await() error {
	s.awaited = true
	why := s.routine.wait(s.deadline)
	s.awaited = false
	switch why {
	case expired:
		return os.ErrDeadlineExceeded
	case stopped:
		return errStopped
	}
	return nil
}

// Read implements io.Reader.
func (s *socket) Read(p []byte) (int, error) {
	for {
		for !s.readable {
			if err := s.await(); err != nil {
				return 0, err
			}
		}
		if n, err := s.tryRead(p); n > 0 || err != nil {
			return n, err
		}
	}
}

// tryRead reads what there is: nothing, without an error, where it would block.
func (s *socket) tryRead(p []byte) (int, error) {
	n, errno := calls.Receive(s.fd, p)
	switch {
	case errno == unix.EAGAIN:
		s.readable = false
		return 0, nil
	case errno == unix.EINTR:
		return 0, nil
	case errno != 0:
		return 0, errno
	case n == 0 && s.stream:
		return 0, io.EOF
	}
	if s.stream && n < len(p) && !s.hungUp {
		s.readable = false
	}
	return n, nil
}

// Write implements io.Writer.
func (s *socket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		for !s.writable {
			if err := s.await(); err != nil {
				return done, err
			}
		}
		n, err := s.tryWrite(p[done:])
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// tryWrite writes what there is room for.
func (s *socket) tryWrite(p []byte) (int, error) {
	n, errno := calls.Send(s.fd, p)
	switch errno {
	case 0:
		return n, nil
	case unix.EAGAIN:
		s.writable = false
		return 0, nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, errno
}

// Close implements io.Closer.
func (s *socket) Close() error {
	s.routine.socket = nil
	return unix.Close(s.fd)
}
