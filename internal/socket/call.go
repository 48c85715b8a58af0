package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls on sockets that do not block, without a word to Go's scheduler.

// Receive reads.
func Receive(fd int, into []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(into))), uintptr(len(into))) //nolint:gosec // read fills it
	return int(n), errno                                                                                                               //nolint:gosec // no more than len
}

// Send writes. Where the peer has gone there is no signal.
func Send(fd int, from []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(from))), uintptr(len(from)), unix.MSG_NOSIGNAL, 0, 0) //nolint:gosec // send reads it
	return int(n), errno                                                                                                                                           //nolint:gosec // no more than len
}
