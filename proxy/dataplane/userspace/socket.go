package userspace

import (
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
	"skerry.dev/skerry/proxy/dataplane"
)

// backlog is how many connections may wait to be accepted; the kernel has a bound of its
// own, net.core.somaxconn.
const backlog = 4096

// listenTCP listens at an address that other loops listen at as well. What is accepted is set up
// as the listener is.
func listenTCP(at netip.AddrPort) (fd int, bound netip.AddrPort, err error) {
	fd, err = unix.Socket(socket.Family(at.Addr()), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
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
		err = socket.Bind(fd, at)
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err == nil {
		bound, err = socket.LocalOf(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, at, err
	}
	return fd, bound, nil
}

// call begins a connection; it is there when the socket can be written to. Of who has something to
// say at once the last packet of the handshake is that which says it: the kernel holds it back, for
// 0.2 s at most (TCP_QUICKACK, tcp(7)).
func call(to netip.AddrPort, says bool, mark int32) (fd int, err error) {
	fd, err = unix.Socket(socket.Family(to.Addr()), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	setUp(fd)
	if says {
		set(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 0)
	}
	setMark(fd, mark)
	if err := socket.Connect(fd, to); err != nil {
		release(fd)
		return -1, err
	}
	return fd, nil
}

// setMark marks what a socket sends. Who may not (socket(7): it takes CAP_NET_ADMIN) makes no
// rules that would bring it here either.
func setMark(fd int, mark int32) {
	if mark != 0 {
		set(fd, unix.SOL_SOCKET, unix.SO_MARK, mark)
	}
}

// A peer that is gone is noticed after keepIdle + keepCount × keepEvery seconds.
const (
	keepIdle  = 30
	keepEvery = 10
	keepCount = 3
)

// setUp has small writes leave at once, a peer that is gone noticed, and what is said urgently
// read where it stands among the rest.
func setUp(fd int) {
	set(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	set(fd, unix.SOL_SOCKET, unix.SO_OOBINLINE, 1)
	set(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle)
	set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepEvery)
	set(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepCount)
}

// lingerNot has the peer of a connection see a reset as it is closed.
func lingerNot(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// blame is what it says of an endpoint that it could not be called: nothing, where this node
// has no descriptor, port or memory left to call it by.
func blame(err error) dataplane.Outcome {
	own := []error{unix.EADDRNOTAVAIL, unix.ENOBUFS, unix.ENOMEM, unix.ENOSPC, unix.EAGAIN}
	if noDescriptor(err) || slices.ContainsFunc(own, func(lack error) bool { return errors.Is(err, lack) }) {
		return dataplane.Gone
	}
	return dataplane.Failed
}

// noDescriptor says whether there was none left.
func noDescriptor(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }
