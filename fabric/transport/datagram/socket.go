package datagram

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/fabric/transport"
)

// socket is a flow's way to its service. It has no buffer while nothing comes.
type socket struct {
	drops   *Drops
	buffers *sync.Pool

	mu     sync.Mutex
	conn   *net.UDPConn
	raw    syscall.RawConn
	closed bool
}

// open takes a socket, which it closes with the flow.
func (s *socket) open(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.closed {
		return errors.Join(net.ErrClosed, err, conn.Close())
	}
	s.conn, s.raw = conn, raw
	return nil
}

// close ends it, and says whether it was open.
func (s *socket) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn != nil {
		_ = s.conn.Close() // nothing is lost by it
	}
	return s.conn != nil
}

// write passes a datagram on to the service, where its socket has room, and says how much
// went. An error is that nobody is there.
func (s *socket) write(datagram []byte) (sent int, err error) {
	err = SendNow(s.raw, datagram, nil, nil)
	switch {
	case err == nil:
		return len(datagram), nil
	case errors.Is(err, net.ErrClosed):
		return 0, nil
	case errors.Is(err, unix.ECONNREFUSED):
		return 0, err
	}
	s.drops.Socket.Add(1)
	return 0, nil
}

// SendNow sends a datagram if the socket has room for it, and does not wait for that.
func SendNow(raw syscall.RawConn, datagram, control []byte, to unix.Sockaddr) error {
	var failed error
	err := raw.Write(func(fd uintptr) bool {
		_, failed = unix.SendmsgN(int(fd), datagram, control, to, unix.MSG_DONTWAIT)
		for errors.Is(failed, unix.EINTR) {
			_, failed = unix.SendmsgN(int(fd), datagram, control, to, unix.MSG_DONTWAIT)
		}
		return true
	})
	return errors.Join(err, failed)
}

// buffer has room for a datagram that is carried, and shows one that is longer.
type buffer [DatagramBytes + 1]byte

// read passes on what the service says, until the socket is closed or nobody is there.
func (s *socket) read(send func([]byte)) transport.Code {
	for {
		switch err := s.readOne(send); {
		case errors.Is(err, net.ErrClosed):
			return Over
		case err != nil:
			return transport.Unreachable
		}
	}
}

// readOne takes a buffer when there is something to read.
func (s *socket) readOne(send func([]byte)) error {
	var buf *buffer
	var n int
	var failed error
	err := s.raw.Read(func(fd uintptr) bool {
		buf = s.buffers.Get().(*buffer)
		n, failed = unix.Read(int(fd), buf[:])
		for errors.Is(failed, unix.EINTR) {
			n, failed = unix.Read(int(fd), buf[:])
		}
		if errors.Is(failed, unix.EAGAIN) {
			s.buffers.Put(buf)
			return false
		}
		return true
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	send(buf[:n])
	s.buffers.Put(buf)
	return nil
}
