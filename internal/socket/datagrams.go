package socket

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waitingMost is how many bytes of datagrams, as the kernel counts them, may wait to be taken.
const waitingMost = 4 << 20

// Datagrams is a socket of UDP that wakes nobody: what has come waits to be taken, with the time
// at which it came. Its methods may be called from any goroutine.
type Datagrams struct {
	mu    sync.RWMutex // held for writing to close it
	fd    int          // -1 where it is closed
	bound netip.AddrPort
}

// ListenDatagrams takes datagrams at an address.
func ListenDatagrams(at netip.AddrPort) (*Datagrams, error) {
	fd, err := unix.Socket(Family(at.Addr()), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	d := &Datagrams{fd: fd}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, waitingMost) != nil { // without the right to, as much as there may be
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, waitingMost)
	}
	err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	if err == nil {
		err = Bind(fd, at)
	}
	if err == nil {
		d.bound, err = LocalOf(fd)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Address is where it listens.
func (d *Datagrams) Address() netip.AddrPort { return d.bound }

// Take takes a datagram that has come, and says when, by the machine's clock; the error is EAGAIN
// where none has. What of it has no room is lost. Of the first datagrams of a machine on which no
// other socket asks for such times, the kernel may say when they are taken.
func (d *Datagrams) Take(into []byte) (n int, came time.Time, err error) {
	err = d.with(func(fd int) error {
		var errno syscall.Errno
		if n, came, errno = receiveStamped(fd, into); errno != 0 {
			return os.NewSyscallError("recvmsg", errno)
		}
		return nil
	})
	return n, came, err
}

// SendTo sends a datagram to a peer of the socket's family. One that the kernel has no room for is
// an error, and lost.
func (d *Datagrams) SendTo(b []byte, to netip.AddrPort) error {
	return d.with(func(fd int) error {
		if errno := SendTo(fd, b, to); errno != 0 {
			return os.NewSyscallError("sendto", errno)
		}
		return nil
	})
}

// with has use call the kernel, unless the socket is closed: net.ErrClosed.
func (d *Datagrams) with(use func(fd int) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return net.ErrClosed
	}
	return use(d.fd)
}

// Close gives the socket back.
func (d *Datagrams) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fd < 0 {
		return net.ErrClosed
	}
	fd := d.fd
	d.fd = -1
	return os.NewSyscallError("close", unix.Close(fd))
}
