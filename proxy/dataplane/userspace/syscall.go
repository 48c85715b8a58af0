package userspace

import (
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"skerry.dev/skerry/internal/socket"
)

// The calls of a loop never block, so Go's scheduler need not know of them. Told of one it
// wakes its monitor, which then looks fifty times in a ms whether the call has ended:
// docs/adr/0047-userspace-plane.md.

// accept takes the next connection of a listener, and says who calls.
func accept(listener int) (fd int, from netip.AddrPort, errno syscall.Errno) {
	var raw [unix.SizeofSockaddrInet6]byte
	size := uint32(len(raw))
	n, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0) //nolint:gosec // accept4 fills them
	if errno != 0 {
		return -1, from, errno
	}
	return int(n), socket.AddressOf(raw), 0 //nolint:gosec // a descriptor
}

// receive takes a datagram, and says who sent it.
func receive(fd int, into []byte) (n int, from netip.AddrPort, errno syscall.Errno) {
	var raw [unix.SizeofSockaddrInet6]byte
	size := uint32(len(raw))
	got, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&into[0])), uintptr(len(into)), 0, uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size))) //nolint:gosec // recvfrom fills them
	return int(got), socket.AddressOf(raw), errno                                                                                                                                                 //nolint:gosec // no more than len
}

// waits says whether something is there to be read.
func waits(fd int) bool {
	var b byte
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1, unix.MSG_PEEK, 0, 0) //nolint:gosec // recvfrom fills it
	return errno == 0 && n > 0
}

// pending is why a connection has failed, 0 where it has not.
func pending(fd int) syscall.Errno {
	var failed int32
	size := uint32(unsafe.Sizeof(failed))
	_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ERROR, uintptr(unsafe.Pointer(&failed)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // getsockopt fills them
	if errno != 0 {
		return errno
	}
	return syscall.Errno(failed) //nolint:gosec // a number of an error
}

// set sets an option. That one is refused changes nothing that a connection could not be
// carried without.
func set(fd, level, option int, value int32) {
	_, _, _ = syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0) //nolint:gosec // setsockopt reads it
}

// endWrites says that nothing more comes. A side that has gone is told by epoll.
func endWrites(fd int) { _, _, _ = syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0) }

// release gives a descriptor back.
func release(fd int) { _, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func poll(epoll int, into []unix.EpollEvent) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&into[0])), uintptr(len(into)), 0, 0, 0) //nolint:gosec // epoll fills it
	return int(n), errno                                                                                                                     //nolint:gosec // no more than len
}

func splice(from, to, most int) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(most), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
	return int(n), errno //nolint:gosec // no more than most
}
