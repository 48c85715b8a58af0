package userspace

import (
	"errors"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// backlog is how many connections may wait to be accepted; the kernel has a bound of its
// own, net.core.somaxconn.
const backlog = 4096

// listenTCP listens at an address that other loops listen at as well. What is accepted is set up
// as the listener is.
func listenTCP(at netip.AddrPort) (fd int, bound netip.AddrPort, err error) {
	fd, err = unix.Socket(family(at.Addr()), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, at, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	if err == nil && at.Addr().Is6() {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	setUp(fd)
	if err == nil {
		err = unix.Bind(fd, address(at))
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err == nil {
		bound, err = localOf(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, at, err
	}
	return fd, bound, nil
}

func family(a netip.Addr) int {
	if a.Is4() || a.Is4In6() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// address is as the kernel wants it.
func address(a netip.AddrPort) unix.Sockaddr {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return &unix.SockaddrInet4{Addr: ip.As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

// fromKernel is an address as the kernel has given it.
func fromKernel(s unix.Sockaddr) netip.AddrPort {
	switch s := s.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port)) //nolint:gosec // a port
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(s.Addr).Unmap(), uint16(s.Port)) //nolint:gosec // a port
	default:
		return netip.AddrPort{}
	}
}

func localOf(fd int) (netip.AddrPort, error) {
	s, err := unix.Getsockname(fd)
	return fromKernel(s), err
}

// call begins a connection; it is there when the socket can be written to.
func call(to netip.AddrPort) (fd int, err error) {
	fd, err = unix.Socket(family(to.Addr()), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	setUp(fd)
	if err := unix.Connect(fd, address(to)); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// A peer that is gone is noticed after keepIdle + keepCount × keepEvery seconds.
const (
	keepIdle  = 30
	keepEvery = 10
	keepCount = 3
)

// setUp has small writes leave at once, and a peer that is gone noticed. That an option
// is refused changes nothing that a connection could not be carried without.
func setUp(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepEvery)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepCount)
}

// lingerNot has the peer of a connection see a reset as it is closed.
func lingerNot(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// The calls of the relay never block, so the scheduler need not know of them.

func read(fd int, into []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&into[0])), uintptr(len(into))) //nolint:gosec // read fills it
	return int(n), errno                                                                                                 //nolint:gosec // no more than len
}

func write(fd int, from []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)), unix.MSG_NOSIGNAL, 0, 0) //nolint:gosec // send reads it
	return int(n), errno                                                                                                                             //nolint:gosec // no more than len
}

func poll(epoll int, into []unix.EpollEvent) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&into[0])), uintptr(len(into)), 0, 0, 0) //nolint:gosec // epoll fills it
	return int(n), errno                                                                                                                     //nolint:gosec // no more than len
}

func splice(from, to, most int) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(most), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
	return int(n), errno //nolint:gosec // no more than most
}
